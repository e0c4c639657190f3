"""What is true on this machine now: read from processes and sockets, never from what was once written."""

from __future__ import annotations

import time
from typing import Any

from . import jobs
from .completion import ask
from .engine_http import Target, Unanswered, get, work
from .files import read_json, tail
from .keyfile import key_fault
from .machine import claimed
from .places import Places
from .public import note_of, refuses_strangers
from .release import Release, current
from .service import Service

LOOK_S = 0.25


def status(spec: dict[str, Any]) -> dict[str, Any]:
    """`serving` (a lock digest, or null), `health` (healthy, busy, dead, none), `front`, `jobs` that run now.

    With `key_sha256`, the hex digest of the key that is meant, a front that lets in by another one is not healthy.
    """
    places = Places.of(spec)
    release = current(places)
    running = jobs.running(places)
    answer: dict[str, Any] = {
        "result": "down",
        "serving": None,
        "health": "none",
        "why": None,
        "jobs": running,
        "last_job": _last(places),
        "machine": claimed(places),
        "engine_owner": (read_json(places.home / "engine-owner.json") or {}).get("token"),
        "front": _front(places, spec.get("key_sha256")),
    }
    if release and spec.get("engine", True):
        health, why = engine_health(release, float(spec.get("budget_s", 20)))
        answer |= {"current": release.digest, "health": health, "why": why}
        answer |= {"restarts": release.service.state.get("restarts", 0), "events": release.service.events()[-3:]}
        if health != "dead":
            answer |= {"result": "serving", "serving": release.digest}
    return answer


def engine_health(release: Release, budget_s: float) -> tuple[str, str | None]:
    """healthy; busy (requests run or wait, and tokens move: it is asked for none); dead. With the reason.

    `budget_s` is how long tokens may stand still, and then how long a completion of its own may take.
    """
    if release.service.child() is None:
        return "dead", f"the engine is not running (last exit code {release.service.state.get('exit')})"
    if not release.places.current_sock.exists():
        return "dead", "the front's link to the engine is gone"
    engine, target = release.spec["engine"], Target(socket=release.places.current_sock)
    try:
        code, _ = get(target, engine["health"], 5)
        if code != 200:
            return "dead", f"{engine['health']} answers {code}"
    except Unanswered as e:
        return "dead", str(e)
    end, standing = time.monotonic() + budget_s, ""
    try:
        first = seen = work(target, engine)
        while seen.load and time.monotonic() < end:
            if seen.moved != first.moved:
                return "busy", f"{seen.load}; tokens move"
            standing = f"{seen.load}, no token moved in {budget_s:g} s; "
            time.sleep(LOOK_S)
            seen = work(target, engine)
        standing = standing if seen.load else ""
    except Unanswered:
        pass  # without counters a completion has to tell
    try:
        ask(target, release.spec["model"], engine["prompts"]["plain"], 4, budget_s)
    except Unanswered as e:
        return "dead", f"{standing}{e}"
    return "healthy", None


def _front(places: Places, key_sha256: str | None) -> dict[str, Any] | None:
    kept = note_of(places)
    if kept is None:
        return None
    why: str | None = "the front is not running"
    if Service(places.front).child():
        why = refuses_strangers(kept["url"]) or key_fault(places.front, key_sha256)
    return {"port": kept["port"], "token": kept["token"], "healthy": why is None, "why": why}


def _last(places: Places) -> dict[str, Any] | None:
    """Id and result of the newest job that ended."""
    for folder in sorted(places.jobs.iterdir(), reverse=True) if places.jobs.is_dir() else []:
        result = jobs.result_of(folder)
        if result:
            return {"job": folder.name, "result": result["result"], "cause": result.get("cause")}
    return None


def logs(spec: dict[str, Any]) -> list[str]:
    """The last lines of the engine's log (`what`: engine) or the front's (`what`: front)."""
    places = Places.of(spec)
    service = Service(places.front)
    if spec.get("what", "engine") == "engine":
        release = current(places)
        if release is None:
            return []
        service = release.service
    return tail(service.log, int(spec.get("lines", 100)), 1 << 20)
