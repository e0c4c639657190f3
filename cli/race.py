"""`sluicegate race`, `load` and `report`: the race room, and a stack's own endpoint as one of its targets."""

from __future__ import annotations

from argparse import Namespace, _SubParsersAction
from typing import Any

from sluicegate.race.entry import guarded
from sluicegate.race.load_command import run_load
from sluicegate.race.options import add_load, add_race, add_report
from sluicegate.race.race_command import run_race
from sluicegate.race.report_command import run_report
from sluicegate.race.targets import Target, parse_target

from .stack import as_typed, outputs

_STACK_HELP = (
    "a stack's endpoint; after a comma what its outputs do not tell: precision=fp8, hardware='1x H100', hourly=USD"
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
    options.target = [as_typed(spec) for spec in options.target]
    return [stack_target(spec) for spec in options.stack]


def stack_target(spec: str) -> Target:
    """A stack's endpoint from its outputs `url`, `model`, `api_key` and, when known, `hourly_price`.

    Raises CliError when there is no such stack or no endpoint in it, ValueError for a word after the name that is none.
    """
    name, comma, told = spec.partition(",")
    found = outputs(name)
    target = parse_target(f"{name}={found['url']}/v1,model={found['model']}{comma}{told}")
    target.key = target.key or found.get("api_key")
    target.hourly = target.hourly or found.get("hourly_price")
    target.chunk_usage = "chunk-usage=" not in told or target.chunk_usage  # every engine we serve with knows it
    return target
