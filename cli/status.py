"""`sluicegate status`: what is true on the machine, beside what the state says. Quiet about what is as it should be."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from sluicegate.provider.engine_text import short

from .faults import claim_of, faults_of, held
from .stack import one_line
from .truth import Truth, look

# In the order they happen; the state sorts them by name.
PHASES = ("machine", "probe", "image", "weights", "cache", "check", "load", "compile", "graphs", "first_token", "front")
DOES = {"prepare": "fetches and checks a release", "activate": "swaps the engine", "front": "sets up the front"}


def run(options: Namespace) -> int:
    truth = look(options.stack)
    faults = list(faults_of(truth))
    if options.json:
        print(json.dumps(as_json(truth, faults)))
        return 1 if faults else 0
    for name, text in [*lines_of(truth), *(("fault", fault) for fault in faults)]:
        print(f"  {name:<9}{text}")
    return 1 if faults else 0


def as_json(truth: Truth, faults: list[str]) -> dict[str, Any]:
    """`host` is the machine's answer, null where there is none; `pulumi.locks` is null where the backend hides them."""
    return {
        "stack": truth.stack.name, "host": truth.there, "unknown": truth.unknown,
        "state": truth.stack.outputs("Engine"), "claim": claim_of(truth)[0], "faults": faults,
        "pulumi": {
            "locks": None if truth.locks is None else [asdict(lock) for lock in truth.locks],
            "pending": [{"type": kind, "name": name} for kind, name in truth.pending()],
            "runs": [asdict(run) for run in truth.runs], "orphans": [asdict(p) for p in truth.orphans],
        },
    }  # fmt: skip


def lines_of(truth: Truth) -> Iterator[tuple[str, str]]:
    engine, there = truth.stack.outputs("Engine"), truth.there
    known = (
        f"{engine['recipe']}, lock {short(engine.get('lock'))}" if engine.get("recipe") else "no engine in the state"
    )
    yield "stack", f"{truth.stack.name}: {known}"
    yield from what_serves(truth)
    phases = engine.get("phases") or {}
    if there and phases:
        named = sorted(phases, key=lambda name: PHASES.index(name) if name in PHASES else len(PHASES))
        yield "start", ", ".join(f"{name} {phases[name]:.1f} s" for name in named)
    if engine.get("lastHealthy"):
        yield "gated", engine["lastHealthy"]["at"]
    yield from machine_lines(truth)
    yield from pulumi_lines(truth)


def what_serves(truth: Truth) -> Iterator[tuple[str, str]]:
    """Engine and front, as the machine says; else as the state does, marked as that."""
    engine, url, there = truth.stack.outputs("Engine"), truth.stack.outputs("Front").get("url"), truth.there
    if there is None:
        cannot = f"cannot tell ({one_line(truth.unknown)})" if truth.unknown else "no machine"
        yield "engine", f"{cannot}; the state says {short(engine.get('serving'))} serves"
        yield "front", f"{'cannot tell' if truth.unknown else 'no machine'}; the state says {url or 'no address'}"
        return
    health = there["health"] + (f" ({one_line(there['why'])})" if there["why"] else "")
    other = there["serving"] != engine.get("lock") and truth.recipe_of(there["serving"])
    serving = short(there["serving"]) + (f" ({other})" if other else "")
    yield "engine", f"{health}, serving {serving}, {there.get('restarts', 0)} restarts"
    for event in there.get("events") or []:
        yield "event", f"{event['t']} {event['event']}: {one_line(event['text'])}"
    front = there["front"] or {}
    where = url or (f"port {front['port']}" if front.get("port") else "no address yet")
    yield "front", f"{'healthy' if front.get('healthy') else 'not answering'}, {where}"


def machine_lines(truth: Truth) -> Iterator[tuple[str, str]]:
    """The claim where it is not simply ours, the jobs that run, and the last one where it did not end well."""
    _, claim, strange = claim_of(truth)
    if strange:
        yield "claim", claim
    for job in truth.jobs:
        yield "job", f"{job} runs now: {DOES.get(job.rpartition('-')[2], 'unknown to this version')}"
    last = (truth.there or {}).get("last_job")
    if last and last["result"] not in ("serving", "prepared"):
        cause = one_line((last["cause"] or {}).get("text") or "it says no cause")
        yield "last job", f"{last['job']} ended {last['result']}: {cause}"


def pulumi_lines(truth: Truth) -> Iterator[tuple[str, str]]:
    """What Pulumi has under way or left behind."""
    for lock in truth.locks or []:
        yield "lock", held(lock)
    for kind, name in truth.pending():
        yield "pending", f"{kind} {name}"
    for process in truth.orphans:
        ours = process.command == "pulumi-resource-sluicegate"
        ends = "it ends by itself" if ours else f"`kill {process.pid}` ends it"
        yield "orphan", f"{process.command} (pid {process.pid}) of a run in this project that has ended: {ends}"
