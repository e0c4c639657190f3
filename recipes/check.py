"""Whether recipes and locks agree, each with itself and all with each other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .engines import adapter
from .faults import Fault, Faults, RecipeError
from .files import find_recipe, lock_file, locks_of, pin_command, read_lock, read_recipe, recipe_names
from .sources import HUB_REPO, FileRef, ImageRef, WheelRef, parse_ref

if TYPE_CHECKING:
    from .model import Lock, Recipe, Sources

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


def recipe_faults(recipe: Recipe) -> list[Fault]:
    """What is wrong with a recipe by itself, beyond the form of its file: each with the edit that mends it."""
    from .images import parse_image

    faults, mend = Faults(), "edit the recipe, then pin it again"
    wishes: dict[str, str | None] = {"model": recipe.model.repo}
    wishes["tokenizer"] = recipe.tokenizer.repo if recipe.tokenizer else None
    wishes["speculation"] = recipe.speculation.repo if recipe.speculation else None
    for key, repo in wishes.items():
        if repo and not repo.startswith(("pypi:", "file:")):
            if repo == recipe.serve.name:
                allowed = "a repository, ORG/NAME: this is the name it is served as"
                faults.add(f"{key}.repo", repo, allowed, f"{mend}; give serve.name a name of its own")
            elif not HUB_REPO.fullmatch(repo):
                faults.add(f"{key}.repo", repo, "ORG/NAME of a hub, pypi:NAME or file:PATH", mend)
    if recipe.engine.image is not None:
        try:
            parse_image(recipe.engine.image, "engine.image", mend)
        except RecipeError as error:
            faults.extend(error)
    try:
        adapter(recipe.engine.name).compile(recipe, _imagined(recipe))
    except RecipeError as error:
        faults.found += [fault for fault in error.faults if fault not in faults.found]
    return faults.found


def _imagined(recipe: Recipe) -> Sources:
    """Sources in the form the real ones will have, for what can be said of a command line before there are any."""
    from .model import LockFile, SameAs, Source, Sources

    name = "model.gguf" if recipe.engine.name == "llamacpp" else "model.safetensors"
    one = Source(ref=f"hf:none/none@{'0' * 40}", files=(LockFile(path=name, bytes=1, sha256="0" * 64),))
    drafter = one if recipe.speculation and recipe.speculation.repo else None
    return Sources(weights=one, tokenizer=one if recipe.tokenizer else SameAs(same_as="weights"), drafter=drafter)


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
    """Every fault of every recipe (or of those named) and its locks; an empty list when all fit."""
    faults: list[Fault] = []
    for name in names or recipe_names(folders):
        try:
            path = find_recipe(name, folders)
            recipe, sha256 = read_recipe(path)
        except RecipeError as error:
            faults += error.faults
            continue
        faults += [Fault(f"{name} {f.key}", f.value, f.allowed, f.mend) for f in recipe_faults(recipe)]
        for lock_path in locks_of(path):
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
