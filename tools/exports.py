"""Prints what `eval "$(make -s env)"` takes: export lines alone, or nothing and a line on stderr."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys

from tools import environment
from tools.console import SetupError, fail, start
from tools.paths import ROOT, VENV
from tools.stack import DEFAULT, exists, make, require


def of_stack(stack: str, env: dict[str, str]) -> list[str]:
    """The export lines of `sluicegate env`. Raises SetupError while no such stack is up."""
    command = [str(VENV / "bin" / "sluicegate"), "env", "--stack", stack]
    done = subprocess.run(
        command, cwd=ROOT, env=env, capture_output=True, encoding="utf-8", errors="replace", check=False
    )
    if done.returncode == 0:
        return [line for line in done.stdout.splitlines() if line.startswith("export ")]
    up = f"run {make('up', stack)}"
    if not exists(stack):
        raise SetupError(f"nothing to export: stack {stack} was never made: {up}")
    reason = (done.stderr.strip().splitlines() or [f"sluicegate env: exit {done.returncode}: {up}"])[-1]
    reason = reason.removeprefix("error: ").replace(f"run `pulumi up --stack {stack}`", up)
    raise SetupError(f"nothing to export: {reason}")


def main(arguments: list[str]) -> int:
    """Exit status 0 when everything was printed."""
    parser = argparse.ArgumentParser(prog="make env")
    parser.add_argument("--stack", default=DEFAULT)
    options = parser.parse_args(arguments)
    try:
        require(options.stack, state_will_do=True)
        own = environment.additions(environment.read(), os.environ)
        lines = [f"export {key}={shlex.quote(value)}" for key, value in own.items()]
        lines += of_stack(options.stack, environment.environ())
    except (SetupError, OSError) as error:
        return fail(error)
    sys.stdout.buffer.write(os.fsencode("\n".join([*lines, ""])))  # as bytes: a folder's name is no text to be replaced
    return 0


if __name__ == "__main__":
    start(main)
