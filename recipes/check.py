"""Whether recipes and locks agree, each with itself and all with each other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .engines import adapter
from .faults import Fault, Faults, RecipeError
from .files import find_recipe, lock_file, pin_command, read_lock, read_recipe, recipe_names
from .sources import WheelRef, parse_ref

if TYPE_CHECKING:
    from .model import Lock, Recipe


def lock_faults(name: str, recipe: Recipe, recipe_sha256: str, lock: Lock) -> list[Fault]:
    """Every way in which a lock does not fit its recipe."""
    faults, mend = Faults(), pin_command(name)
    if lock.recipe != name:
        faults.add("lock.recipe", lock.recipe, name, mend)
    if lock.recipe_sha256 != recipe_sha256:
        # What follows from the edit would only repeat it.
        faults.add("recipe", name, f"the recipe its lock was made from: recipe changed since its lock: {mend}", mend)
        return faults.found
    source = parse_ref(lock.engine.source)
    if isinstance(source, WheelRef) and source.version != recipe.engine.version:
        faults.add("lock.engine.source", lock.engine.source, f"version {recipe.engine.version}", mend)
    for key, found, allowed in (
        ("lock.engine.name", lock.engine.name, recipe.engine.name),
        ("lock.engine.version", lock.engine.version, recipe.engine.version),
        ("lock.draft_tokens", lock.draft_tokens, recipe.speculation.tokens if recipe.speculation else None),
        ("lock.served_name", lock.served_name, recipe.serve.name),
        ("lock.gpu", f"{lock.gpu.count}x {lock.gpu.type}", f"{recipe.gpu.count}x {recipe.gpu.type}"),
    ):
        if found != allowed:
            faults.add(key, found, f"{allowed}, as the recipe says", mend)
    try:
        argv, env = adapter(recipe.engine.name).compile(recipe, lock.sources)
    except RecipeError as error:
        faults.extend(error)
        return faults.found
    if list(lock.argv) != argv:
        at = next((i for i, pair in enumerate(zip(lock.argv, argv, strict=False)) if pair[0] != pair[1]), None)
        at = min(len(lock.argv), len(argv)) if at is None else at
        found, allowed = (list_[at] if at < len(list_) else "(end)" for list_ in (list(lock.argv), argv))
        faults.add(f"lock.argv[{at}]", found, f"{allowed}, as the recipe compiles", mend)
    for key in sorted(lock.env.keys() | env.keys()):
        if lock.env.get(key) != env.get(key):
            faults.add(f"lock.env.{key}", lock.env.get(key), f"{env.get(key)}, as the recipe compiles", mend)
    return faults.found


def check_all(folders: Sequence[Path]) -> list[Fault]:
    """Every fault of every recipe and lock in these folders; an empty list when all fit."""
    faults: list[Fault] = []
    for name in recipe_names(folders):
        try:
            path = find_recipe(name, folders)
            recipe, sha256 = read_recipe(path)
        except RecipeError as error:
            faults += error.faults
            continue
        for lock_path in sorted(path.parent.glob(f"locks/{path.stem}-{'[0-9a-f]' * 12}.json")):
            try:
                lock, digest = read_lock(lock_path)
            except RecipeError as error:
                faults += error.faults
                continue
            faults += lock_faults(name, recipe, sha256, lock)
            if lock_file(name, digest, path.parent.parent) != lock_path:
                mend = f"restore it from git, or {pin_command(name)}"
                faults.append(Fault(f"{name} lock", lock_path.name, f"a file named by its own digest {digest}", mend))
    return faults
