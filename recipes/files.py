"""Where recipes and locks lie, and how they are read and written."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .faults import Fault, RecipeError
from .sources import SHA256

if TYPE_CHECKING:
    from .model import Lock, Recipe

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}/[a-z0-9][a-z0-9._-]{0,99}")
ALLOWED_NAME = "MODEL/NAME of lower-case letters, digits, '.', '_' and '-'"


def recipe_folders(project: Path) -> list[Path]:
    """Folders searched for recipes, in order: the project's own `recipes/`, then the ones shipped with the library."""
    own, shipped = (project / "recipes").resolve(), Path(__file__).resolve().parent
    return [own, shipped] if own != shipped else [shipped]


def pin_command(recipe_name: object) -> str:
    """The command that writes a recipe's lock and pins."""
    named = recipe_name if isinstance(recipe_name, str) and _NAME.fullmatch(recipe_name) else "NAME"
    return f"run `sluicegate recipe pin {named}`"


def split_name(name: object) -> tuple[str, str]:
    """A recipe's name as (model, name). Raises RecipeError for anything that could leave the recipe folders."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise RecipeError([Fault("recipe", name, ALLOWED_NAME, "correct the recipe's name")])
    model, _, short = name.partition("/")
    return model, short


def find_recipe(name: str, folders: Sequence[Path]) -> Path:
    """The recipe's file: the first folder that has it wins. Raises RecipeError naming the recipes there are."""
    model, short = split_name(name)
    for folder in folders:
        if (path := folder / model / f"{short}.yaml").is_file():
            return path
    there = ", ".join(recipe_names(folders)) or f"none in {', '.join(map(str, folders))}"
    raise RecipeError([Fault("recipe", name, f"one of: {there}", "correct the recipe's name, or add its file")])


def recipe_names(folders: Sequence[Path]) -> list[str]:
    """The names of all recipes in these folders, sorted."""
    found = {f"{path.parent.name}/{path.stem}" for folder in folders for path in folder.glob("*/*.yaml")}
    return sorted(name for name in found if _NAME.fullmatch(name))


def read_recipe(path: Path) -> tuple[Recipe, str]:
    """A recipe and the sha256 (64 hex) of its file's bytes. Raises RecipeError with dotted key paths."""
    from .fields import validate
    from .model import Recipe
    from .plain import load_yaml

    data, mend = _read(path, "recipe", f"edit {path}"), f"edit {path}"
    return validate(Recipe, load_yaml(data, "recipe", mend), "", mend), hashlib.sha256(data).hexdigest()


def lock_file(recipe_name: str, lock_digest: str, folder: Path) -> Path:
    """Where a lock of this digest lies in one recipe folder, there or not."""
    model, short = split_name(recipe_name)
    return folder / model / "locks" / f"{short}-{lock_digest.removeprefix('sha256:')[:12]}.json"


def locks_of(recipe_path: Path) -> list[Path]:
    """Every lock beside a recipe's file, by name: not those of a recipe whose name only begins alike."""
    return sorted((recipe_path.parent / "locks").glob(f"{recipe_path.stem}-{'[0-9a-f]' * 12}.json"))


def all_locks(recipe_name: str, folders: Sequence[Path]) -> list[Path]:
    """Every lock of a recipe in all folders: a project may lock what the library ships."""
    model, short = split_name(recipe_name)
    return [path for folder in folders for path in locks_of(folder / model / f"{short}.yaml")]


def find_lock(recipe_name: str, lock_digest: str, folders: Sequence[Path]) -> Path:
    """The lock's file by its digest (`sha256:<64 hex>`). Raises RecipeError naming the locks this recipe has."""
    model, short = split_name(recipe_name)
    if not SHA256.fullmatch(lock_digest):
        raise RecipeError([Fault("pins.lock", lock_digest, "sha256:<64 hex>", pin_command(recipe_name))])
    for folder in folders:
        if (path := lock_file(recipe_name, lock_digest, folder)).is_file():
            return path
    own = re.compile(re.escape(short) + r"-[0-9a-f]{12}\.json")
    names = (path.name for folder in folders for path in folder.glob(f"{model}/locks/*.json"))
    there = ", ".join(sorted({name for name in names if own.fullmatch(name)})) or "none there yet"
    allowed = f"the digest of a lock file in recipes/{model}/locks/ ({there})"
    raise RecipeError([Fault("pins.lock", lock_digest, allowed, pin_command(recipe_name))])


def read_lock(path: Path) -> tuple[Lock, str]:
    """A lock and its digest, `sha256:` and the hash of the file's bytes. Raises RecipeError with dotted key paths."""
    from .fields import validate
    from .model import Lock
    from .plain import load_json

    mend = f"never edit {path.name}: make it again with `sluicegate recipe pin`, or take it from git"
    data = _read(path, "lock", mend)
    digest = "sha256:" + hashlib.sha256(data).hexdigest()
    return validate(Lock, load_json(data, "lock", mend), "lock", mend), digest


def lock_bytes(lock: Lock) -> bytes:
    """A lock as it is written: sorted, indented, one final newline, so that git diffs read well."""
    data = lock.model_dump(mode="json", by_alias=True, exclude_none=True)
    data["draft_tokens"] = lock.draft_tokens  # null says "no speculation"
    return (json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()


def write_lock(folder: Path, lock: Lock) -> Path:
    """Write a lock under its name in a recipe folder, whole or not at all; returns its path. Raises OSError."""
    data = lock_bytes(lock)
    path = lock_file(lock.recipe, hashlib.sha256(data).hexdigest(), folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".lock-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, 0o644)  # mkstemp's 0600 would hide a committed file from the team's other users
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path


def _read(path: Path, key: str, mend: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise RecipeError([Fault(key, str(path), f"a readable file ({error.strerror})", mend)]) from None
