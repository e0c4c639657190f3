"""A random walk over a stack's life: changes, faults, kills, refreshes, from a seed; the invariants after each step.

Shared by its test, a short walk, and by `make bench`, a long one.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.stack.faults import faulty
from tests.stack.harness import Project, post, until

QUICK_FAULTS = ("dies at start", "answers 500", "answers with another model's name", "dies at its first request")


@dataclass
class Walk:
    """`steps` has what was done; a step that breaks an invariant raises AssertionError with the walk so far."""

    p: Project
    seed: int
    steps: list[str] = field(default_factory=list)
    faults: int = 0
    damaged: bool = False  # something was killed since the last good `up`: what serves may not be what the state says

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.p.env["PULUMI_DEBUG_COMMANDS"] = "true"  # for --event-log
        self.good = dict(self.p.config)
        self.key = self.p.outputs()["api_key"]
        self.keys = {self.key}
        self.texts: list[str] = []

    def run(self, count: int) -> None:
        moves: list[Callable[[], None]] = [
            self.change, self.change, self.bad, self.again, self.back, self.rotate, self.refresh, self.preview,
            self.kill_engine, self.kill_supervisor, self.kill_front, self.kill_all, self.kill_in_a_swap,
            self.interrupt, self.kill_cli, self.lose_socket, self.half_a_job,
        ]  # fmt: skip
        for _ in range(count):
            move = self.random.choice(moves)
            self.steps.append(move.__name__)
            try:
                move()
                self.hold()
            except AssertionError as e:
                raise AssertionError(f"seed {self.seed}, after {', '.join(self.steps)}: {e}") from e
        self.p.use_config(self.good)
        self._up("--refresh")
        self.hold()

    # --- what must be true after each step ---

    def hold(self) -> None:
        there = self.p.settled()
        engines = self.p.engines()
        assert len(engines) <= 1, f"{len(engines)} engines"
        kinds = [line for line in self.p.processes().values() if "supervise" in line]
        assert len(kinds) <= 2, kinds
        state = self.p.resource("Engine")
        if not self.damaged and not state.get("initErrors"):
            assert there["serving"] == state["outputs"]["lock"], (there, state["outputs"]["lock"])
            assert there["health"] == "healthy", there
        self._no_secret()

    def _no_secret(self) -> None:
        seen = {"state": self.p.state(), **{f"text {n}": text for n, text in enumerate(self.texts)}}
        self.texts.clear()
        for path in self.p.home.rglob("*"):
            if path.is_file() and path.name not in ("key", "key.previous") and path.stat().st_size < 1 << 20:
                seen[path.name] = path.read_text(errors="replace")
        for pid in self.p.processes():
            for part in ("cmdline", "environ"):
                try:
                    seen[f"{part} of {pid}"] = Path(f"/proc/{pid}/{part}").read_text(errors="replace")
                except OSError:
                    continue
        leaks = [place for place, text in seen.items() if any(key in text for key in self.keys)]
        assert not leaks, leaks

    # --- steps ---

    def _up(self, *words: str) -> None:
        log = self.p.folder / "events.log"
        done = self.p.up(*words, "--event-log", str(log), check=False)
        self.texts += [done.text, log.read_text() if log.exists() else ""]
        state = self.p.resource("Engine")
        if done.code == 0:
            if "--refresh" in words or ":Engine serve-0-engine updated" in done.text:  # else nobody has looked
                self.damaged = bool(state.get("initErrors"))
            assert state["outputs"]["lock"] == self.p.config["pins"]["lock"], done.text
        elif "nothing serves" in done.text or state.get("initErrors"):
            self.damaged = True

    def change(self) -> None:
        args = {"args": ["--threads", "1", "--batch-size", str(self.random.randrange(256, 100_000))]}
        self.p.use(self.p.vary("smollm2-135m/q4", f"good-{len(self.steps)}", args))
        self._up()
        if self.p.resource("Engine")["outputs"]["lock"] == self.p.config["pins"]["lock"]:
            self.good = dict(self.p.config)

    def bad(self) -> None:
        self.faults += 1
        self.p.use(faulty(self.p, self.random.choice(QUICK_FAULTS)))
        self._up()

    def again(self) -> None:
        self._up()

    def back(self) -> None:
        self.p.use_config(self.good)
        self._up()

    def rotate(self) -> None:
        self.p.set(endpoint={"keyRotation": str(len(self.steps))})
        self.good |= {"endpoint": self.p.config["endpoint"]}
        self._up()
        self.keys.add(self.p.outputs()["api_key"])

    def refresh(self) -> None:
        self._up("--refresh")

    def preview(self) -> None:
        for words in ((), ("--diff",), ("--json", "--show-secrets"), ("--refresh",)):
            self.texts.append(self.p.pulumi("preview", *words, "--stack", self.p.name, check=False).text)

    def _kill(self, *marks: str) -> None:
        self.faults += 1
        self.p.kill(*marks)

    def kill_engine(self) -> None:
        before = self.p.status()
        self._kill("llama_server.py")
        if before["health"] == "healthy":  # supervision brings it back
            until("the engine is back", lambda: self.p.status()["health"] == "healthy", 60)

    def kill_supervisor(self) -> None:
        self._kill("/releases/")
        self.damaged = True

    def kill_front(self) -> None:
        self._kill("/front")
        self.damaged = True

    def kill_all(self) -> None:
        """As a reboot: every process, and the sockets with the run folder."""
        self._kill("")
        run = Path(json.loads((self.p.home / "machine.json").read_text())["run"])
        for sock in run.glob("*"):
            sock.unlink()
        self.damaged = True

    def lose_socket(self) -> None:
        self.faults += 1
        run = Path(json.loads((self.p.home / "machine.json").read_text())["run"])
        (run / "current.sock").unlink(missing_ok=True)
        self.damaged = True

    def half_a_job(self) -> None:
        self.faults += 1
        job = self.p.home / "jobs" / f"20260101T000000.{len(self.steps):06}-activate"
        job.mkdir()
        (job / "job.json").write_text('{"process": {"pid": ')
        (job / "events.jsonl").write_text('{"half')

    def _begin(self) -> subprocess.Popen[str]:
        args = {"args": ["--threads", "1", "--batch-size", str(self.random.randrange(256, 100_000))]}
        self.p.use(self.p.vary("smollm2-135m/q4", f"good-{len(self.steps)}", args))
        up = self.p.start_up()
        time.sleep(self.random.uniform(0.5, 4))
        return up

    def _ended(self, up: subprocess.Popen[str]) -> None:
        said, _ = up.communicate(timeout=240)
        self.texts.append(said)
        self.damaged = True
        self.p.settled()
        if self.p.resource("Engine")["outputs"]["lock"] == self.p.config["pins"]["lock"]:
            self.good = dict(self.p.config)

    def kill_in_a_swap(self) -> None:
        up = self._begin()
        self.faults += 1
        note = self.random.choice(("job.json", "worker.json"))
        for job in self.p.jobs()[-1:]:
            try:
                found = json.loads((job / note).read_text())
                os.kill(int(found.get("process", found)["pid"]), signal.SIGKILL)
            except (OSError, ValueError):
                continue
        self._ended(up)

    def interrupt(self) -> None:
        up = self._begin()
        self.faults += 1
        up.send_signal(signal.SIGINT)
        self._ended(up)

    def kill_cli(self) -> None:
        up = self._begin()
        self.faults += 1
        up.kill()
        self._ended(up)
        self.p.pulumi("cancel", "--yes", "--stack", self.p.name, check=False)


def serves(p: Project) -> bool:
    return post(p.outputs()).status_code == 200
