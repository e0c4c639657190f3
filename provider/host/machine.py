"""A stack's claim on this machine: who it belongs to, and its end."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from . import jobs
from .files import locked, now, read_json, write_json
from .places import Places, default_root, run_folder, stack_name
from .public import note_of
from .release import collect, services
from .service import Service


class Unusable(Exception):
    """The data folder cannot be made or written."""


class Foreign(Exception):
    """The place is another stack's; nothing was touched."""


def claim(spec: dict[str, Any]) -> dict[str, Any]:
    """Make or adopt the stack's folder: `{root, run, token, adopted}`. Raises Foreign.

    The same rules as for machines in a cloud: everything carries the stack's id, a fresh random token and a phase
    (`creating`, `owned`, `superseded`); only what is not `owned` may be adopted.
    """
    root = Path(spec["root"]).resolve() if spec.get("root") else default_root()
    stack = stack_name(spec["stack"])
    places = Places(root, run_folder(root, stack), stack)
    try:
        there = _take(places, root, stack, spec)
    except OSError as e:
        raise Unusable(
            f"machine.root: {e.filename or root} cannot be used ({e.strerror}); allowed: a folder that can be made and "
            "written here; set sluicegate:machine.root to one"
        ) from e
    return {"root": str(root), "run": str(places.run), "adopted": bool(there and there["phase"] != "owned")}


def _take(places: Places, root: Path, stack: str, spec: dict[str, Any]) -> dict[str, Any] | None:
    """Write the claim down; the one that was there before, if any."""
    with locked(root / "stacks" / f"{stack}.lock", spec["stack_id"], 10):
        note, there = places.home / "machine.json", _claim(places)
        if there and there["stack_id"] != spec["stack_id"]:
            raise Foreign(
                f"{places.home} belongs to another stack of this name (id {there['stack_id']}, claimed "
                f"{there['at']}); destroy that one, or set another sluicegate:machine.root"
            )
        places.make_run()
        kept = {
            "stack_id": spec["stack_id"],
            "token": spec["token"],
            "phase": "creating",
            "at": now(),
            "root": str(root),
            "run": str(places.run),
        }
        write_json(note, kept)
    return there


def _claim(places: Places) -> dict[str, Any] | None:
    """Whose the folder is, or None. Raises Foreign where it cannot be read: a wrong guess ends another's work."""
    note = places.home / "machine.json"
    there = read_json(note)
    if note.exists() and not (there and there.keys() >= {"stack_id", "token", "phase"}):
        raise Foreign(f"{note} cannot be read, so whose the folder is is unknown; if it is yours, remove the file")
    return there


def own(places: Places, token: str) -> None:
    """Mark the claim as known to the stack's state."""
    there = _claim(places)
    if there and there["token"] == token:
        write_json(places.home / "machine.json", there | {"phase": "owned"})


def release_claim(places: Places, token: str) -> bool:
    """End everything of the stack here and remove its folder; False when the claim carries another token."""
    there = _claim(places)
    if there is not None and there["token"] != token:
        return False
    stop_jobs(places)
    Service(places.front).stop()
    for service in services(places):
        service.stop()
    shutil.rmtree(places.home, ignore_errors=True)
    shutil.rmtree(places.run, ignore_errors=True)
    (places.root / "stacks" / f"{places.stack}.lock").unlink(missing_ok=True)
    for empty in (places.run.parent, places.root / "stacks"):
        try:
            os.rmdir(empty)
        except OSError:
            continue
    return True


def stop_jobs(places: Places, verbs: tuple[str, ...] = ("prepare", "activate", "front")) -> None:
    """End the jobs that run: what they were making is about to go."""
    for job in jobs.running(places):
        if job.rpartition("-")[2] in verbs and (proc := jobs.process(places.jobs / job)):
            proc.end(2)


def deactivate(places: Places, token: str) -> bool:
    """Stop the engine and forget its releases, if `token` is the one whose Engine serves; True when it was."""
    if (read_json(places.home / "engine-owner.json") or {}).get("token") != token:
        return False
    stop_jobs(places, ("prepare", "activate"))
    with locked(places.home / "lock", "deactivate", 10):
        places.current_sock.unlink(missing_ok=True)
        for service in services(places):
            service.stop()
        places.current.unlink(missing_ok=True)
        for note in ("engine-owner.json", "wanted.json"):
            (places.home / note).unlink(missing_ok=True)
        collect(places, set())
        shutil.rmtree(places.home / "failed", ignore_errors=True)
    return True


def close_front(places: Places, token: str) -> bool:
    """End the front if `token` is the one that opened it; True when it was."""
    if (note_of(places) or {}).get("token") != token:
        return False
    stop_jobs(places, ("front",))
    with locked(places.home / "front.lock", "deactivate", 10):
        Service(places.front).stop()
        shutil.rmtree(places.front, ignore_errors=True)
    return True
