"""`make down`: destroy the stack; the model cache stays unless the stack's config says otherwise."""

from __future__ import annotations

import argparse
import time

from tools.console import SetupError, fail, say, start
from tools.stack import DEFAULT, config_file, exists, make, pulumi, require, since

# It names `pulumi stack rm`, which would delete the tracked file of the stack.
PULUMIS_ADVICE = ("The resources in the stack have been deleted, but", "If you want to remove the stack completely, ")


def down(stack: str) -> None:
    """Destroy what is there; a stack that was never made is a success."""
    started = time.monotonic()
    if not exists(stack):
        say(f"stack {stack} was never made: nothing to destroy")
        return
    file = config_file(stack)
    had_file = file.exists()
    try:
        words = ["--yes", "--refresh", "--skip-preview", "--suppress-outputs", "--stack", stack]
        pulumi("destroy", *words, unsaid=PULUMIS_ADVICE)
    finally:
        if not had_file:
            file.unlink(missing_ok=True)  # pulumi makes an empty one
    stays = f"config and history stay: {make('up', stack)} is the way back" if had_file else "history stays"
    say(f"stack {stack} destroyed in {since(started)}; its {stays}")


def main(arguments: list[str]) -> int:
    """Exit status 0 when nothing of the stack is left running."""
    parser = argparse.ArgumentParser(prog="make down")
    parser.add_argument("--stack", default=DEFAULT)
    options = parser.parse_args(arguments)
    try:
        require(options.stack, state_will_do=True)
        down(options.stack)
    except (SetupError, OSError) as error:
        return fail(error)
    return 0


if __name__ == "__main__":
    start(main)
