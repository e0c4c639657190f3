"""What the host program can be asked: each verb, what its spec must hold, and what it answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from .files import said
from .places import Places


class Unusable(Exception):
    """What was asked cannot be understood; the message names the key."""


def _of(module: str, name: str) -> Callable[..., Any]:
    """A function of this program's, imported when it is called: a verb starts as fast as what it needs."""

    def call(*given: Any) -> Any:
        return getattr(import_module(f".{module}", __package__), name)(*given)

    return call


JOBS: dict[str, Callable[[Any, dict[str, Any]], dict[str, Any]]] = {
    "prepare": _of("prepare", "prepare"),
    "activate": _of("activate", "activate"),
    "front": _of("front", "front"),
}
AFTER_KILL = {"activate": _of("activate", "recover")}
ENDS = {
    "engine": _of("machine", "deactivate"),
    "front": _of("machine", "close_front"),
    "machine": _of("machine", "release_claim"),
}


def _revert(spec: dict[str, Any]) -> Any:
    from . import jobs

    folder = Places.of(spec).jobs / Path(spec["job"]).name
    if jobs.alive(folder):
        (folder / "revert").touch()
    return {"job": spec["job"], "running": jobs.alive(folder)}


def _own(spec: dict[str, Any]) -> Any:
    from . import machine

    machine.own(Places.of(spec), spec["token"])
    return {}


def _claimed(spec: dict[str, Any]) -> Any:
    from . import machine

    return {"machine": machine.claimed(Places.of(spec))}


def _deactivate(spec: dict[str, Any]) -> Any:
    if spec["what"] not in ENDS:
        raise Unusable(f"what: {spec['what']!r} is none of {', '.join(ENDS)}")
    return {"done": ENDS[spec["what"]](Places.of(spec), spec["token"])}


def _collect(spec: dict[str, Any]) -> Any:
    """What the cache holds, in bytes; with `sources` first everything in it that no stack needs is removed."""
    from . import release

    root = Path(spec["places"]["root"])
    return {"removed": release.collect_sources(root) if spec.get("sources") else [], "bytes": release.cache_bytes(root)}


VERBS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "probe": _of("probe", "probe"),
    "claim": _of("machine", "claim"),
    "own": _own,
    "claimed": _claimed,
    "status": _of("status", "status"),
    "logs": _of("status", "logs"),
    "revert": _revert,
    "deactivate": _deactivate,
    "collect": _collect,
}

# What a spec must hold, dots into objects.
_PLACED = ("places.root", "places.run", "places.stack")
NEEDS: dict[str, tuple[str, ...]] = {
    "probe": (),
    "claim": ("stack", "stack_id", "token"),
    "own": (*_PLACED, "token"),
    "claimed": _PLACED,
    "status": _PLACED,
    "logs": _PLACED,
    "revert": (*_PLACED, "job"),
    "follow": (*_PLACED, "job", "offset"),
    "deactivate": (*_PLACED, "what", "token"),
    "collect": ("places.root",),
    "prepare": (
        *_PLACED,
        *("digest", "model", "command", "lock.argv", "lock.env", "lock.sources", "lock.engine.source"),
        *(f"engine.{fact}" for fact in ("health", "models", "metrics", "prompts", "patterns")),
        *(f"engine.{seconds}" for seconds in ("steady_s", "drain_s", "stop_s")),
    ),
    "activate": (*_PLACED, "digest", "deadline_s", "revert_s", "token"),
    "front": (
        *_PLACED,
        *("caddy.ref", "caddy.binary", "key", "key_overlap_s", "paths", "hold_s", "model", "token", "deadline_s"),
    ),
}


def check(verb: str, spec: Any) -> None:
    """Raises Unusable, naming every key that is missing: told at once, not by a job that has stopped something."""
    if not isinstance(spec, dict):
        raise Unusable(f"the spec is no JSON object but {type(spec).__name__}")
    missing = [key for key in NEEDS.get(verb, ()) if not _there(spec, key)]
    if missing:
        raise Unusable(f"the spec of `{verb}` lacks {', '.join(missing)}")


def _there(spec: Any, key: str) -> bool:
    for part in key.split("."):
        if not isinstance(spec, dict) or part not in spec:
            return False
        spec = spec[part]
    return True


def fault(e: Exception) -> str:
    """What a verb could not do, in words."""
    return said(e) if isinstance(e, OSError) else str(e) or type(e).__name__


def lines(verb: str, spec: Any) -> Iterator[str]:
    """What a verb prints: its answer, one line of JSON; of a job its id and, with `follow` in the spec, its events.

    Raises Unusable, and whatever the verb itself raises.
    """
    if verb not in NEEDS:
        raise Unusable(f"no verb {verb!r}; allowed: {', '.join(sorted(NEEDS))}")
    check(verb, spec)
    if verb in VERBS:
        yield json.dumps(VERBS[verb](spec), ensure_ascii=False)
        return
    from . import jobs

    places = Places.of(spec)
    if verb == "follow":
        yield from jobs.follow(places.jobs / Path(spec["job"]).name, int(spec["offset"]))
        return
    job = jobs.start(places, verb, spec)
    yield json.dumps({"job": job})
    if spec.get("follow"):
        yield from jobs.follow(places.jobs / job, 0)
