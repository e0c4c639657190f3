"""The pulumi calls that `make up` and `make down` share."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tools import environment
from tools.console import SetupError
from tools.paths import ROOT


def pulumi(*arguments: str, capture: bool = False) -> str:
    """Run the checkout's pulumi in the project; its output is shown, or returned. Raises SetupError when it fails."""
    command = ["pulumi", *arguments, "--non-interactive"]
    env = environment.environ()
    sys.stdout.flush()
    with patience():
        done = subprocess.run(
            command, cwd=ROOT, env=env, encoding="utf-8", errors="replace", capture_output=capture, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    if done.returncode != 0:
        said = f"\n{done.stderr.strip()}" if capture else " (its words are above)"
        own = [key for key in environment.USERS_OWN if key in os.environ]
        note = f"\nnote: your own {' and '.join(own)} is in use here, in place of the checkout's" if own else ""
        raise SetupError(f"{' '.join(command)} failed with exit {done.returncode}{said}{note}")
    return done.stdout.strip() if capture else ""


@contextlib.contextmanager
def patience() -> Iterator[None]:
    """Waits a ^C out: it reaches pulumi too, which finishes or reverts, and must not be killed on the way."""
    # A function, not SIG_IGN, which the child would inherit.
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def known(stack: str) -> bool:
    """Whether the checkout's own backend has this stack, told from its files; False for any other backend."""
    backend = environment.environ()["PULUMI_BACKEND_URL"]
    folder = Path(backend.removeprefix("file://")) / ".pulumi" / "stacks"
    return backend.startswith("file:///") and any(folder.glob(f"*/{stack}.json"))


def exists(stack: str) -> bool:
    """Whether the backend has this stack."""
    if known(stack):
        return True
    listed = pulumi("stack", "ls", "--json", capture=True)
    return any(entry["name"].rsplit("/", 1)[-1] == stack for entry in json.loads(listed))


def since(started: float) -> str:
    """Seconds since a monotonic time, as shown."""
    return f"{time.monotonic() - started:.1f} s"
