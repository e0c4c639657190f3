"""`make up` after set-up: deploy the stack, then show its URL, one real streamed answer, its speed and the phases."""

from __future__ import annotations

import argparse
import subprocess
import time

from tools import environment
from tools.console import SetupError, fail, say, start
from tools.paths import ROOT, VENV
from tools.stack import DEFAULT, known, make, pulumi, require, since

NEXT = 'To use it from here: eval "$(make -s env)"; to end it: make down'
QUESTION = "What does a sluice gate do? Answer in one sentence."


def sluicegate(*arguments: str) -> None:
    """Run our own command line, shown as it prints."""
    command = [str(VENV / "bin" / "sluicegate"), *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment.environ(), check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise SetupError(f"sluicegate {arguments[0]} failed with exit {done.returncode} (its words are above)")


def what_next(stack: str) -> str:
    """The commands after this one, for this stack."""
    return NEXT.replace("make -s env", make("-s env", stack)).replace("make down", make("down", stack))


def up(stack: str) -> None:
    """Deploy and show."""
    started = time.monotonic()
    if not known(stack):
        pulumi("stack", "select", stack, "--create", capture=True)
        say(f"deploying stack {stack}: fetching the engine and the model, about 150 MB, where they are not here yet")
    pulumi("up", "--yes", "--refresh", "--skip-preview", "--suppress-outputs", "--stack", stack)
    say(f"\nup in {since(started)}; asking: {QUESTION}\n")
    sluicegate("ask", "--stack", stack, QUESTION)
    say("")
    # The URL, and where the time of the last start went.
    sluicegate("status", "--stack", stack)
    say("\n" + what_next(stack))


def main(arguments: list[str]) -> int:
    """Exit status 0 when the endpoint has answered."""
    parser = argparse.ArgumentParser(prog="make up")
    parser.add_argument("--stack", default=DEFAULT)
    options = parser.parse_args(arguments)
    try:
        require(options.stack)
        up(options.stack)
    except (SetupError, OSError) as error:
        return fail(error)
    return 0


if __name__ == "__main__":
    start(main)
