"""Stamps: a finished step leaves the hash of all it depended on, so that the next run knows in microseconds."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path


def fingerprint(files: Iterable[Path] = (), facts: Iterable[object] = ()) -> str:
    """Hash of the files' bytes and of the facts' texts; a missing file counts as such."""
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"file {path.name}\n".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest() if path.exists() else b"absent")
    for fact in facts:
        digest.update(f"\nfact {fact}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()


def holds(stamp: Path, wanted: str, results: Iterable[Path] = ()) -> bool:
    """Whether the step was finished for `wanted` and what it made is still there."""
    return (
        stamp.is_file() and os.fsdecode(stamp.read_bytes()).strip() == wanted and all(path.exists() for path in results)
    )


def write(stamp: Path, value: str) -> None:
    """Written last, after everything the step made."""
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.write_bytes(os.fsencode(value + "\n"))
