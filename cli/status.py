"""`sluicegate status`: what is true on the machine, beside what the state says."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator
from typing import Any

from sluicegate.provider.clouds import adapter
from sluicegate.provider.engine_text import short
from sluicegate.provider.resource import FailedError

from .stack import CliError, Stack, load

# In the order they happen; the state sorts them by name.
PHASES = ("machine", "probe", "image", "weights", "cache", "check", "load", "compile", "graphs", "first_token", "front")


def run(options: Namespace) -> int:
    stack = load(options.stack)
    host = stack.outputs("Machine")["host"]
    try:
        there = adapter(host["cloud"]).connect(host).ask("status")
    except FailedError as e:
        raise CliError(f"cannot tell what serves: {e}: run `pulumi up --refresh --stack {stack.name}`") from e
    faults = list(faults_of(stack, there))
    if options.json:
        print(json.dumps({"stack": stack.name, "host": there, "state": stack.outputs("Engine"), "faults": faults}))
        return 1 if faults else 0
    for name, text in lines_of(stack, there):
        print(f"  {name:<9}{text}")
    for fault in faults:
        print(f"  {'fault':<9}{fault}")
    return 1 if faults else 0


def lines_of(stack: Stack, there: dict[str, Any]) -> Iterator[tuple[str, str]]:
    engine, front = stack.outputs("Engine"), stack.outputs("Front")
    yield "stack", f"{stack.name}: {engine.get('recipe') or 'no engine yet'}, lock {short(engine.get('lock'))}"
    health = there["health"] + (f" ({there['why']})" if there["why"] else "")
    yield "engine", f"{health}, serving {short(there['serving'])}, {there.get('restarts', 0)} restarts"
    up = there["front"] and there["front"]["healthy"]
    yield "front", f"{'healthy' if up else 'not answering'}, {front.get('url') or 'no address yet'}"
    phases = engine.get("phases") or {}
    if phases:
        named = sorted(phases, key=lambda name: PHASES.index(name) if name in PHASES else len(PHASES))
        yield "start", ", ".join(f"{name} {phases[name]:.1f} s" for name in named)
    if engine.get("lastHealthy"):
        yield "gated", engine["lastHealthy"]["at"]
    for job in there["jobs"]:
        yield "job", f"{job} runs now"


def faults_of(stack: Stack, there: dict[str, Any]) -> Iterator[str]:
    """Where the machine and the state disagree, each with the command that mends it."""
    mend = f"run `pulumi up --refresh --stack {stack.name}`"
    engine = stack.outputs("Engine")
    if there["machine"] is None:
        yield f"the machine has no claim of this stack any more: {mend}"
        return
    if there["result"] != "serving":
        yield f"nothing serves: {there['why'] or 'no release was ever gated'}; {mend}"
    elif there["serving"] != engine.get("lock"):
        yield f"{short(there['serving'])} serves, the state says {short(engine.get('lock'))}: {mend}"
    if there["front"] is None or not there["front"]["healthy"]:
        yield f"the front does not answer: {mend}"
    for operation in stack.pending():
        name = operation["resource"]["urn"].rpartition("::")[2]
        # Only a cut create outlives the next good `up`.
        if operation["type"] == "creating":
            mend = f"run `pulumi refresh --yes --clear-pending-creates --stack {stack.name}`"
        yield f"an earlier run was cut while {operation['type']} {name}: {mend}"
