"""A stack's claim on this machine: who it belongs to, and its end."""

from __future__ import annotations

import os
import shutil
from contextlib import AbstractContextManager
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
    """Make the stack's folder, or take the claim on it over: `{root, run}`. Raises Foreign, Unusable.

    The same rules as for machines in a cloud: a claim carries the stack's id, its resource's name, a fresh random token
    and a phase. But a place on this machine cannot be bought twice. So a claim on one that is `owned` waits beside it
    as `next`, and the owner goes on as if nothing had been asked; with `own` the next one becomes the owner. The one
    before is superseded then: it is no longer written down, holds nothing, and its end ends nothing. A claim that was
    never owned is replaced at once: it is what a killed run left.
    """
    root = Path(spec["root"]).resolve() if spec.get("root") else default_root()
    stack = stack_name(spec["stack"])
    try:
        places = _take(root, stack, spec)
    except OSError as e:
        raise Unusable(
            f"machine.root: {e.filename or root} cannot be used ({e.strerror}); allowed: a folder that can be made and "
            "written here; set sluicegate:machine.root to one"
        ) from e
    return {"root": str(root), "run": str(places.run)}


def _take(root: Path, stack: str, spec: dict[str, Any]) -> Places:
    """Write the claim down; its places."""
    places = Places(root, run_folder(root, stack, bool(spec.get("units"))), stack)
    with _alone(places, spec["stack_id"]):
        there = claimed(places)
        if there and there["stack_id"] != spec["stack_id"]:
            raise Foreign(
                f"{places.home} belongs to another stack of this name (id {there['stack_id']}, claimed "
                f"{there['at']}); destroy that one, or set another sluicegate:machine.root"
            )
        if there and (run := there.get("run")) and Path(run).is_dir():
            places = Places(root, Path(run), stack)  # what serves has its sockets there
        places.make_run()
        note = {"stack_id": spec["stack_id"], "root": str(root), "run": str(places.run)}
        mine = {"token": spec["token"], "name": spec.get("name"), "phase": "creating", "at": now()}
        note = there | note | {"next": mine} if there and there["phase"] == "owned" else note | mine
        write_json(_note(places), note)
    return places


def _note(places: Places) -> Path:
    return places.home / "machine.json"


def _alone(places: Places, owner: str) -> AbstractContextManager[None]:
    """Nobody else changes the claim meanwhile."""
    return locked(places.root / "stacks" / f"{places.stack}.lock", owner, 10)


def claimed(places: Places) -> dict[str, Any] | None:
    """Whose the folder is, or None. Raises Foreign where it cannot be read: a wrong guess ends another's work."""
    note = _note(places)
    there = read_json(note)
    if note.exists() and not (there and there.keys() >= {"stack_id", "token", "phase"}):
        raise Foreign(f"{note} cannot be read, so whose the folder is is unknown; if it is yours, remove the file")
    return there


def own(places: Places, token: str) -> None:
    """Mark the claim as known to the stack's state; the owner before is superseded. Raises Foreign when it is gone."""
    there = claimed(places)
    if there:
        with _alone(places, there["stack_id"]):
            there = claimed(places) or {}
            if there.get("next", {}).get("token") == token:
                there |= there.pop("next")
            if there.get("token") == token:
                write_json(_note(places), there | {"phase": "owned"})
                return
    raise Foreign(f"the claim on {places.home} is gone, or another run has taken it over; run `pulumi up --refresh`")


def release_claim(places: Places, token: str) -> bool:
    """End everything of the stack here and remove its folder; False when the claim carries another token.

    A claim that still waits beside the owner's holds nothing: only it is taken back.
    """
    there = claimed(places)
    if there is not None and there["token"] != token:
        return _withdraw(places, token, there["stack_id"])
    stop_jobs(places)
    Service(places.front).stop()
    for service in services(places):
        service.stop()
    if places.units:
        places.units.sweep(places.home)  # of a folder that was swept away nobody else knows
    shutil.rmtree(places.home, ignore_errors=True)
    shutil.rmtree(places.run, ignore_errors=True)
    (places.root / "stacks" / f"{places.stack}.lock").unlink(missing_ok=True)
    for empty in (places.run.parent, places.root / "stacks"):
        try:
            os.rmdir(empty)
        except OSError:
            continue
    return True


def _withdraw(places: Places, token: str, owner: str) -> bool:
    with _alone(places, owner):
        there = claimed(places) or {}
        if there.get("next", {}).get("token") != token:
            return False
        del there["next"]
        write_json(_note(places), there)
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
