"""What `make up`, `make down` and `make env` share: which stacks there are, and pulumi's calls."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tools import environment
from tools.console import SetupError
from tools.paths import ENV_FILE, ROOT

DEFAULT = "dev"


def make(goal: str, stack: str) -> str:
    """How `make` is told a goal for this stack."""
    return f"make {goal}" if stack == DEFAULT else f"make {goal} STACK={shlex.quote(stack)}"


def config_file(stack: str) -> Path:
    """Where the stack's config lies, there or not."""
    return ROOT / f"Pulumi.{stack.rpartition('/')[2]}.yaml"


def require(stack: str, *, state_will_do: bool = False) -> None:
    """Raises SetupError for a stack without a file here: pulumi would make an empty one for it, and then fail.

    `state_will_do`: what was deployed can be told and destroyed without its file.
    """
    if not re.fullmatch(r"[\w.-]{1,100}", stack.rpartition("/")[2], re.ASCII):
        raise SetupError(f"STACK={shlex.quote(stack)}: a stack's name is of letters, digits, '-', '_' and '.'")
    file = config_file(stack)
    if file.is_file() or (state_will_do and ENV_FILE.exists() and known(stack)):
        return
    there = sorted(path.name.split(".", 1)[1].removesuffix(".yaml") for path in ROOT.glob("Pulumi.*.yaml"))
    if not there:
        raise SetupError(f"there is no {file.name} here; git checkout Pulumi.{DEFAULT}.yaml brings the first one back")
    like = f"Pulumi.{DEFAULT if DEFAULT in there else there[0]}.yaml"
    raise SetupError(
        f"stack {stack} has no file {file.name}; stacks that have one: {', '.join(there)}; "
        f"to make it: cp {like} {file.name}, then {make('up', stack)}"
    )


def pulumi(*arguments: str, capture: bool = False, unsaid: Sequence[str] = ()) -> str:
    """Run the checkout's pulumi in the project; its output is shown, or returned. Raises SetupError when it fails.

    Lines with one of the texts `unsaid` are left out of what is shown.
    """
    command = ["pulumi", *arguments, "--non-interactive"]
    env = environment.environ()
    sys.stdout.flush()
    with patience():
        done = _filtered(command, env, unsaid) if unsaid else subprocess.run(
            command, cwd=ROOT, env=env, encoding="utf-8", errors="replace", capture_output=capture, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    if done.returncode != 0:
        said = f"\n{done.stderr.strip()}" if capture else " (its words are above)"
        own = [key for key in environment.USERS_OWN if key in os.environ]
        note = f"\nnote: your own {' and '.join(own)} is in use here, in place of the checkout's" if own else ""
        raise SetupError(f"{' '.join(command)} failed with exit {done.returncode}{said}{note}")
    return done.stdout.strip() if capture else ""


def _filtered(command: list[str], env: dict[str, str], unsaid: Sequence[str]) -> subprocess.CompletedProcess[str]:
    colour = ["--color", "always"] if sys.stdout.isatty() and "NO_COLOR" not in env else []
    with subprocess.Popen(
        [*command, *colour], cwd=ROOT, env=env, encoding="utf-8", errors="replace", stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            if not any(text in line for text in unsaid):
                print(line, end="", flush=True)
    return subprocess.CompletedProcess(command, process.returncode)


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
