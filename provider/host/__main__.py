"""`python -m sluicegate.provider.host VERB`: JSON in on stdin, JSON lines out.

Answers to a verb are one line; `{"error": "…", "kind": "…"}` and exit code 1 when it could not be done.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import activate, front, jobs, machine, prepare, probe, release, service, status
from .files import read_json
from .places import Places

JOBS: dict[str, Callable[[jobs.Job, dict[str, Any]], dict[str, Any]]] = {
    "prepare": prepare.prepare,
    "activate": activate.activate,
    "front": front.front,
}


def _start(verb: str) -> Callable[[dict[str, Any]], Any]:
    return lambda spec: {"job": jobs.start(Places.of(spec), verb, spec)}


def _revert(spec: dict[str, Any]) -> Any:
    folder = Places.of(spec).jobs / spec["job"]
    if jobs.alive(folder):
        (folder / "revert").touch()
    return {"job": spec["job"], "running": jobs.alive(folder)}


def _own(spec: dict[str, Any]) -> Any:
    machine.own(Places.of(spec), spec["token"])
    return {}


def _claimed(spec: dict[str, Any]) -> Any:
    return {"machine": read_json(Places.of(spec).home / "machine.json")}


def _deactivate(spec: dict[str, Any]) -> Any:
    end = {"engine": machine.deactivate, "front": front.close, "machine": machine.release_claim}[spec["what"]]
    return {"done": end(Places.of(spec), spec["token"])}


def _collect(spec: dict[str, Any]) -> Any:
    """What the cache holds, in bytes; with `sources` first everything in it that no stack needs is removed."""
    root = Places.of(spec).root
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


def main(argv: list[str]) -> int:
    verb, *words = argv or [""]
    if verb == "supervise":
        folder = Path(words[0])
        return service.supervise(folder, lambda: front.retire_key(folder))
    if verb == "job":
        return jobs.run(Path(words[0]), JOBS)
    if verb == "follow":
        for line in jobs.follow(Path(words[0]), int(words[1])):
            print(line, flush=True)
        return 0
    if verb not in VERBS:
        print(
            json.dumps(
                {"error": f"no verb {verb!r}; allowed: {', '.join(sorted([*VERBS, 'follow']))}", "kind": "usage"}
            )
        )
        return 2
    try:
        print(json.dumps(VERBS[verb](json.load(sys.stdin)), ensure_ascii=False))
    except Exception as e:  # noqa: BLE001 - the caller gets every fault as an answer
        print(json.dumps({"error": str(e) or type(e).__name__, "kind": type(e).__name__}))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
