"""The pins in stack config, and the one check that nothing deploys without: pins, lock and recipe say the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .faults import Faults, RecipeError, step
from .files import find_lock, find_recipe, pin_command, read_lock, read_recipe
from .sources import SHA256, parse_pin, pin_text

if TYPE_CHECKING:
    from .model import Lock, Pins, Recipe

_REFERENCES = ("engine", "weights", "tokenizer", "drafter")
_KEYS = ("lock", *_REFERENCES, "draftTokens")
_REQUIRED = ("lock", "engine", "weights", "tokenizer")


@dataclass(frozen=True)
class Locked:
    """A recipe with the lock that the pins seal; everything in it has been checked against everything else."""

    recipe_name: str
    recipe: Recipe
    recipe_sha256: str
    lock: Lock
    digest: str
    lock_path: Path
    pins: Pins


def pins_of(lock: Lock, digest: str) -> Pins:
    """The short pins of a lock; `digest` is its `sha256:<64 hex>`."""
    from .model import Pins

    return Pins(
        lock=digest,
        engine=pin_text(lock.engine.source),
        weights=lock.sources.weights.ref,
        tokenizer=lock.sources.tokenizer_ref(),
        drafter=lock.sources.drafter.ref if lock.sources.drafter else None,
        draftTokens=lock.draft_tokens,
    )


def load_locked(name: str, pins: Mapping[str, object], folders: Sequence[Path]) -> Locked:
    """The locked recipe that these pins name. Pure: reads files, nothing else.

    Raises one RecipeError with all faults found: of the recipe, of the pins' form, of the lock, and between them.
    """
    from .check import lock_faults

    faults, mend = Faults(), pin_command(name)
    recipe = lock = None
    try:
        path = find_recipe(name, folders)
        recipe = read_recipe(path)
    except RecipeError as error:
        faults.extend(error)
    wrong = _form(pins, mend, faults)
    seal = pins.get("lock") if isinstance(pins, Mapping) else None
    if isinstance(seal, str) and "lock" not in wrong:
        try:
            lock_path = find_lock(name, seal, folders)
            lock, digest = read_lock(lock_path)
        except RecipeError as error:
            # A name that is no recipe's name has been said once already.
            faults.found += [fault for fault in error.faults if fault not in faults.found]
    if lock is not None and digest != seal:
        allowed = f"the digest of {lock_path.name}, whose bytes give {digest}"
        faults.add("pins.lock", seal, allowed, f"{mend}, or restore the file from git")
    if lock is not None:
        sealed = pins_of(lock, digest)
        _compare(pins, sealed, wrong, mend, faults)
        if recipe is not None:
            faults.found += lock_faults(name, recipe[0], recipe[1], lock)
    faults.raise_any()
    assert recipe is not None, "a recipe that was not read has left a fault"
    assert lock is not None, "a lock that was not read has left a fault"
    return Locked(name, recipe[0], recipe[1], lock, digest, lock_path, sealed)


def _form(pins: object, mend: str, faults: Faults) -> set[str]:
    """Faults of the pins by themselves; returns the keys that need no second fault."""
    if not isinstance(pins, Mapping):
        faults.add("pins", pins, f"a map with {', '.join(_REQUIRED)}", mend)
        return set(_KEYS)
    wrong: set[str] = set()
    for key in pins:
        if key not in _KEYS:
            allowed = f"one of: {', '.join(_KEYS)}"
            faults.add(f"pins{step(key)}", pins[key], allowed, "remove it from the stack's config")
    for key in _REQUIRED:
        if pins.get(key) is None:
            faults.add(f"pins.{key}", None, "required", mend)
            wrong.add(key)
    if "lock" not in wrong and not (isinstance(pins["lock"], str) and SHA256.fullmatch(pins["lock"])):
        faults.add("pins.lock", pins["lock"], "sha256:<64 hex>, the digest of a lock file", mend)
        wrong.add("lock")
    for key in _REFERENCES:
        if key in wrong or pins.get(key) is None:
            continue
        try:
            parse_pin(pins[key], f"pins.{key}", mend)
        except RecipeError as error:
            faults.extend(error)
            wrong.add(key)
    tokens = pins.get("draftTokens")
    if tokens is not None and (type(tokens) is not int or tokens < 1):
        faults.add("pins.draftTokens", tokens, "a whole number from 1", mend)
        wrong.add("draftTokens")
    return wrong


def _compare(pins: Mapping[str, object], sealed: Pins, wrong: set[str], mend: str, faults: Faults) -> None:
    """A fault for each pin that says something else than the lock."""
    said = sealed.as_config()
    for key in _KEYS:
        if key == "lock" or key in wrong or pins.get(key) == said.get(key):
            continue
        allowed = f"{said[key]} as its lock says" if key in said else "no such pin: its lock has none"
        faults.add(f"pins.{key}", pins.get(key), allowed, mend)
