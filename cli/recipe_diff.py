"""`sluicegate recipe diff A B`: what moves between two locks, and what it costs."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from .stack import CliError


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("names", nargs="+", metavar="RECIPE", help="two recipes or locks, or one against the stack")


def run(options: Namespace) -> int:
    raise CliError(f"cannot compare {options.names} yet")
