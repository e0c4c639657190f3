"""The `activate` job: the swap as one transaction. The new release serves at its end, or the old one does again."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from .engine_http import Target, Unanswered, work
from .files import locked, now, read_json, tail, write_json
from .gate import GateFailed
from .jobs import Job
from .places import Places, short
from .release import Release, collect, current, services
from .starting import cause_of, gate, start, watch_of
from .status import engine_health

LOCK_WAIT_S = 30
MARGIN_S = 600  # what drains and stops may take beside the two deadlines; a lock held for longer is a hang
DRAIN_POLL_S = 0.05


def activate(job: Job, spec: dict[str, Any]) -> dict[str, Any]:
    places, digest = Places.of(spec), spec["digest"]
    limit_s = float(spec["deadline_s"]) + float(spec["revert_s"]) + MARGIN_S
    with locked(places.home / "lock", f"job {job.id}", LOCK_WAIT_S, job.check_cancel, limit_s):
        job.check_cancel()
        new, old = Release(places, digest), current(places)
        _ = new.spec  # raises before anything is stopped
        if old and engine_health(old, 30)[0] != "dead":
            if old.digest == digest:
                if seen := _gated(job, spec, old):
                    _own(places, spec)
                    return {"result": "serving", "lock": digest, "serving": digest, "gate": seen["gate"], "was": seen}
            elif cause := _failed_before(places, digest, int(spec.get("retry", 0))):
                return {"result": "failed", "lock": digest, "serving": old.digest, "cause": cause}
        return _swap(job, spec, places, new, old)


def _swap(job: Job, spec: dict[str, Any], places: Places, new: Release, old: Release | None) -> dict[str, Any]:
    watch = None
    try:
        if old:
            _drain(job, places, old)
        places.current_sock.unlink(missing_ok=True)
        for service in services(places):  # the old one, and whatever a job that was killed left running
            service.stop()
        watch = start(job, new, job.sleep, float(spec["deadline_s"]))
        gate(job, new, watch, job.cancelled)
        new.open()
    except Exception as e:  # noqa: BLE001 - whatever it was, the old one must come back
        cause, log_tail = cause_of(e, new), tail(new.service.log, 20) if watch else []
        job.emit("first_token", "fail", text=str(e))
        if watch:
            new.service.stop(2)
        serving = _revert(job, spec, places, old)
        if not cause["transient"]:
            failed = {"lock": new.digest, "cause": cause, "retry": int(spec.get("retry", 0)), "at": now()}
            with suppress(OSError):  # on a full disk it is only found out once more
                write_json(places.failed(new.digest), failed)
        return {
            "result": "reverted" if serving else "failed",
            "lock": new.digest,
            "serving": serving,
            "gate": watch.results if watch else [],
            "cause": cause,
            "log_tail": log_tail,
        }
    _own(places, spec)
    places.failed(new.digest).unlink(missing_ok=True)
    collect(places, {new.digest} | ({old.digest} if old else set()))
    return {"result": "serving", "lock": new.digest, "serving": new.digest, "gate": watch.results}


def recover(job: Job, spec: dict[str, Any]) -> dict[str, Any]:
    """After the job's worker was killed: what served before serves again; what was let through already goes on.

    The `current` link moves only once a gate has passed, so it says which of the two is right.
    """
    places, digest = Places.of(spec), spec["digest"]
    cause = {"kind": "killed", "text": "the job that made the change was killed", "transient": True}
    with locked(places.home / "lock", f"job {job.id}", LOCK_WAIT_S):
        right = current(places)
        for service in services(places):
            if right is None or service != right.service:
                service.stop(2)
        if right is None:
            return {"result": "failed", "lock": digest, "cause": cause}
        if right.digest == digest and right.service.child() and (seen := _gated(job, spec, right)):
            right.open()
            _own(places, spec)
            return {"result": "serving", "lock": digest, "serving": digest, "gate": seen["gate"], "was": seen}
        serving = _revert(job, spec, places, right)
        return {"result": "reverted" if serving else "failed", "lock": digest, "serving": serving, "cause": cause}


def _drain(job: Job, places: Places, old: Release) -> None:
    """Hold new requests and let running ones finish, for as long as the engine's facts allow."""
    job.check_cancel()
    engine = old.spec["engine"]
    places.current_sock.unlink(missing_ok=True)
    job.emit("load", "note", text=f"holding new requests; {short(old.digest)} finishes its running ones")
    end, quiet = time.monotonic() + float(engine["drain_s"]), 0
    while time.monotonic() < end and quiet < 2:
        quiet = quiet + 1 if _idle(old, engine) else 0
        job.sleep(DRAIN_POLL_S)


def _idle(release: Release, engine: dict[str, Any]) -> bool:
    try:
        return not work(Target(socket=release.socket), engine, 1).load
    except Unanswered:
        return release.service.child() is None


def _revert(job: Job, spec: dict[str, Any], places: Places, old: Release | None) -> str | None:
    """Make the old release serve again, gated, within a budget that no cancel cuts. Its digest, or None."""
    if old is None:
        return None
    try:
        if old.service.child() is None:
            if old.digest == spec["digest"]:
                return None
            job.emit("load", "note", text=f"going back to {short(old.digest)}")
            old.service.stop()  # its supervisor may be waiting to start it once more
            gate(job, old, start(job, old, time.sleep, float(spec["revert_s"])))
        old.open()
    except Exception as e:  # noqa: BLE001 - the job's answer says that nothing serves
        job.emit("load", "fail", text=f"{short(old.digest)} does not come back: {e}")
        places.current_sock.unlink(missing_ok=True)
        old.service.stop(2)
        return None
    return old.digest


def _gated(job: Job, spec: dict[str, Any], release: Release) -> dict[str, Any] | None:
    """The record of the running release's gate: `gate` and `phases`. Without one it is gated now; None: it fails."""
    note = release.folder / "gate.json"
    if (seen := read_json(note)) and seen.get("gate"):
        return seen
    watch = watch_of(job, release, job.sleep, float(spec["deadline_s"]))
    try:
        gate(job, release, watch, job.cancelled)
    except GateFailed as e:
        job.emit("check", "note", text=f"what runs fails its gate and is started again: {e}")
        return None
    return read_json(note)


def _failed_before(places: Places, digest: str, retry: int) -> dict[str, Any] | None:
    """Why nothing is stopped to find out once more that this lock fails here, or None."""
    failed = read_json(places.failed(digest))
    if not failed or retry > failed["retry"]:
        return None
    # What matters comes first: a long cause is cut.
    text = f"nothing was stopped: this lock failed its gate here at {failed['at']}: {failed['cause']['text']}"
    return {"kind": "failed before", "text": text, "transient": False, "retry": failed["retry"] + 1}


def _own(places: Places, spec: dict[str, Any]) -> None:
    write_json(places.home / "engine-owner.json", {"token": spec["token"]})
