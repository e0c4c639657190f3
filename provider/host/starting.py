"""Starting a release and gating it: what `activate` does to the new one, and to the old one when it comes back."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .engine_http import Target, Unanswered
from .files import masked, now, read_json, tail, write_json
from .gate import GateFailed, Watch, open_gate
from .jobs import Cancelled, Job
from .places import short
from .processes import Proc
from .release import Release, command_of

LEAST_DEADLINE_S = 60  # of a start whose last took seconds: a busy machine may be several times slower

SUPERVISOR_KILLED = "went with its supervisor, which was killed"

Pause = Callable[[float], None]


def start(job: Job, release: Release, pause: Pause, deadline_s: float) -> Watch:
    """Start the release's engine; what the gate is to watch. `pause` sleeps, and raises when asked to give up.

    A lock that has started here before gets three times what it took then, never more than `deadline_s`.
    """
    spec = release.spec
    argv, env = command_of(release.places, release.digest, spec)
    job.emit("load", "note", text=f"starting {short(release.digest)}")
    release.service.log.unlink(missing_ok=True)
    (release.folder / "gate.json").unlink(missing_ok=True)  # it speaks of the process that was gated
    engine = spec["engine"]
    probe = None
    if engine.get("stall"):
        probe = {"socket": str(release.socket), "model": spec["model"]}
        probe |= {name: engine[name] for name in ("metrics", "prompts", "stall")}
    places, sockets = release.places, [release.socket]
    links = (places.current, places.current_sock)
    release.service.start(argv, env, float(engine["stop_s"]), sockets, probe, places.units, links)
    before = _starts(release).get(release.digest)
    return watch_of(job, release, pause, min(deadline_s, max(3 * before, LEAST_DEADLINE_S)) if before else deadline_s)


def _starts(release: Release) -> dict[str, float]:
    """Lock digest -> seconds that its last good start took on this machine."""
    noted = read_json(release.places.home / "starts.json") or {}
    return {digest: took for digest, took in noted.items() if isinstance(took, (int, float))}


def watch_of(job: Job, release: Release, pause: Pause, deadline_s: float) -> Watch:
    log = _PhaseLog(job, release.service.log, release.spec["engine"])

    def exited() -> str | None:
        if not release.service.exited():
            return None
        return SUPERVISOR_KILLED if release.service.lost() else f"exited with code {release.service.exit_code()}"

    def pause_and_tell(seconds: float) -> None:
        log.look()
        pause(seconds)

    deadline = time.monotonic() + deadline_s
    return Watch(
        deadline, exited, lambda: _identity(release), pause_and_tell, lambda text: job.emit("check", "note", text=text)
    )


def gate(job: Job, release: Release, watch: Watch, give_up: Callable[[], bool] = lambda: False) -> None:
    """Every check of the gate against the release's own socket; written down once passed. Raises GateFailed."""
    spec, began = release.spec, time.monotonic()
    facts = spec["engine"] | {"fingerprint_value": release.digest}
    first = open_gate(watch, Target(socket=release.socket, give_up=give_up), facts, spec["model"])
    job.phases["first_token"] = round(first.first_s or 0.0, 3)
    job.phases["load"] = round(watch.passed_at["port"] - began, 3)
    starts = _starts(release) | {release.digest: round(time.monotonic() - began, 3)}
    write_json(release.places.home / "starts.json", starts)
    write_json(release.folder / "gate.json", {"gate": watch.results, "phases": job.phases, "at": now()})
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
        raise Unanswered(f"the process or its source {ref} is gone")
    if not any(m.startswith(f"{place.resolve()}/") for m in _mapped(child)):
        raise Unanswered(f"the process has mapped nothing of {ref}")
    return ref


def _mapped(child: Proc) -> set[str]:
    try:
        lines = Path(f"/proc/{child.pid}/maps").read_text(errors="replace").splitlines()
    except OSError:
        return set()
    return {line.split(maxsplit=5)[5] for line in lines if "/" in line}


def cause_of(error: Exception, release: Release) -> dict[str, Any]:
    """What went wrong, in one word where the engine's log says so. Only a gate's verdict speaks against the lock."""
    if isinstance(error, Cancelled):
        return {"kind": "cancelled", "text": str(error), "transient": True}
    if not isinstance(error, GateFailed):
        return {"kind": "machine", "text": f"{type(error).__name__}: {error}", "transient": True}
    text = masked(str(error))
    if SUPERVISOR_KILLED in text:
        return {"kind": "machine", "text": text, "transient": True}
    lines = [*tail(release.service.log, 200), text]
    for pattern in release.spec["engine"]["patterns"]:
        if "cause" in pattern and any(re.search(pattern["match"], line) for line in lines):
            kind, transient, mend = pattern["cause"], bool(pattern.get("transient")), pattern.get("mend")
            return {"kind": kind, "text": text, "transient": transient, "mend": mend}
    return {"kind": "gate", "text": text, "transient": False}
