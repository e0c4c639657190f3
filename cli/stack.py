"""A stack as the command line sees it: the project around the working folder, and what Pulumi's state says."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STACK_HELP = "the stack's name; not given, the one selected with `pulumi stack select`, else dev"


class CliError(Exception):
    """Something the user can mend; the text says how."""


@dataclass(frozen=True)
class Stack:
    """One stack's state, exported whole. Secrets in it stay encrypted."""

    name: str
    project: Path
    state: dict[str, Any]

    def resource(self, kind: str) -> dict[str, Any] | None:
        """The state of the one resource of a kind (`Machine`, `Engine`, …) that is not about to be deleted."""
        token = f"sluicegate:index:{kind}"
        return next((r for r in self.resources() if r["type"] == token and not r.get("delete")), None)

    def outputs(self, kind: str) -> dict[str, Any]:
        return dict((self.resource(kind) or {}).get("outputs", {}))

    def pending(self) -> list[dict[str, Any]]:
        return list((self.state.get("deployment") or {}).get("pending_operations") or [])

    def resources(self) -> list[dict[str, Any]]:
        return list((self.state.get("deployment") or {}).get("resources") or [])


def find_project(start: Path | None = None) -> Path:
    """The folder with the Pulumi.yaml that holds for `start`."""
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        if (folder / "Pulumi.yaml").is_file():
            return folder
    raise CliError(f"no Pulumi.yaml in {here} or above it: go to the project's folder")


def environ(project: Path) -> dict[str, str]:
    """The caller's environment; in a checkout that was set up, its own toolchain and state where nothing is set."""
    env = dict(os.environ)
    lines = project / ".tools" / "env"
    if not lines.is_file() or "PULUMI_HOME" in env:
        return env
    for key, _, value in (line.partition("=") for line in os.fsdecode(lines.read_bytes()).splitlines()):
        if key == "PATH_PREFIX":
            env["PATH"] = os.pathsep.join([value, env.get("PATH", os.defpath)])
        elif key and not (key == "PULUMI_CONFIG_PASSPHRASE" and "PULUMI_CONFIG_PASSPHRASE_FILE" in env):
            env.setdefault(key, value)
    return env


def pulumi(project: Path, *arguments: str) -> str:
    """Pulumi's answer. Raises CliError with its last words."""
    env = environ(project)
    if not shutil.which("pulumi", path=env.get("PATH")):
        raise CliError("no pulumi on PATH: run `make setup`, or install it from pulumi.com")
    command = ["pulumi", *arguments, "--non-interactive"]
    done = subprocess.run(
        command, cwd=project, env=env, capture_output=True, encoding="utf-8", errors="replace", check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if done.returncode:
        raise CliError(
            f"pulumi {arguments[0]}: {_complaint(done.stderr.strip() or done.stdout.rpartition('error:')[2])}"
        )
    return done.stdout


# What pulumi says -> what mends it, where it does not say so itself.
_MENDS = (
    ("no stack named '(.+?)'", "run `pulumi stack ls`, or make it with `pulumi stack init {}`"),
    ("a stack name may only", "run `pulumi stack ls`"),
    (r"locked by \d+ lock", "run `sluicegate status` to see who holds it"),
    ("passphrase", "set PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE"),
    ("log ?in", "run `pulumi login`"),
    ("state directory|blob", "correct PULUMI_BACKEND_URL, or run `pulumi login` with another place"),
    ("", "run `pulumi stack` to see more"),
)


def _complaint(stderr: str) -> str:
    """Pulumi's error in one line, with what to do about it."""
    said = stderr.strip().removeprefix("error: ")
    mend = next(mend.format(*found.groups()) for pattern, mend in _MENDS if (found := re.search(pattern, said)))
    return f"{one_line(said) or 'it said nothing'}: {mend}"


def one_line(text: str) -> str:
    """What another program said, as part of one line of ours."""
    flat = re.sub(r"[\s\x00-\x1f\x7f]+", " ", text).strip()
    return flat if len(flat) <= 300 else f"{flat[:299]}…"


def as_typed(word: str) -> str:
    """A word of the command line as it was typed, where the locale could not read it."""
    return os.fsencode(word).decode(errors="replace")


def chosen(project: Path, name: str | None) -> str:
    """The stack that is meant: the one named, else the one selected, else dev."""
    if name:
        return name
    try:
        return pulumi(project, "stack", "--show-name").strip() or "dev"
    except CliError:
        return "dev"


def export(name: str | None) -> Stack:
    """The stack's state, whatever is in it. Raises CliError when there is no such stack."""
    project = find_project()
    stack = chosen(project, name)
    return Stack(stack, project, json.loads(pulumi(project, "stack", "export", "--stack", stack)))


def nothing_deployed(stack: Stack) -> CliError:
    return CliError(f"stack {stack.name} has nothing deployed: run `pulumi up --stack {stack.name}`")


def load(name: str | None) -> Stack:
    """The stack's state. Raises CliError when there is no such stack, or nothing in it."""
    stack = export(name)
    if not stack.outputs("Machine").get("host"):
        raise nothing_deployed(stack)
    return stack


def named(stack: str | None) -> str:
    """How a command that mends is told the stack this one was told."""
    return f" --stack {shlex.quote(stack)}" if stack else ""


def outputs(name: str | None, needed: Sequence[str] = ("model", "api_key")) -> dict[str, Any]:
    """The stack's outputs, its API key in clear. Raises CliError when it has no endpoint, or not one of ours."""
    project = find_project()
    stack = chosen(project, name)
    found: dict[str, Any] = json.loads(pulumi(project, "stack", "output", "--json", "--show-secrets", "--stack", stack))
    if not found.get("url"):
        raise CliError(f"stack {stack} has no endpoint yet: run `pulumi up --stack {stack}`")
    if lacks := [key for key in needed if not found.get(key)]:
        mend = "go to a sluicegate project's folder, or name its stack with --stack"
        raise CliError(f"stack {stack} is none of sluicegate, its outputs lack {' and '.join(lacks)}: {mend}")
    return found
