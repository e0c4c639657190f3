"""Whether recipes and locks agree, each with itself and all with each other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .engines import adapter
from .faults import Fault, Faults, RecipeError
from .files import all_locks, find_recipe, lock_file, pin_command, read_lock, read_recipe, recipe_names
from .sources import FileRef, ImageRef, WheelRef, parse_ref
from .wishes import recipe_faults

if TYPE_CHECKING:
    from .model import Lock, Recipe

_COMMIT = re.compile(r"[0-9a-f]{7,40}")  # a commit or its beginning; anything else is a branch or a tag


def lock_faults(name: str, recipe: Recipe, recipe_sha256: str, lock: Lock) -> list[Fault]:
    """Every way in which a lock does not fit its recipe."""
    faults, mend = Faults(), pin_command(name)
    if lock.recipe != name:
        faults.add("lock.recipe", lock.recipe, name, mend)
    if lock.recipe_sha256 != recipe_sha256:
        # What follows from the edit would only repeat it.
        faults.add("recipe", name, f"the recipe its lock was made from: recipe changed since its lock: {mend}", mend)
        return faults.found
    _sources(faults, recipe, lock, mend)
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


def _sources(faults: Faults, recipe: Recipe, lock: Lock, mend: str) -> None:
    """Each reference of the lock names what the recipe asked for, at the revision it asked for."""
    from .model import SameAs

    engine, drafter = recipe.engine, lock.sources.drafter
    wished = f"pypi:{engine.package}" if engine.package else f"oci:{_untagged(engine.image or '')}"
    version = engine.version if engine.package else None
    _source(faults, "lock.engine.source", lock.engine.source, wished, version, mend)
    model, speculation = recipe.model, recipe.speculation
    _source(faults, "lock.sources.weights.ref", lock.sources.weights.ref, model.repo, model.revision, mend)
    if (wish := recipe.tokenizer) is not None:
        ref = lock.sources.tokenizer_ref()
        _source(faults, "lock.sources.tokenizer.ref", ref, wish.repo, wish.revision, mend)
    elif not isinstance(lock.sources.tokenizer, SameAs):
        ref = lock.sources.tokenizer_ref()
        faults.add("lock.sources.tokenizer.ref", ref, "the weights': the recipe has no tokenizer of its own", mend)
    repo = speculation.repo if speculation else None
    if repo and speculation and drafter:
        _source(faults, "lock.sources.drafter.ref", drafter.ref, repo, speculation.revision, mend)
    elif drafter:
        faults.add("lock.sources.drafter.ref", drafter.ref, "none: the recipe has no drafter", mend)


def _source(faults: Faults, key: str, text: str, wished: str, revision: str | None, mend: str) -> None:
    """One reference against a recipe's `repo` and `revision`; names of branches say nothing here."""
    ref = parse_ref(text)
    if isinstance(ref, WheelRef):
        named, at = f"pypi:{ref.name}", revision in (None, ref.version)
    elif isinstance(ref, FileRef):
        named, at = f"file:{ref.path}", True
    elif isinstance(ref, ImageRef):
        named, at = f"oci:{ref.name}", True
    else:
        named, at = ref.repo, not _COMMIT.fullmatch(revision or "") or ref.commit.startswith(revision or "")
    if named != wished or not at:
        faults.add(key, text, f"{wished} {revision or ''}".rstrip() + ", as the recipe says", mend)


def _untagged(image: str) -> str:
    """An image's name without its tag or digest; a registry's port stays."""
    name = image.partition("@")[0]
    return name.rpartition(":")[0] if ":" in name.rpartition("/")[2] else name


def check_all(folders: Sequence[Path], names: Sequence[str] = ()) -> list[Fault]:
    """Every fault of every recipe (or of those named) and its locks; an empty list when all fit.

    A lock of an earlier state of its recipe is history, once there is one of today's: nothing deploys it.
    """
    faults: list[Fault] = []
    for name in names or recipe_names(folders):
        try:
            path = find_recipe(name, folders)
            recipe, sha256 = read_recipe(path)
        except RecipeError as error:
            faults += _of(name, error.faults)
            continue
        faults += _of(name, recipe_faults(recipe))
        locks = []
        for lock_path in all_locks(name, folders):
            try:
                lock, digest = read_lock(lock_path)
            except RecipeError as error:
                faults += _of(f"{name} {lock_path.name}", error.faults)
                continue
            locks.append(lock)
            if lock_file(name, digest, lock_path.parents[2]) != lock_path:
                mend = f"restore it from git, or {pin_command(name)}"
                faults.append(Fault(f"{name} lock", lock_path.name, f"a file named by its own digest {digest}", mend))
        todays = [lock for lock in locks if lock.recipe_sha256 == sha256]
        for lock in todays or locks[-1:]:
            faults += _of(name, lock_faults(name, recipe, sha256, lock))
    return faults if names else faults + _strays(folders)


def _of(name: str, faults: Sequence[Fault]) -> list[Fault]:
    return [Fault(f"{name} {fault.key}", fault.value, fault.allowed, fault.mend) for fault in faults]


def _strays(folders: Sequence[Path]) -> list[Fault]:
    """Files among the locks that are none of any recipe: renamed, or left behind by a recipe that went."""
    known = {path for name in recipe_names(folders) for path in all_locks(name, folders)}
    found = sorted({path for folder in folders for path in folder.glob("*/locks/*.json")} - known)
    allowed = "NAME-<12 hex>.json of a recipe there is"
    mend = "restore its name or its recipe from git, or remove it"
    return [Fault(f"{path.parent.parent.name}/locks", path.name, allowed, mend) for path in found]
