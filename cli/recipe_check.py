"""`sluicegate recipe check [NAME…]`: every recipe and every lock, all faults in one message."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from sluicegate.recipes.check import check_all
from sluicegate.recipes.files import recipe_folders

from .stack import CliError, find_project


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="RECIPE", help="only these; not given, all")


def run(options: Namespace) -> int:
    faults = check_all(recipe_folders(_project()), options.names)
    if faults:
        raise CliError("\n".join(str(fault) for fault in faults))
    print("all recipes and locks fit")
    return 0


def _project() -> Path:
    try:
        return find_project()
    except CliError:
        return Path.cwd()
