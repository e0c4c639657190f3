"""Prints what `eval "$(make -s env)"` takes: export lines and nothing else on stdout."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys

from tools import environment
from tools.console import start
from tools.paths import ROOT, VENV


def of_stack(stack: str, env: dict[str, str]) -> list[str]:
    """The export lines of `sluicegate env`; none, with a comment on stderr, while no such stack is up."""
    command = [str(VENV / "bin" / "sluicegate"), "env", "--stack", stack]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]
        print(f"# no OPENAI_BASE_URL and OPENAI_API_KEY: {reason}; make up deploys the stack", file=sys.stderr)
        return []
    return [line for line in done.stdout.splitlines() if line.startswith("export ")]


def main(arguments: list[str]) -> int:
    """Always exit status 0: the tools are usable without a stack."""
    parser = argparse.ArgumentParser(prog="make env")
    parser.add_argument("--stack", default="dev")
    options = parser.parse_args(arguments)
    for key, value in environment.additions(environment.read(), os.environ).items():
        print(f"export {key}={shlex.quote(value)}")
    for line in of_stack(options.stack, environment.environ()):
        print(line)
    return 0


if __name__ == "__main__":
    start(main)
