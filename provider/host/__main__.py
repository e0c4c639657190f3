"""`python -m sluicegate.provider.host VERB`: JSON in on stdin, JSON lines out.

Answers to a verb are one line; `{"error": "…", "kind": "…"}` and exit code 1 when it could not be done (2: not asked
rightly).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import activate, front, jobs, machine, prepare, probe, release, status, supervise
from .files import read_json
from .keyfile import retire_key
from .places import Places

JOBS: dict[str, Callable[[jobs.Job, dict[str, Any]], dict[str, Any]]] = {
    "prepare": prepare.prepare,
    "activate": activate.activate,
    "front": front.front,
}
ENDS = {"engine": machine.deactivate, "front": machine.close_front, "machine": machine.release_claim}


class Unusable(Exception):
    """What was asked cannot be understood; the message names the key."""


def _start(verb: str) -> Callable[[dict[str, Any]], Any]:
    return lambda spec: {"job": jobs.start(Places.of(spec), verb, spec)}


def _revert(spec: dict[str, Any]) -> Any:
    folder = Places.of(spec).jobs / Path(spec["job"]).name
    if jobs.alive(folder):
        (folder / "revert").touch()
    return {"job": spec["job"], "running": jobs.alive(folder)}


def _own(spec: dict[str, Any]) -> Any:
    machine.own(Places.of(spec), spec["token"])
    return {}


def _claimed(spec: dict[str, Any]) -> Any:
    return {"machine": read_json(Places.of(spec).home / "machine.json")}


def _deactivate(spec: dict[str, Any]) -> Any:
    if spec["what"] not in ENDS:
        raise Unusable(f"what: {spec['what']!r} is none of {', '.join(ENDS)}")
    return {"done": ENDS[spec["what"]](Places.of(spec), spec["token"])}


def _collect(spec: dict[str, Any]) -> Any:
    """What the cache holds, in bytes; with `sources` first everything in it that no stack needs is removed."""
    root = Path(spec["places"]["root"])
    return {"removed": release.collect_sources(root) if spec.get("sources") else [], "bytes": release.cache_bytes(root)}


VERBS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "probe": probe.probe,
    "claim": machine.claim,
    "own": _own,
    "claimed": _claimed,
    "status": status.status,
    "logs": status.logs,
    "revert": _revert,
    "deactivate": _deactivate,
    "collect": _collect,
    **{verb: _start(verb) for verb in JOBS},
}

# What a spec must hold, dots into objects: missing keys are told at once, not by a job that has stopped something.
_PLACED = ("places.root", "places.run", "places.stack")
NEEDS: dict[str, tuple[str, ...]] = {
    "claim": ("stack", "stack_id", "token"),
    "own": (*_PLACED, "token"),
    "claimed": _PLACED,
    "status": _PLACED,
    "logs": _PLACED,
    "revert": (*_PLACED, "job"),
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


def _spec(verb: str, text: str) -> dict[str, Any]:
    try:
        spec = json.loads(text)
    except ValueError as e:
        raise Unusable(f"stdin is not JSON: {e}") from None
    if not isinstance(spec, dict):
        raise Unusable(f"stdin is no JSON object but {type(spec).__name__}")
    missing = [key for key in NEEDS.get(verb, ()) if not _there(spec, key)]
    if missing:
        raise Unusable(f"the spec of `{verb}` lacks {', '.join(missing)}")
    return spec


def _there(spec: Any, key: str) -> bool:
    for part in key.split("."):
        if not isinstance(spec, dict) or part not in spec:
            return False
        spec = spec[part]
    return True


def main(argv: list[str]) -> int:
    verb, *words = argv or [""]
    if verb == "supervise":
        folder = Path(words[0])
        return supervise.supervise(folder, lambda: retire_key(folder))
    if verb == "job":
        return jobs.run(Path(words[0]), JOBS)
    try:
        if verb == "follow":
            if len(words) != 2 or not words[1].isdecimal():
                raise Unusable("usage: follow JOB_FOLDER OFFSET")
            for line in jobs.follow(Path(words[0]), int(words[1])):
                print(line, flush=True)
            return 0
        if verb not in VERBS:
            raise Unusable(f"no verb {verb!r}; allowed: {', '.join(sorted([*VERBS, 'follow']))}")
        print(json.dumps(VERBS[verb](_spec(verb, sys.stdin.read())), ensure_ascii=False))
    except Unusable as e:
        print(json.dumps({"error": str(e), "kind": "usage"}))
        return 2
    except Exception as e:  # noqa: BLE001 - the caller gets every fault as an answer
        print(json.dumps({"error": str(e) or type(e).__name__, "kind": type(e).__name__}))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
