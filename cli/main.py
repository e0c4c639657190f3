"""Entry point of `sluicegate`."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable
from importlib import import_module

from . import race, recipe
from .stack import STACK_HELP, CliError


def count(text: str) -> int:
    """A whole number from 1."""
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def from_file(name: str) -> Callable[[argparse.Namespace], int]:
    """The subcommand's `run`, imported when it is called: `env` need not wait for what `status` imports."""

    def run(options: argparse.Namespace) -> int:
        code: int = import_module(f".{name}", __package__).run(options)
        return code

    return run


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(prog="sluicegate", description="Pinned open models on your own GPUs.")
    commands = p.add_subparsers(metavar="COMMAND", required=True)

    def add(name: str, text: str, to: object = commands) -> argparse.ArgumentParser:
        command: argparse.ArgumentParser = to.add_parser(name, help=text, description=text)  # type: ignore[attr-defined]
        command.add_argument("-s", "--stack", metavar="NAME", help=STACK_HELP)
        return command

    command = add("status", "what serves now, and whether the state agrees")
    command.add_argument("--json", action="store_true")
    command.set_defaults(run=from_file("status"))
    command = add("unlock", "clear what a killed run left behind; nothing that serves is touched")
    command.add_argument("-y", "--yes", action="store_true", help="do not ask")
    command.add_argument("--force", action="store_true", help="even while a run seems to be deploying")
    command.set_defaults(run=from_file("unlock"))
    command = add("logs", "the last lines the engine printed")
    command.add_argument("-n", "--lines", type=count, default=100, metavar="N", help="how many (100)")
    command.add_argument("--front", action="store_true", help="of the front instead")
    command.set_defaults(run=from_file("logs"))
    command = add("ask", "one streamed answer, and its speed")
    command.add_argument("question")
    command.add_argument("--max-tokens", type=count, default=256, metavar="N", help="at most this many tokens (256)")
    command.set_defaults(run=from_file("ask"))
    command = add("env", 'shell lines for the OpenAI client: eval "$(sluicegate env)"')
    command.set_defaults(run=from_file("env"))
    recipe.add(commands)
    race.add(commands)
    return p


def replace_what_cannot_be_shown() -> None:
    """Answers and names hold characters that a terminal's encoding may lack: a `?` for each, never a trace."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def main() -> None:
    """Run a subcommand; exit code 0, 1 for a fault, 2 for a wrong command line, 130 for ^C."""
    replace_what_cannot_be_shown()
    options = parser().parse_args()
    try:
        code = options.run(options)
        sys.stdout.flush()  # here, where a reader that has gone is still caught
        sys.exit(code)
    except CliError as e:
        print(f"error: {e}", file=sys.stderr)
        sys.exit(1)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # `| head` has seen enough
        sys.exit(0)
    except KeyboardInterrupt:
        sys.exit(130)
