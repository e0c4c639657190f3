"""The pulumi calls that `make up` and `make down` share."""

from __future__ import annotations

import json
import subprocess
import sys
import time

from tools import environment
from tools.console import SetupError
from tools.paths import ROOT


def pulumi(*arguments: str, capture: bool = False) -> str:
    """Run the checkout's pulumi in the project; its output is shown, or returned. Raises SetupError when it fails."""
    command = ["pulumi", *arguments, "--non-interactive"]
    sys.stdout.flush()
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=environment.environ(),
        text=True,
        capture_output=capture,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode != 0:
        said = f"\n{done.stderr.strip()}" if capture else " (its words are above)"
        raise SetupError(f"{' '.join(command)} failed with exit {done.returncode}{said}")
    return done.stdout.strip() if capture else ""


def exists(stack: str) -> bool:
    """Whether the backend has this stack."""
    listed = pulumi("stack", "ls", "--json", capture=True)
    return any(entry["name"].rsplit("/", 1)[-1] == stack for entry in json.loads(listed))


def since(started: float) -> str:
    """Seconds since a monotonic time, as shown."""
    return f"{time.monotonic() - started:.1f} s"
