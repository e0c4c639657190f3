"""What is true on this machine now: read from processes and sockets, never from what was once written."""

from __future__ import annotations

from typing import Any

from . import jobs
from .completion import ask
from .engine_http import Target, Unanswered, get, metrics
from .files import read_json, tail
from .places import Places
from .public import refuses_strangers
from .release import Release, current
from .service import Service


def status(spec: dict[str, Any]) -> dict[str, Any]:
    """`serving` (a lock digest, or null), `health` (healthy, busy, dead, none), `front`, `jobs` that run now."""
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
        "machine": read_json(places.home / "machine.json"),
        "engine_owner": (read_json(places.home / "engine-owner.json") or {}).get("token"),
        "front": _front(places),
    }
    if release and spec.get("engine", True):
        health, why = engine_health(release, float(spec.get("budget_s", 20)))
        answer |= {"current": release.digest, "health": health, "why": why}
        answer |= {"restarts": release.service.state.get("restarts", 0)}
        if health != "dead":
            answer |= {"result": "serving", "serving": release.digest}
    return answer


def engine_health(release: Release, budget_s: float) -> tuple[str, str | None]:
    """healthy; busy (it answers health and its counters move or requests run); dead. With the reason."""
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
    names = engine["metrics"]
    try:
        seen = metrics(target, names["path"])
    except Unanswered:
        seen = {}  # then a completion has to tell
    running, waiting = (seen.get(names[k], 0) for k in ("running", "waiting"))
    if running or waiting:
        return "busy", f"{running:.0f} requests running, {waiting:.0f} waiting"
    try:
        ask(target, release.spec["model"], engine["prompts"]["plain"], 4, budget_s)
    except Unanswered as e:
        return "dead", str(e)
    return "healthy", None


def _front(places: Places) -> dict[str, Any] | None:
    kept = read_json(places.front / "front.json")
    if kept is None or not kept.keys() >= {"port", "url", "token"}:
        return None
    why: str | None = "the front is not running"
    if Service(places.front).child():
        why = refuses_strangers(kept["url"])
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
