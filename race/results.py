"""The result files: the JSON, written whole or not at all, and the CSV, a line per request."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .targets import Target

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


def save(path: Path, document: Document) -> None:
    """Write the JSON so that a reader, or a crash, finds the old file or the new one. Raises OSError."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
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
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: not JSON: {error}") from error
    if not isinstance(found, dict) or found.get("kind") not in ("race", "load"):
        raise ValueError(f"{path}: no result of race or load")
    if found.get("schema") != SCHEMA:
        raise ValueError(f"{path}: schema {found.get('schema')!r}; this version reads {SCHEMA}")
    if kind is not None and found["kind"] != kind:
        raise ValueError(f"{path}: a result of {found['kind']}, not of {kind}")
    return found


def write_csv(path: Path, document: Document) -> None:
    """One line per counted request, target's name first; unknown is empty. Raises OSError."""
    rows = [{"target": target["name"]} | row for target in document["targets"] for row in target["requests"]]
    columns = list(dict.fromkeys(key for row in rows for key in row)) or ["target"]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
