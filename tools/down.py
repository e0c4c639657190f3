"""`make down`: destroy the stack; the model cache stays unless the stack's config says otherwise."""

from __future__ import annotations

import argparse
import time

from tools.console import SetupError, fail, say, start
from tools.stack import exists, pulumi, since


def down(stack: str) -> None:
    """Destroy what is there; a stack that was never made is a success."""
    started = time.monotonic()
    if not exists(stack):
        say(f"no stack {stack}: nothing to destroy")
        return
    pulumi("destroy", "--yes", "--refresh", "--skip-preview", "--suppress-outputs", "--stack", stack)
    say(f"\nstack {stack} destroyed in {since(started)}")


def main(arguments: list[str]) -> int:
    """Exit status 0 when nothing of the stack is left running."""
    parser = argparse.ArgumentParser(prog="make down")
    parser.add_argument("--stack", default="dev")
    options = parser.parse_args(arguments)
    try:
        down(options.stack)
    except (SetupError, OSError) as error:
        return fail(error)
    return 0


if __name__ == "__main__":
    start(main)
