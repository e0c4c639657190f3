"""The `activate` job: the swap as one transaction. The new release serves at its end, or the old one does again."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

from .engine_http import Target, Unanswered, metrics
from .files import locked, read_json, tail, write_json
from .gate import GateFailed, Watch, open_gate
from .jobs import Cancelled, Job, now
from .places import Places, short
from .processes import Proc
from .release import Release, collect, command_of, current
from .status import engine_health

LOCK_WAIT_S = 30
DRAIN_POLL_S = 0.05


class Refused(Exception):
    """This lock failed its gate here before; nothing was stopped to find that out again."""

    kind, transient = "failed before", False


def activate(job: Job, spec: dict[str, Any]) -> dict[str, Any]:
    places, digest = Places.of(spec), spec["digest"]
    with locked(places.home / "lock", f"job {job.id}", LOCK_WAIT_S, job.cancelled):
        new, old = Release(places, digest), current(places)
        serves = old is not None and engine_health(old, 30)[0] != "dead"
        if old and serves and old.digest == digest:
            _own(places, spec)
            return {"result": "serving", "lock": digest, "serving": digest, "gate": _last_gate(old)}
        if serves:
            _refuse_what_failed(places, digest, int(spec.get("retry", 0)))
        _ = new.spec  # KeyError before anything is stopped
        return _swap(job, spec, places, new, old)


def _swap(job: Job, spec: dict[str, Any], places: Places, new: Release, old: Release | None) -> dict[str, Any]:
    watch = None
    try:
        job.check_cancel()
        if old:
            _stop(job, places, old, drain=True)
        watch = _start(job, new, time.monotonic() + float(spec["deadline_s"]), job.sleep)
        _gate(job, new, watch)
    except (GateFailed, Cancelled, OSError, RuntimeError) as e:
        cause, log_tail = _cause(e, new), tail(new.service.log, 20)
        job.emit("first_token", "fail", text=str(e))
        _stop(job, places, new, drain=False)
        if not isinstance(e, Cancelled):
            _remember(places, new.digest, cause, int(spec.get("retry", 0)))
        serving = _revert(job, spec, places, old)
        return {
            "result": "reverted" if serving else "failed",
            "lock": new.digest,
            "serving": serving,
            "gate": watch.results if watch else [],
            "cause": cause,
            "log_tail": log_tail,
        }
    new.open()
    write_json(new.folder / "gate.json", {"gate": watch.results, "at": now()})
    _own(places, spec)
    places.failed(new.digest).unlink(missing_ok=True)
    collect(places, {new.digest} | ({old.digest} if old else set()))
    return {"result": "serving", "lock": new.digest, "serving": new.digest, "gate": watch.results}


def _stop(job: Job, places: Places, release: Release, drain: bool) -> None:
    """Hold new requests, let running ones finish for as long as the engine's facts allow, end the process."""
    places.current_sock.unlink(missing_ok=True)
    if drain:
        job.emit("load", "note", text=f"holding new requests; {short(release.digest)} finishes its running ones")
        engine = release.spec["engine"]
        end, quiet = time.monotonic() + float(engine["drain_s"]), 0
        while time.monotonic() < end and quiet < 2 and not job.cancelled():
            quiet = quiet + 1 if _idle(release, engine) else 0
            time.sleep(DRAIN_POLL_S)
    release.service.stop(None if drain else 2)


def _idle(release: Release, engine: dict[str, Any]) -> bool:
    names = engine["metrics"]
    try:
        seen = metrics(Target(socket=release.socket), names["path"], 1)
    except Unanswered:
        return release.service.child() is None
    return not seen.get(names["running"], 0) and not seen.get(names["waiting"], 0)


def _start(job: Job, release: Release, deadline: float, pause: Any) -> Watch:
    spec = release.spec
    argv, env = command_of(release.places, release.digest, spec)
    job.emit("load", "note", text=f"starting {short(release.digest)}")
    release.service.log.unlink(missing_ok=True)
    release.service.start(argv, env, float(spec["engine"]["stop_s"]), [release.socket])

    def exited() -> str | None:
        if not release.service.exited():
            return None
        return f"exited with code {release.service.state.get('exit')}"

    return Watch(deadline, exited, lambda: _identity(release), pause, lambda text: job.emit("check", "note", text=text))


def _gate(job: Job, release: Release, watch: Watch) -> None:
    spec = release.spec
    engine = spec["engine"] | {"fingerprint_value": release.digest}
    pause, began, log_phase = watch.pause, time.monotonic(), _PhaseLog(job, release.service.log, spec["engine"])

    def pause_and_tell(seconds: float) -> None:
        log_phase.look()
        pause(seconds)

    watch.pause = pause_and_tell
    first = open_gate(watch, Target(socket=release.socket), engine, spec["model"])
    job.phases["first_token"] = round(first.first_s or 0.0, 3)
    job.phases["load"] = round(watch.passed_at["port"] - began, 3)
    job.emit("first_token", "end", text=f"gate passed: {len(watch.results)} checks")


class _PhaseLog:
    """Turns the engine's own log lines into phases, as its facts describe them."""

    def __init__(self, job: Job, log: Path, engine: dict[str, Any]) -> None:
        self.job, self.log = job, log
        self.patterns = [(re.compile(p["match"]), p["phase"]) for p in engine["patterns"] if "phase" in p]
        self.phase, self.since, self.looked = "load", time.monotonic(), 0.0

    def look(self) -> None:
        at = time.monotonic()
        if at - self.looked < 0.5:
            return
        self.looked = at
        for line in reversed(tail(self.log, 40)):
            phase = next((name for pattern, name in self.patterns if pattern.search(line)), None)
            if phase:
                self.phase = phase
                break
        self.job.emit(self.phase, "progress", text=f"{at - self.since:.0f} s")


def _identity(release: Release) -> str:
    """The files the process has mapped lie in the pinned source, which is complete under the lock's reference."""
    ref = str(release.spec["lock"]["engine"]["source"])
    place = release.places.source(ref)
    child = release.service.child()
    if child is None or (read_json(place / "complete") or {}).get("ref") != ref:
        raise GateFailed("identity", f"the process or its source {ref} is gone")
    mapped = _mapped(child)
    if not any(m.startswith(f"{place.resolve()}/") for m in mapped):
        raise GateFailed("identity", f"the process has mapped nothing of {ref}")
    return ref


def _mapped(child: Proc) -> set[str]:
    try:
        lines = Path(f"/proc/{child.pid}/maps").read_text().splitlines()
    except OSError:
        return set()
    return {str(line.split(maxsplit=5)[5]) for line in lines if line.count("/")}


def _revert(job: Job, spec: dict[str, Any], places: Places, old: Release | None) -> str | None:
    """Start the old release again and gate it, within a budget that no cancel cuts. Its digest, or None."""
    if old is None or old.digest == spec["digest"]:
        return None
    job.emit("load", "note", text=f"going back to {short(old.digest)}")
    try:
        watch = _start(job, old, time.monotonic() + float(spec["revert_s"]), time.sleep)
        _gate(job, old, watch)
    except (GateFailed, OSError, RuntimeError, KeyError) as e:
        job.emit("load", "fail", text=f"{short(old.digest)} does not come back: {e}")
        _stop(job, places, old, drain=False)
        return None
    old.open()
    return old.digest


def _cause(error: Exception, release: Release) -> dict[str, Any]:
    """What went wrong, in one word where the engine's log says so."""
    if isinstance(error, Cancelled):
        return {"kind": "cancelled", "text": str(error), "transient": True}
    found: dict[str, Any] = {"kind": "gate", "text": str(error), "transient": False}
    lines = tail(release.service.log, 200)
    for pattern in release.spec["engine"]["patterns"]:
        if "cause" in pattern and any(re.search(pattern["match"], line) for line in lines):
            found |= {
                "kind": pattern["cause"],
                "transient": bool(pattern.get("transient")),
                "mend": pattern.get("mend"),
            }
            break
    return found


def _remember(places: Places, digest: str, cause: dict[str, Any], retry: int) -> None:
    if not cause["transient"]:
        write_json(places.failed(digest), {"lock": digest, "cause": cause, "retry": retry, "at": now()})


def _refuse_what_failed(places: Places, digest: str, retry: int) -> None:
    failed = read_json(places.failed(digest))
    if failed and retry <= failed["retry"]:
        raise Refused(
            f"this lock failed its gate here at {failed['at']} ({failed['cause']['text']}); nothing was "
            f"stopped. To try it again: pulumi config set --path endpoint.retry {failed['retry'] + 1}"
        )


def _own(places: Places, spec: dict[str, Any]) -> None:
    write_json(places.home / "engine-owner.json", {"token": spec["token"]})


def _last_gate(release: Release) -> list[dict[str, Any]]:
    return list((read_json(release.folder / "gate.json") or {}).get("gate", []))
