"""Runs of Pulumi as others see them: the lock one holds, those that are at it now, and what a killed one left."""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from .stack import Stack, environ, pulumi

CHANGING = {"up", "update", "refresh", "destroy", "import"}
PLUGIN = re.compile(r"pulumi-(resource|language)-[a-z-]+$")


@dataclass(frozen=True)
class Lock:
    """Pulumi's own lock on a stack. `alive`: whether the run that took it goes on; None where that cannot be told."""

    by: str
    since: str | None = None
    alive: bool | None = None


@dataclass(frozen=True)
class Process:
    pid: int
    command: str


def locks(stack: Stack) -> list[Lock] | None:
    """The locks on the stack; None where its backend does not tell."""
    url = environ(stack.project).get("PULUMI_BACKEND_URL")
    url = url or str(_object(pulumi(stack.project, "whoami", "--json")).get("url", ""))
    if not url.startswith("file://"):
        return _active(stack)
    state = stack.project / Path(url.removeprefix("file://").partition("?")[0]).expanduser()
    folder = state / ".pulumi" / "locks" / "organization" / project_name(stack) / stack.name.rpartition("/")[2]
    return [_lock(path) for path in sorted(folder.glob("*.json"))]


def project_name(stack: Stack) -> str:
    return str(yaml.safe_load((stack.project / "Pulumi.yaml").read_text())["name"])


def _lock(path: Path) -> Lock:
    said = _note(path)
    if said is None or not said.keys() >= {"hostname", "pid", "username", "timestamp"}:
        return Lock("a run that left it unreadable")
    alive = said["pid"] in {run.pid for run in _pulumis()} if said["hostname"] == socket.gethostname() else None
    since = re.sub(r"\.\d+", "", str(said["timestamp"]))
    return Lock(f"{said['username']}@{said['hostname']}, pid {said['pid']}", since, alive)


def _active(stack: Stack) -> list[Lock] | None:
    """What a backend that is no folder says of its stacks; only Pulumi Cloud says whether one is being changed."""
    stacks = json.loads(pulumi(stack.project, "stack", "ls", "--json") or "[]")
    short = stack.name.rpartition("/")[2]
    active = next((s.get("updateInProgress") for s in stacks if s["name"].rpartition("/")[2] == short), None)
    if active is None:
        return None
    return [Lock("a run that the backend knows")] if active else []


def deploying(stack: Stack) -> list[Process]:
    """Runs of pulumi on this machine that may be changing the stack: in its project, of it or of no named one."""
    return [run for run in _pulumis() if _within(run.pid, stack.project) and _changes(run.command, stack.name)]


def _changes(command: str, stack: str) -> bool:
    words = command.split()
    if not CHANGING & set(words):
        return False
    told = re.search(r" (?:--stack|-s)[ =]?(\S+)", command)
    return told is None or told[1].rpartition("/")[2] == stack.rpartition("/")[2]


def orphans(stack: Stack) -> list[Process]:
    """Plugins in the stack's project whose run has ended. Which stack it was of, a plugin's process does not say."""
    found = []
    for pid, argv in _argvs():
        words = [os.path.basename(os.fsdecode(word)) for word in argv[:2]]
        name = next((word for word in words if PLUGIN.match(word)), None)
        if name and _within(pid, stack.project) and not _parent_is_pulumi(pid):
            found.append(Process(pid, name))
    return found


def _pulumis() -> Iterator[Process]:
    for pid, argv in _argvs():
        if os.path.basename(os.fsdecode(argv[0])) == "pulumi":
            yield Process(pid, b" ".join(argv).decode(errors="replace").strip())


def _within(pid: int, folder: Path) -> bool:
    with suppress(OSError):  # another user's, or gone since
        return Path(os.readlink(f"/proc/{pid}/cwd")).is_relative_to(folder.resolve())
    return False


def _parent_is_pulumi(pid: int) -> bool:
    with suppress(OSError, IndexError):
        parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
        return Path(f"/proc/{parent}/comm").read_text().startswith("pulumi")
    return False


def _object(text: str) -> dict[str, Any]:
    return dict(json.loads(text or "{}"))


def _note(path: Path) -> dict[str, Any] | None:
    """The JSON object in a file; None when it is gone, or none."""
    try:
        value = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _argvs() -> Iterator[tuple[int, list[bytes]]]:
    """Pid and argument list of every process of this machine whose command line can be read."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            yield int(name), Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
