"""Entry point of `sluicegate`."""

from __future__ import annotations

import argparse
import os
import sys

from . import ask, env, logs, status
from .stack import STACK_HELP, CliError


def count(text: str) -> int:
    """A whole number from 1."""
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(prog="sluicegate", description="Pinned open models on your own GPUs.")
    commands = p.add_subparsers(metavar="COMMAND", required=True)

    def add(name: str, run: object, text: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument("-s", "--stack", metavar="NAME", help=STACK_HELP)
        command.set_defaults(run=run)
        return command

    add("status", status.run, "what serves now, and whether the state agrees").add_argument(
        "--json", action="store_true"
    )
    command = add("logs", logs.run, "the last lines the engine printed")
    command.add_argument("-n", "--lines", type=count, default=100, metavar="N", help="how many (100)")
    command.add_argument("--front", action="store_true", help="of the front instead")
    command = add("ask", ask.run, "one streamed answer, and its speed")
    command.add_argument("question")
    command.add_argument("--max-tokens", type=count, default=256, metavar="N", help="at most this many tokens (256)")
    add("env", env.run, 'shell lines for the OpenAI client: eval "$(sluicegate env)"')
    return p


def main() -> None:
    """Run a subcommand; exit code 0, 1 for a fault, 2 for a wrong command line, 130 for ^C."""
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
