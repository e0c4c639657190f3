"""A stack's claim on this machine: who it belongs to, and its end."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from .files import locked, read_json, write_json
from .jobs import alive, now
from .places import Places, default_root, run_folder
from .processes import Proc, end
from .release import collect
from .service import Service


class Foreign(Exception):
    """The place is another stack's; nothing was touched."""


def claim(spec: dict[str, Any]) -> dict[str, Any]:
    """Make or adopt the stack's folder: `{root, run, token, adopted}`. Raises Foreign.

    The same rules as for machines in a cloud: everything carries the stack's id, a fresh random token and a phase
    (`creating`, `owned`, `superseded`); only what is not `owned` may be adopted.
    """
    root = Path(spec["root"]).resolve() if spec.get("root") else default_root()
    places = Places(root, run_folder(root, spec["stack"]), spec["stack"])
    with locked(root / "stacks" / f"{spec['stack']}.lock", spec["stack_id"], 10):
        note = places.home / "machine.json"
        there = read_json(note)
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
    return {"root": str(root), "run": str(places.run), "adopted": bool(there and there["phase"] != "owned")}


def own(places: Places, token: str) -> None:
    """Mark the claim as known to the stack's state."""
    there = read_json(places.home / "machine.json")
    if there and there["token"] == token:
        write_json(places.home / "machine.json", there | {"phase": "owned"})


def release_claim(places: Places, token: str) -> bool:
    """End everything of the stack here and remove its folder; False when the claim carries another token."""
    there = read_json(places.home / "machine.json")
    if there is not None and there["token"] != token:
        return False
    stop_jobs(places)
    Service(places.front).stop()
    for folder in (places.home / "releases").glob("*/engine"):
        Service(folder).stop()
    shutil.rmtree(places.home, ignore_errors=True)
    shutil.rmtree(places.run, ignore_errors=True)
    (places.root / "stacks" / f"{places.stack}.lock").unlink(missing_ok=True)
    for empty in (places.run.parent, places.root / "stacks"):
        try:
            os.rmdir(empty)
        except OSError:
            continue
    return True


def stop_jobs(places: Places) -> None:
    for folder in places.jobs.iterdir() if places.jobs.is_dir() else []:
        if alive(folder):
            (folder / "revert").touch()
            proc = Proc.read((read_json(folder / "job.json") or {}).get("process"))
            end([proc] if proc else [], 10)


def deactivate(places: Places, token: str) -> bool:
    """Stop the engine and forget its releases, if `token` is the one whose Engine serves; True when it was."""
    if (read_json(places.home / "engine-owner.json") or {}).get("token") != token:
        return False
    places.current_sock.unlink(missing_ok=True)
    for folder in (places.home / "releases").glob("*/engine"):
        Service(folder).stop()
    places.current.unlink(missing_ok=True)
    (places.home / "engine-owner.json").unlink(missing_ok=True)
    collect(places, set())
    shutil.rmtree(places.home / "failed", ignore_errors=True)
    return True
