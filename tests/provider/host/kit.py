"""What the tests of the host program share: a stack of its own, asked by verbs as the provider asks it."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sluicegate.provider.front import CADDY
from sluicegate.provider.host import jobs
from sluicegate.provider.host.files import read_json
from sluicegate.provider.host.places import Places
from sluicegate.provider.host.processes import Proc, commands

CHECKOUT = Path(__file__).resolve().parents[3]
ROOT = CHECKOUT / ".cache/tests/root"  # shared, so that nothing is fetched twice
STUB = Path(__file__).with_name("stub_engine.py")
HOST = [sys.executable, "-P", "-m", "sluicegate.provider.host"]
DEADLINE_S = 60  # never waited for where all is well
KEY = "a-key-of-the-tests-1"

METRICS = {
    "path": "/metrics", "drafts": "stub_drafts_total", "draft_tokens": "stub_draft_tokens_total",
    "accepted": "stub_accepted_total", "running": "stub_running", "waiting": "stub_waiting",
    "moving": ["stub_chunks_total"],
}  # fmt: skip
FACTS: dict[str, Any] = {
    "health": "/health", "models": "/v1/models", "max_len_field": "meta.n_ctx", "max_model_len": 1024,
    "version": None, "metrics": METRICS, "fingerprint": False, "speculation": False, "acceptance_floor": None,
    "not_helping": "fail", "prompts": {"plain": "Say a word.", "predictable": "Repeat."}, "check": [],
    "steady_s": 0.2, "drain_s": DEADLINE_S, "stop_s": 5.0, "patterns": [],
}  # fmt: skip


def until(condition: Callable[[], Any], what: str, deadline_s: float = DEADLINE_S) -> Any:
    """The condition's first true value; fails the test at the deadline."""
    end = time.monotonic() + deadline_s
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.02)
    raise AssertionError(f"not within {deadline_s} s: {what}")


def verb(name: str, text: str, *words: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a verb."""
    done = subprocess.run([*HOST, name, *words], input=text, capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout, done.stderr


def worker(job: Path) -> Proc:
    """The process that does a job's work."""
    proc: Proc = until(lambda: Proc.read(read_json(job / "worker.json")), "the worker")
    return proc


def kill(*processes: Proc | None) -> None:
    for process in processes:
        assert process
        process.kill(signal.SIGKILL)


def pids_with(text: str) -> list[int]:
    """Processes that have `text` in their command line, our own aside."""
    return [pid for pid, argv in commands() if pid != os.getpid() and text.encode() in b"\0".join(argv)]


class Stack:
    """One stack with a name of its own."""

    def __init__(self, root: Path = ROOT) -> None:
        self.name, self.token = f"tests.{uuid.uuid4().hex[:12]}", "machine-token"
        claim = {"root": str(root), "stack": self.name, "stack_id": self.name, "token": self.token}
        there = json.loads(verb("claim", json.dumps(claim))[1])
        self.spec = {"places": {"root": there["root"], "run": there["run"], "stack": self.name}}
        self.places = Places.of(self.spec)

    def ask(self, name: str, **spec: Any) -> Any:
        code, out, err = verb(name, json.dumps(self.spec | spec))
        answer = json.loads(out)
        assert code == 0, answer
        assert err == ""
        return answer

    def status(self) -> dict[str, Any]:
        return dict(self.ask("status"))

    def start(self, name: str, spec: dict[str, Any]) -> Path:
        """Start a job; its folder."""
        return self.places.jobs / str(self.ask(name, **spec)["job"])

    def wait(self, job: Path) -> dict[str, Any]:
        return dict(json.loads(list(jobs.follow(job, 0))[-1]))

    def run(self, name: str, spec: dict[str, Any]) -> dict[str, Any]:
        return self.wait(self.start(name, spec))

    def engine(self, *flags: str, facts: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        """The spec of a lock whose engine is the stub with these flags; another digest for each set of flags."""
        ref = f"file:{STUB.relative_to(CHECKOUT)}#sha256:{hashlib.sha256(STUB.read_bytes()).hexdigest()}"
        lock: dict[str, Any] = {"engine": {"name": "stub", "source": ref}, "sources": {}, "env": {}}
        lock["argv"] = ["--socket", "{socket}", *flags]
        digest = f"sha256:{hashlib.sha256(json.dumps(lock).encode()).hexdigest()}"
        return {
            "digest": digest, "lock": lock, "engine": FACTS | (facts or {}), "model": "stub", "token": "engine-token",
            "command": [sys.executable, "-P", str(STUB)], "files_base": str(CHECKOUT), "deadline_s": DEADLINE_S,
            "revert_s": DEADLINE_S, "retry": 0,
        } | more  # fmt: skip

    def activate(self, spec: dict[str, Any]) -> dict[str, Any]:
        """Prepare and activate; the answer of the latter."""
        done = self.run("prepare", spec)
        assert done["result"] == "prepared", done
        return self.run("activate", spec)

    def serve(self, *flags: str, **more: Any) -> dict[str, Any]:
        """A lock that serves; its spec."""
        spec = self.engine(*flags, **more)
        done = self.activate(spec)
        assert done["result"] == "serving", done
        return spec

    def pid(self, spec: dict[str, Any]) -> int | None:
        """Of the release's engine, while it runs."""
        state = self.places.release(spec["digest"]) / "engine/state.json"
        child = json.loads(state.read_text())["child"] if state.exists() else None
        return child["pid"] if child and Path(f"/proc/{child['pid']}").exists() else None

    def front(self, **more: Any) -> dict[str, Any]:
        return {
            "caddy": CADDY, "key": KEY, "key_overlap_s": 0, "paths": ["/v1/*"], "hold_s": DEADLINE_S,
            "model": "stub", "token": "front-token", "deadline_s": DEADLINE_S,
        } | more  # fmt: skip

    def end(self) -> None:
        self.ask("deactivate", what="machine", token=self.token)
        left = until(lambda: not pids_with(self.name) and not pids_with(str(self.places.run)), "all processes gone", 10)
        assert left
