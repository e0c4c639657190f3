"""`sluicegate recipe check [RECIPE…]`: every recipe and every lock, all faults in one message."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from sluicegate.recipes.check import check_all
from sluicegate.recipes.files import all_locks, recipe_folders, recipe_names

from .stack import CliError, find_project


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="RECIPE", help="only these; not given, all there are")


def run(options: Namespace) -> int:
    folders = recipe_folders(_project())
    if faults := check_all(folders, options.names):
        count = len(faults)
        head = f"{count} fault{'s' if count > 1 else ''} in recipes and locks"
        raise CliError("\n".join([head, *(f"  {fault}" for fault in faults)]))
    names = options.names or recipe_names(folders)
    without = [name for name in names if not all_locks(name, folders)]
    print(f"{len(names)} recipes fit, and their locks" + (f"; not locked: {', '.join(without)}" if without else ""))
    return 0


def _project() -> Path:
    """The project around the working folder; anywhere else only what the library ships is checked."""
    try:
        return find_project()
    except CliError:
        return Path.cwd()
