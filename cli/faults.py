"""Where a stack's machine, its state and Pulumi's own notes disagree, and what mends it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sluicegate.provider.engine_text import short

from .runs import Lock
from .stack import one_line
from .truth import Truth


def held(lock: Lock) -> str:
    alive = {True: "which still runs", False: "which has ended", None: "which cannot be looked at from here"}
    return f"Pulumi's, held {f'since {lock.since} ' if lock.since else ''}by {lock.by}, {alive[lock.alive]}"


def claim_of(truth: Truth) -> tuple[dict[str, Any] | None, str, bool]:
    """The machine's claim as `{phase, at, mine, waits?}`, as text, and whether there is something to say of it."""
    claim, state = truth.claim, truth.stack.outputs("Machine")
    if claim is None:
        return None, "none", False
    if truth.stack_id and claim["stack_id"] != truth.stack_id:
        mine, whose = False, "another stack's of this name"
    elif state.get("token"):
        mine = claim["token"] == state["token"]
        whose = "this stack's" if mine else "another claim of this stack, made by a run that the state does not know"
    else:
        mine, whose = False, "of a run that the state does not know"
    found = {"phase": claim["phase"], "at": claim.get("at"), "mine": mine}
    text, strange = f"{whose}, {claim['phase']} since {claim.get('at')}", not mine or claim["phase"] != "owned"
    if waits := claim.get("next"):
        found["waits"] = waits["at"]
        text, strange = f"{text}; one made at {waits['at']} waits to take it over", True
    return found, text, strange


def mend_of(truth: Truth) -> str:
    """What puts right whatever disagrees: one thing at a time, the same for all. `unlock` says what comes after it."""
    stack = f"--stack {truth.stack.name}"
    if truth.at_work:
        return f"wait for {truth.at_work}, which is at it"
    if truth.locks or truth.pending("creating"):
        return f"run `sluicegate unlock {stack}`"
    return f"run `pulumi up --refresh {stack}`"


def faults_of(truth: Truth) -> Iterator[str]:
    """Where the machine, the state and Pulumi's own notes disagree, each with the command that mends it."""
    mend = mend_of(truth)
    if truth.unknown:
        yield f"cannot tell what serves: {one_line(truth.unknown)}: {mend}"
    elif truth.claim is None:
        yield f"the machine has no claim of this stack{' any more' if truth.stack.outputs('Machine') else ''}: {mend}"
    else:
        yield from _drift(truth, mend)
    if truth.at_work:
        return  # what it holds and does is no fault
    for lock in truth.locks or []:
        look_there = "" if lock.alive is False else "make sure there that it has ended; "
        yield f"no change can be made, the lock is {held(lock)}: {look_there}{mend}"
    for kind, name in truth.pending():
        yield f"an earlier run was cut while {kind} {name}: {mend}"
    for job in truth.jobs:
        yield f"{job} runs and no run of pulumi here follows it: it finishes by itself; then {mend}"


def _drift(truth: Truth, mend: str) -> Iterator[str]:
    there, engine, front = truth.there or {}, truth.stack.outputs("Engine"), truth.stack.outputs("Front")
    claim, text, _ = claim_of(truth)
    if claim and not claim["mine"]:
        yield f"the claim on the machine is {text}: {mend}"
    lock = engine.get("lock")
    if there["result"] != "serving":
        yield f"nothing serves: {one_line(there['why'] or 'no release was ever gated')}; {mend}"
    elif not lock:
        yield f"{short(there['serving'])} serves, the state has no engine that does: {mend}"
    elif there["serving"] != lock:
        yield f"{short(there['serving'])} serves, the state says {short(lock)}: {mend}"
    if engine and there["engine_owner"] not in (None, engine.get("token")):
        yield f"the engine on the machine was started for another resource than the state's: {mend}"
    if there["front"] is None or not there["front"]["healthy"]:
        why = (there["front"] or {}).get("why")
        yield f"the front does not answer{f' ({one_line(why)})' if why else ''}: {mend}"
    elif there["front"]["token"] != front.get("token"):
        yield f"the front on the machine is none that the state knows: {mend}"
