"""`sluicegate recipe …`: each subcommand's words and work are in a file of its own, read when it is called."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module
from typing import Any

# Subcommand -> what `sluicegate recipe --help` says of it. `recipe_NAME.py` has `arguments(parser)` and `run(options)`.
SUBCOMMANDS = {
    "create": "write a recipe file from an engine's command line",
    "list": "the recipes there are, and their locks",
    "show": "one recipe, its lock, and the command line it compiles to",
    "pin": "lock a recipe and write its pins into the stack's config",
    "diff": "what moves between two recipes or locks, and what it costs",
    "check": "every recipe and lock, all faults in one message",
}


class _LateParser(argparse.ArgumentParser):
    """A subcommand's parser that asks its file for the arguments when it is chosen: `--help` of another stays quick."""

    module = ""

    # argparse has an overload for each type of namespace; this one hands on whatever it is given.
    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        if self.module:
            found, self.module = import_module(f".{self.module}", __package__), ""
            found.arguments(self)
            self.set_defaults(run=found.run)
        return super().parse_known_args(args, namespace)


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Register `recipe` and its subcommands; each sets `run` to a function from the options to an exit code."""
    text = "recipes and their locks"
    recipe = commands.add_parser("recipe", help=text, description=f"{text.capitalize()}.")
    subcommands = recipe.add_subparsers(metavar="COMMAND", required=True, parser_class=_LateParser)
    for name, says in SUBCOMMANDS.items():
        late: _LateParser = subcommands.add_parser(name, help=says, description=says)
        late.module = f"recipe_{name}"
