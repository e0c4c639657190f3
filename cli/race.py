"""`sluicegate race`, `load` and `report`: the race room, and a stack's own endpoint as one of its targets."""

from __future__ import annotations

import sys
from argparse import Namespace, _SubParsersAction
from typing import Any

from sluicegate.race.entry import guarded
from sluicegate.race.load_command import run_load
from sluicegate.race.options import add_load, add_race, add_report
from sluicegate.race.race_command import run_race
from sluicegate.race.report_command import run_report
from sluicegate.race.targets import Target, parse_target

from .stack import CliError, as_typed, chosen, find_project, outputs

_STACK_HELP = (
    "a stack's endpoint (with no endpoint given, the selected stack's, else dev's); after a comma what its outputs do "
    "not tell: precision=fp8, hardware='1x H100', hourly=USD"
)


def add(subparsers: _SubParsersAction[Any]) -> None:
    """Register the three subcommands; each sets `run` to a function from the parsed options to an exit code."""
    race = subparsers.add_parser("race", help="measured speed against any other endpoint, one request at a time")
    add_race(race)
    load = subparsers.add_parser("load", help="speed, cost and where it bends, with many requests at once")
    add_load(load)
    for parser, run in ((race, _race), (load, _load)):
        parser.add_argument("-s", "--stack", action="append", default=[], metavar="NAME[,...]", help=_STACK_HELP)
        parser.set_defaults(run=run)
    report = subparsers.add_parser("report", help="a page from results of race and load")
    add_report(report)
    report.set_defaults(run=lambda options: guarded(run_report, options))


def _race(options: Namespace) -> int:
    return guarded(lambda: run_race(options, _stacks(options)))


def _load(options: Namespace) -> int:
    return guarded(lambda: run_load(options, _stacks(options)))


def _stacks(options: Namespace) -> list[Target]:
    """The stacks named; where no endpoint of any kind is, the one that every other subcommand would take."""
    options.target = [as_typed(spec) for spec in options.target]
    if options.stack or options.target or getattr(options, "openrouter", None) or getattr(options, "providers", None):
        return [stack_target(spec) for spec in options.stack]
    try:
        stack = chosen(find_project(), None)
    except CliError as error:
        raise CliError(f"no endpoint named (--target NAME=URL,model=MODEL), and {error}") from None
    target = stack_target(stack)
    print(f"no endpoint named: measuring stack {stack}", file=sys.stderr)
    return [target]


def stack_target(spec: str) -> Target:
    """A stack's endpoint from its outputs `url`, `model`, `api_key` and, when known, `hourly_price`.

    Raises CliError when there is no such stack or no endpoint in it, ValueError for a word after the name that is none.
    """
    name, comma, told = spec.partition(",")
    found = outputs(name, ["model"])
    target = parse_target(f"{name}={found['url']}/v1,model={found['model']}{comma}{told}")
    target.key = target.key or found.get("api_key")
    target.hourly = target.hourly or found.get("hourly_price")
    target.chunk_usage = "chunk-usage=" not in told or target.chunk_usage  # every engine we serve with knows it
    return target
