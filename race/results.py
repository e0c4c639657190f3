"""The result files: the JSON, written whole or not at all, and the CSV, a line per request."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .shape import LOAD, RACE, misfit
from .targets import Target

try:
    import fcntl
except ImportError:  # not on Windows: two runs on one file are not noticed there
    fcntl = None  # type: ignore[assignment] # a module, or none

SCHEMA = 1
Document = dict[str, Any]


def now() -> str:
    """The time as RFC 3339 in UTC, to a second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def describe(target: Target) -> dict[str, Any]:
    """What a result file says of a target before anything was measured; never the key."""
    return {
        "name": target.name,
        "url": target.url,
        "model": target.model,
        "provider": target.provider,
        "own": target.own,
        "precision": target.precision,
        "hardware": target.hardware,
        "price": target.price,
        "hourly": target.hourly,
        "published_tok_s": target.published_tok_s,
        "thinking": target.thinking,
        "note": target.note,
        "error": target.unusable,
        "warm_up": None,
        "summary": None,
        "requests": [],
    }


@contextlib.contextmanager
def claimed(path: Path) -> Iterator[None]:
    """Be the only run that writes `path`. Raises ValueError while another one does, OSError when it cannot be written.

    The claim is a locked file beside it, which is gone in the end; after a crash it may stay and claims nothing.
    """
    beside = path.with_name(f".{path.name}.lock")
    with named(path), beside.open("w") as held:
        if fcntl is not None:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.stat(beside).st_ino != os.fstat(held.fileno()).st_ino:
                    raise BlockingIOError  # the run before ended, and took the file away, between our two steps
            except (BlockingIOError, FileNotFoundError):
                raise ValueError(
                    f"{path} is being written by another run: wait for it, or name another --json"
                ) from None
        try:
            yield
        finally:
            beside.unlink(missing_ok=True)


@contextlib.contextmanager
def named(path: Path) -> Iterator[None]:
    """An OSError within names the file that the user named: not one made beside it, and not none at all."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


def save(path: Path, document: Document) -> None:
    """Write the JSON so that a reader, or a crash, finds the old file or the new one. Raises OSError."""
    with named(path):
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            # errors: half a surrogate pair is no text, but servers can send it and command lines hold it
            with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
                json.dump(document, file, indent=1, ensure_ascii=False, allow_nan=False)
                file.write("\n")
            os.chmod(name, 0o644)
            os.replace(name, path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)
            raise


def load(path: Path, kind: str | None = None) -> Document:
    """Read a result file of this program. Raises ValueError that says what it is instead, OSError if unreadable."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path}: not JSON: {error}") from error
    if not isinstance(found, dict) or found.get("kind") not in ("race", "load"):
        raise ValueError(f"{path}: no result of race or load")
    if found.get("schema") is True or found.get("schema") != SCHEMA:
        raise ValueError(f"{path}: schema {found.get('schema')!r}; this version reads {SCHEMA}")
    if kind is not None and found["kind"] != kind:
        raise ValueError(f"{path}: a result of {found['kind']}, not of {kind}")
    found.setdefault("resumed", 0)
    if wrong := misfit(found, RACE if found["kind"] == "race" else LOAD):
        raise ValueError(f"{path}: not a whole result: {wrong}")
    steps = [*found["points"], *found["settings"]["steps"]] if found["kind"] == "load" else []
    if any((step["concurrency"] is None) is (step["rate"] is None) for step in steps):
        raise ValueError(f"{path}: not a whole result: a step has a number in flight or a rate, and only one")
    return found


def resumed(path: Path, kind: str, settings: dict[str, Any], targets: Sequence[Target], seed: int | None) -> Document:
    """The result in `path`, to be gone on with. Raises ValueError unless it was run with these settings and targets.

    What was drawn then stays: the salt, and the seed unless `seed` asks for one. OSError if it cannot be read.
    """
    document = load(path, kind)
    kept, drawn = document["settings"], {"salt"} | (set() if seed is not None else {"seed"})
    if bool(kept["salt"]) != bool(settings["salt"]):
        raise ValueError(f"{path}: was run {'with' if kept['salt'] else 'without'} a salt; resume it the same way")
    for key in sorted(settings.keys() - drawn):
        if kept.get(key) != settings[key]:
            raise ValueError(f"{path}: was run with another {key}; resume it with the same options")
    then = document["targets"] if kind == "race" else [document["target"]]
    if [(t["name"], t["url"], t["model"]) for t in then] != [(t.name, t.url, t.model) for t in targets]:
        raise ValueError(f"{path}: was run against other targets, or in another order")
    for target, said in zip(targets, then, strict=True):
        said["error"] = target.unusable
    return document | {"finished": None, "resumed": document["resumed"] + 1}


def write_csv(path: Path, document: Document) -> None:
    """One line per counted request, target's name first; unknown is empty. Raises OSError."""
    rows = [{"target": target["name"]} | row for target in document["targets"] for row in target["requests"]]
    columns = list(dict.fromkeys(key for row in rows for key in row)) or ["target"]
    with named(path), path.open("w", newline="", encoding="utf-8", errors="replace") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
