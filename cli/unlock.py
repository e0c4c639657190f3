"""`sluicegate unlock`: the way out after a run of pulumi that was killed. It clears notes; it ends and deletes nothing.

What such a run leaves: Pulumi's lock, which keeps every other run out; creates noted as under way, which no `up` takes
away again; and on the machine a job that finishes by itself, and an engine that serves. The next `up` finds those.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator

from sluicegate.provider.engine_text import short

from .faults import faults_of
from .stack import CliError, pulumi
from .status import lines_of
from .truth import Truth, look


def run(options: Namespace) -> int:
    truth = look(options.stack, whole=True)
    for name, text in lines_of(truth):
        if name not in ("start", "gated"):
            print(f"  {name:<9}{text}")
    todo = list(to_do(truth))
    stack = truth.stack.name
    if not todo:
        print("nothing to unlock")
        if not list(faults_of(truth)):
            return 0
    else:
        if truth.at_work and not options.force:
            raise CliError(
                f"{truth.at_work} is changing this stack: wait for it, or end it with ^C; to take its lock all the "
                f"same, run `sluicegate unlock --force --stack {stack}`"
            )
        print(f"to do: {' and '.join(todo)}; nothing on the machine is touched", flush=True)
        if not (options.yes or agreed(stack)):
            print("left as it was")
            return 1
        clear(truth)
        truth = look(stack, whole=True)
        if left := list(to_do(truth)) if truth.locks is not None else []:
            raise CliError(f"left over: {' and '.join(left)}: run `sluicegate status --stack {stack}`")
        print("done")
    print(f"next: pulumi up --refresh --stack {stack}")
    for text in next_up(truth):
        print(f"  {text}")
    return 0


def to_do(truth: Truth) -> Iterator[str]:
    if truth.locks:
        yield "clear Pulumi's lock"
    elif truth.locks is None:
        yield "clear Pulumi's lock, if there is one (this backend does not tell)"
    if creates := [name for _, name in truth.pending("creating")]:
        yield f"forget that {', '.join(creates)} {'was' if len(creates) == 1 else 'were'} being created"


def agreed(stack: str) -> bool:
    if not sys.stdin.isatty():
        raise CliError(f"nobody is there to be asked: run `sluicegate unlock --yes --stack {stack}`")
    try:
        return input("go on? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def clear(truth: Truth) -> None:
    project, stack = truth.stack.project, ("--stack", truth.stack.name)
    if truth.locks != []:
        pulumi(project, "cancel", "--yes", *stack)
    if truth.pending("creating"):
        # Only the stack itself is refreshed: asked for more, Pulumi would drop from the state what does not answer now.
        roots = [r["urn"] for r in truth.stack.resources() if r["type"] == "pulumi:pulumi:Stack"]
        only = [word for urn in roots for word in ("--target", urn)]
        pulumi(project, "refresh", "--yes", "--skip-preview", "--clear-pending-creates", *only, *stack)


def next_up(truth: Truth) -> Iterator[str]:
    """What the next `pulumi up` will do about what it finds."""
    there, wanted = truth.there, (truth.config.get("pins") or {}).get("lock")
    if truth.unknown:
        yield "asks the machine again, and changes nothing unless it answers"
        return
    if truth.claim is None or there is None:
        yield "claims the machine, and starts there what does not run"
        return
    if truth.stack_id and truth.claim["stack_id"] != truth.stack_id:
        yield "refuses: the place on the machine is another stack's; set sluicegate:machine.root to a folder of its own"
        return
    if truth.claim["token"] != truth.stack.outputs("Machine").get("token"):
        yield f"adopts the machine's claim (phase {truth.claim['phase']}), with all that runs under it"
    elif truth.claim.get("next"):
        yield "adopts the claim that waits on the machine, where the config still asks for another machine"
    for job in truth.jobs:
        yield f"follows {job} to its end first, which may change what is said here"
    yield _engine(there["serving"], wanted, truth.recipe_of(wanted))
    state = truth.stack.outputs("Front")
    if there["front"] is None:
        yield "opens the front"
    elif not there["front"]["healthy"] or there["front"]["token"] != state.get("token"):
        yield "mends the front"


def _engine(serving: str | None, wanted: str | None, recipe: str | None) -> str:
    what = short(wanted) + (f" ({recipe})" if recipe else "") if wanted else "what the pins say"
    if serving is None:
        return f"starts {what}: nothing serves now"
    if serving == wanted:
        return f"keeps {what}, which serves: no restart"
    return f"moves from {short(serving)} to {what}: one engine restart"
