"""`sluicegate logs`: the last lines the engine or the front printed."""

from __future__ import annotations

from argparse import Namespace

from sluicegate.provider.clouds import adapter
from sluicegate.provider.hostclient import HostError
from sluicegate.provider.resource import UnreachableError

from .stack import CliError, load


def run(options: Namespace) -> int:
    host = load(options.stack).outputs("Machine")["host"]
    what = "front" if options.front else "engine"
    try:
        lines = adapter(host["cloud"]).connect(host).ask("logs", {"what": what, "lines": options.lines})
    except (HostError, UnreachableError) as e:
        raise CliError(f"cannot read the {what}'s log: {e}") from e
    for line in lines:
        print(line)
    return 0
