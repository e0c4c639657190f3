"""A host program that answers from a script, in place of the real one: no process, no file, no network."""

# ruff: noqa: ARG002 - the methods have the parameters of what they stand in for

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sluicegate.provider.hostclient import HostError
from sluicegate.provider.resource import FailedError, Run, Values

STATUS = {
    "result": "serving", "serving": "sha256:" + "a" * 64, "health": "healthy", "why": None, "jobs": [],
    "machine": {"token": "tok"}, "engine_owner": "tok", "front": {"token": "tok", "healthy": True, "why": None},
}  # fmt: skip
SERVING = {
    "result": "serving", "phases": {"load": 1.5}, "gate": [{"check": "completion", "ok": True, "seen": "4 tokens"}],
    "cause": None, "log_tail": [], "url": "http://127.0.0.1:8080",
}  # fmt: skip
FAILED = SERVING | {
    "result": "reverted", "gate": [], "cause": {"kind": "gate", "text": "no token within 5 s", "transient": False},
    "log_tail": ["loading", "boom"],
}  # fmt: skip


@dataclass
class FakeHost:
    """`answers` maps a verb to its answer, or to an exception; `jobs` a verb to its result."""

    answers: dict[str, Any] = field(default_factory=dict)
    jobs: dict[str, Any] = field(default_factory=dict)
    asked: list[tuple[str, Any]] = field(default_factory=list)

    def ask(self, verb: str, spec: Values | None = None) -> Any:
        self.asked.append((verb, spec))
        answer = self.answers.get(verb, STATUS if verb == "status" else {"done": True})
        if isinstance(answer, list):
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def run_job(self, run: Run, verb: str, spec: Values, tell: Callable[[Values], None]) -> Values:
        self.asked.append((verb, spec))
        if run.gave_up():
            raise FailedError("cancelled before it was started; nothing was touched.")
        default = SERVING | {"result": "prepared"} if verb == "prepare" else SERVING
        answer = self.jobs.get(verb, default)
        if isinstance(answer, Exception):
            raise answer
        if callable(answer):
            answer = answer(run)
        return dict(answer)

    def follow(self, run: Run, job: str, tell: Callable[[Values], None]) -> Values:
        self.asked.append(("follow", job))
        return dict(SERVING)

    def verbs(self) -> list[str]:
        return [verb for verb, _ in self.asked]


@dataclass
class FakeCloud:
    """Stands in for an adapter's module: a host for each root."""

    hosts: dict[str, FakeHost]

    def connect(self, host: dict[str, Any]) -> FakeHost:
        return self.hosts[host["root"]]

    def find(self, host: dict[str, Any]) -> Any:
        return self.connect(host).ask("claimed")["machine"]

    def release(self, host: dict[str, Any], token: str) -> bool:
        return bool(self.connect(host).ask("deactivate", {"what": "machine", "token": token})["done"])

    def disks(self, claim: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"where": claim.get("root") or "/default"}]

    def disk_bytes(self, disk: dict[str, Any]) -> int:
        return 1_000_000

    def empty_disk(self, disk: dict[str, Any]) -> list[str]:
        return ["a"]


HOST = {"cloud": "local", "root": "/r", "run": "/run", "stack": "p.s"}
GONE = HostError("no such stack here", "KeyError")


def until_told(run: Run, limit_s: float = 10) -> Values:
    """A job that never ends by itself: it reverts when it is asked to."""
    end = time.monotonic() + limit_s
    while not run.gave_up():
        if time.monotonic() > end:
            raise AssertionError("nobody asked the job to give up")
        threading.Event().wait(0.01)
    return FAILED | {"cause": {"kind": "cancelled", "text": "asked to give up", "transient": True}}
