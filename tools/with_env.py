"""Runs a command in the checkout's environment: python -m tools.with_env pulumi preview -s dev"""

from __future__ import annotations

import os

from tools import environment
from tools.console import fail, start


def main(command: list[str]) -> int:
    """Becomes the command; its exit status is the caller's."""
    if not command:
        return fail(ValueError("no command given: python -m tools.with_env COMMAND [ARGUMENT…]"))
    env = environment.environ()
    # execvpe looks the command up on our own PATH, not on the new one.
    os.environ["PATH"] = env["PATH"]
    try:
        os.execvpe(command[0], command, env)
    except FileNotFoundError:
        return fail(
            FileNotFoundError(f"{command[0]}: not on the PATH of .tools/env; run make setup, or correct the name")
        )


if __name__ == "__main__":
    start(main)
