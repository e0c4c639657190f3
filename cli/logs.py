"""`sluicegate logs`: the last lines the engine or the front printed."""

from __future__ import annotations

from argparse import Namespace

from sluicegate.provider.clouds import adapter
from sluicegate.provider.resource import FailedError

from .stack import CliError, load


def run(options: Namespace) -> int:
    stack = load(options.stack)
    host = stack.outputs("Machine")["host"]
    what = "front" if options.front else "engine"
    try:
        lines = adapter(host["cloud"]).connect(host).ask("logs", {"what": what, "lines": options.lines})
    except FailedError as e:
        raise CliError(f"cannot read the {what}'s log: {e}: run `sluicegate status --stack {stack.name}`") from e
    for line in lines:
        print(line)
    return 0
