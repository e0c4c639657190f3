"""The front's key: a file that is read per request, so that a rotation is a file write."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

from .files import Busy, locked, read_json, uptime, write_atomic, write_json
from .processes import boot


def write_key(folder: Path, key: str, overlap_s: float) -> None:
    """The key that it replaces stays good for `overlap_s` seconds, so that clients can move."""
    current, previous = folder / "key", folder / "key.previous"
    with locked(folder / "key.lock", "rotation", 10):
        old = current.read_text() if current.exists() else None
        if old == key and previous.exists() and previous.stat().st_size:
            return
        if old and old != key and overlap_s > 0:
            write_atomic(previous, old)
            write_json(folder / "key.until", {"until": uptime() + overlap_s, "boot": boot()})
        else:
            # A matcher over a file that is absent would compare with nothing: "Bearer " alone must open no door.
            write_atomic(previous, key)
            (folder / "key.until").unlink(missing_ok=True)
        write_atomic(current, key)


def key_fault(folder: Path, sha256: str | None) -> str | None:
    """What is wrong with the key that the front goes by, or None; `sha256` of the right one where that is known."""
    try:
        key, previous = (folder / "key").read_text(), (folder / "key.previous").read_text()
    except (OSError, UnicodeDecodeError) as e:
        return f"a key file of the front cannot be read: {e}"
    if not key or not previous:
        return "a key file of the front is empty"
    if sha256 and hashlib.sha256(key.encode()).hexdigest() != sha256:
        return "the front goes by another key than the stack's"
    return None


def retire_key(folder: Path) -> None:
    """Called by the front's supervisor: end the overlap of a rotated key once its time has passed."""
    if not (folder / "key.until").exists():
        return
    # What cannot be done now (a rotation is at it, the disk is full) is tried again with the next call.
    with suppress(Busy, OSError), locked(folder / "key.lock", "retiring", 0):
        kept = read_json(folder / "key.until") or {}
        until = kept.get("until")
        # Time since boot, as a clock set back would keep the old key good for longer; a reboot ends it.
        if not isinstance(until, (int, float)) or kept.get("boot") != boot() or uptime() >= until:
            write_atomic(folder / "key.previous", (folder / "key").read_text())
            (folder / "key.until").unlink(missing_ok=True)
