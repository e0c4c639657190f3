"""The lock that a stack is to be pinned to: made of a recipe as the world is now, or one that is there already."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .check import lock_faults
from .faults import Fault, RecipeError
from .files import all_locks, find_recipe, lock_bytes, pin_command, read_lock, read_recipe, recipe_names
from .resolve import Resolver, exact

if TYPE_CHECKING:
    from .model import Lock

_DIGEST = re.compile(r"(?:sha256:)?([0-9a-f]{64}|[0-9a-f]{12})")


def resolved(name: str, folders: Sequence[Path], resolver: Resolver) -> tuple[Lock, str, bool]:
    """A recipe's lock, its digest, and whether it is new. Asks nobody where the recipe itself says everything.

    Raises RecipeError with every fault, CalledProcessError where pip could not fetch a package.
    """
    path = find_recipe(name, folders)
    recipe, sha256 = read_recipe(path)
    there = []
    for lock_path in all_locks(name, folders):
        try:
            there.append(read_lock(lock_path))
        except RecipeError:
            continue  # another lock than the one wanted; `recipe check` tells of it
    if exact(recipe):
        for lock, digest in there:
            if lock.recipe_sha256 == sha256 and not lock_faults(name, recipe, sha256, lock):
                return lock, digest, False
    lock = resolver.resolve(name, recipe, sha256)
    digest = "sha256:" + hashlib.sha256(lock_bytes(lock)).hexdigest()
    return lock, digest, digest not in {known for _, known in there}


def locked(name: str, folders: Sequence[Path]) -> tuple[str, Lock, str]:
    """The recipe's name and its lock of today, without asking anyone. Raises RecipeError where it has none."""
    _, sha256 = read_recipe(find_recipe(name, folders))
    for path in all_locks(name, folders):
        lock, digest = read_lock(path)
        if lock.recipe_sha256 == sha256:
            return name, lock, digest
    raise RecipeError([Fault("recipe", name, "a recipe with a lock of its present state", pin_command(name))])


def promoted(name: str | None, wanted: str, folders: Sequence[Path]) -> tuple[str, Lock, str]:
    """As `sealed`, and the lock is one that deploys: made of the recipe as it is now."""
    recipe_name, lock, digest = sealed(name, wanted, folders)
    recipe, sha256 = read_recipe(find_recipe(recipe_name, folders))
    if faults := lock_faults(recipe_name, recipe, sha256, lock):
        raise RecipeError(faults)
    return recipe_name, lock, digest


def sealed(name: str | None, wanted: str, folders: Sequence[Path]) -> tuple[str, Lock, str]:
    """The recipe, lock and digest that a digest (or its first 12 hex) names; of one recipe where `name` says which.

    Raises RecipeError: no such lock, more than one, or edited by hand.
    """
    match = _DIGEST.fullmatch(wanted)
    if match is None:
        raise RecipeError(
            [Fault("--lock", wanted, "a lock's digest: 64 hex, or the 12 of its file's name", "correct it")]
        )
    short = match[1][:12]
    names = [name] if name else recipe_names(folders)
    found = [(n, p) for n in names for p in all_locks(n, folders) if p.stem.endswith(f"-{short}")]
    if len(found) != 1:
        several = ", ".join(n for n, _ in found)
        allowed = f"a lock of one recipe; these have it: {several}" if found else f"a lock there is{_of(name, folders)}"
        mend = "name the recipe too" if found else "correct the digest, or get the lock's file from git"
        raise RecipeError([Fault("--lock", wanted, allowed, mend)])
    recipe_name, path = found[0]
    lock, digest = read_lock(path)
    if not digest.removeprefix("sha256:").startswith(match[1]):
        allowed = f"the digest of {path.name}, whose bytes give {digest}"
        raise RecipeError([Fault("--lock", wanted, allowed, f"restore it from git, or {pin_command(recipe_name)}")])
    return recipe_name, lock, digest


def _of(name: str | None, folders: Sequence[Path]) -> str:
    if name is None:
        return ""
    return f" of {name}: {', '.join(p.name for p in all_locks(name, folders)) or 'it has none'}"
