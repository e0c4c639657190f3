"""The stack file `Pulumi.<stack>.yaml`: what it says of recipe and pins, and writing those two and nothing else."""

from __future__ import annotations

import io
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .faults import Fault, RecipeError
from .plain import load_yaml

_ORDER = ("lock", "engine", "weights", "tokenizer", "drafter", "draftTokens")


def stack_file(project: Path, stack: str) -> Path:
    """Where a stack's config lies; `stack` may be `org/project/name`."""
    return project / f"Pulumi.{stack.rpartition('/')[2]}.yaml"


def project_name(project: Path) -> str:
    """The name under which the project's config keys stand. Raises RecipeError."""
    path = project / "Pulumi.yaml"
    data = _load(path, _read(path), "edit Pulumi.yaml")
    name = data.get("name")
    if not isinstance(name, str) or not name:
        raise RecipeError([Fault("Pulumi.yaml name", name, "the project's name", "edit Pulumi.yaml")])
    return name


def recipe_and_pins(data: Mapping[str, Any], name: str) -> tuple[object, dict[str, object]]:
    """The recipe and the pins of a stack file's plain data; an empty map where there are no pins."""
    config = data.get("config")
    mine = config if isinstance(config, dict) else {}
    pins = mine.get(f"{name}:pins")
    return mine.get(f"{name}:recipe"), dict(pins) if isinstance(pins, dict) else {}


def read_stack(project: Path, stack: str) -> tuple[bytes, dict[str, Any]]:
    """A stack file's bytes and plain data; both empty where there is no file. Raises RecipeError."""
    path = stack_file(project, stack)
    data = _read(path) if path.exists() else b""
    return data, _load(path, data, f"edit {path.name}, or restore it from git")


def edited(data: bytes, file: str, name: str, recipe: str, pins: Mapping[str, object]) -> bytes:
    """A stack file's bytes with these recipe and pins; comments, order and everything else as they were.

    Raises RecipeError where that cannot be had, and the file is then to be edited by hand.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.comments import CommentedMap
    from ruamel.yaml.error import YAMLError

    mend = f"edit {file}, or restore it from git"
    before = _load(Path(file), data, mend)
    if recipe_and_pins(before, name) == (recipe, dict(pins)):
        return data
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 1 << 20
    yaml.allow_unicode = True
    _indent(yaml, data.decode())
    try:
        tree = yaml.load(data.decode())
        words = b"" if tree else data  # a file of remarks alone, which the editor would drop
        tree = tree or CommentedMap()
        if tree.get("config") is None:
            tree["config"] = CommentedMap()
        config = tree["config"]
        if f"{name}:recipe" not in config:
            config.insert(0, f"{name}:recipe", recipe)
        config[f"{name}:recipe"] = recipe
        if not isinstance(config.get(f"{name}:pins"), CommentedMap):
            at = list(config).index(f"{name}:recipe") + 1
            config.pop(f"{name}:pins", None)
            config.insert(at, f"{name}:pins", CommentedMap())
        _set(config[f"{name}:pins"], pins)
        out = io.BytesIO()
        yaml.dump(tree, out)
    except (YAMLError, ValueError, TypeError, AttributeError, RecursionError) as error:
        problem = (str(error).splitlines() or [type(error).__name__])[0]
        raise RecipeError([Fault(file, problem, "YAML that can be edited in place", mend)]) from None
    after = words + out.getvalue()
    if b"\r\n" in data:
        after = after.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    if _rest(_load(Path(file), after, mend), name) != _rest(before, name):
        raise RecipeError([Fault(file, None, "YAML that can be edited without a change to its other keys", mend)])
    return after


def _set(there: Any, pins: Mapping[str, object]) -> None:
    """Make a map of ruamel's say these pins: values in place, new keys in the usual order, the others gone."""
    for key in [key for key in there if key not in pins]:
        del there[key]
    for key in (key for key in _ORDER if key in pins):
        if key in there:
            if there[key] != pins[key]:
                there[key] = pins[key]
        else:
            before = [k for k in _ORDER[: _ORDER.index(key)] if k in there]
            there.insert(list(there).index(before[-1]) + 1 if before else 0, key, pins[key])


def _indent(yaml: Any, text: str) -> None:
    """Take over how the file is indented, so that lines that say the same stay the same."""
    if nested := re.search(r"^\w[^\n]*:[ \t]*\r?\n(?:[ \t]*#[^\n]*\n)*( +)\S", text, re.MULTILINE):
        yaml.map_indent = len(nested[1])
    if item := re.search(r"^( *)[^\s#-][^\n]*:[ \t]*\r?\n( *)-( +)", text, re.MULTILINE):
        offset = max(0, len(item[2]) - len(item[1]))
        yaml.sequence_dash_offset, yaml.sequence_indent = offset, offset + 1 + len(item[3])


def _rest(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    config = data.get("config") or {}
    kept = {key: value for key, value in config.items() if key not in (f"{name}:recipe", f"{name}:pins")}
    return {**data, "config": kept}


def write_whole(path: Path, data: bytes) -> None:
    """Write a file whole or not at all, with the rights it had. Raises OSError."""
    target = path.resolve()  # a link stays a link
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o644
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise RecipeError(
            [Fault(path.name, None, f"a readable file ({error.strerror})", f"restore {path.name}")]
        ) from None


def _load(path: Path, data: bytes, mend: str) -> dict[str, Any]:
    found = load_yaml(data, path.name, mend)
    if found is None:
        return {}
    config = found.get("config") if isinstance(found, dict) else None
    if not isinstance(found, dict) or (
        config is not None and not isinstance(config, dict) and path.name != "Pulumi.yaml"
    ):
        raise RecipeError([Fault(path.name, None, "a map, and a map under `config`", mend)])
    return found
