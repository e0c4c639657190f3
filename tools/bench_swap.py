"""`make bench`, the swap: what a change costs beyond the engine's own stop and start, and a long random walk."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.stack.faults import faulty
from tests.stack.harness import Project, until
from tests.stack.walk import Walk
from tools.bench_figures import figure, say

SWAPS = 5
WALK_STEPS = 200


class Pause:
    """How long the front has no engine behind it: the time for which `current.sock` is not there."""

    def __init__(self, p: Project) -> None:
        self._sock = Path(json.loads((p.home / "machine.json").read_text())["run"]) / "current.sock"
        self._over, self._away = threading.Event(), list[float]()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Pause:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        gone: float | None = None
        while not self._over.wait(0.001):
            there = os.path.lexists(self._sock)
            if not there and gone is None:
                gone = time.monotonic()
            elif there and gone is not None:
                self._away.append(time.monotonic() - gone)
                gone = None

    def seconds(self) -> float:
        return sum(self._away)


def swap_pause(p: Project) -> None:
    """Of a good swap and of one that is taken back; the engines' own share is what their gates measured."""
    p.up()
    good, taken_back, stops = [], [], []
    p.set(endpoint={"gateDeadlineS": 60})
    for number in range(SWAPS):
        p.use(p.vary("smollm2-135m/q4", "bench", {"args": ["--threads", "1", "--batch-size", str(512 + number)]}))
        stops.append(_stop_s(p))
        with Pause(p) as pause:
            p.up("--refresh")
        good.append(pause.seconds() - stops[-1] - _own_s(p.outputs()["record"]["gate"]))
        kept = dict(p.config)
        p.use(faulty(p, "answers with another model's name", args=["--threads", "1", "--batch-size", str(number + 9)]))
        with Pause(p) as pause:
            p.up(check=False)
        result = json.loads((p.jobs()[-1] / "events.jsonl").read_text().splitlines()[-1])
        assert result["result"] == "reverted", result
        back = json.loads((p.home / "current" / "gate.json").read_text())["gate"]
        taken_back.append(pause.seconds() - 2 * stops[-1] - _own_s(result["gate"]) - _own_s(back))
        p.use_config(kept)
    figure("pause of a swap beyond the engine's own stop and start", good, "s", "0.5")
    figure("pause of a swap that is taken back, beyond two", taken_back, "s", "1")


def _own_s(gate: list[dict[str, Any]]) -> float:
    """From the engine's start to its first completion."""
    return sum(float(c["s"]) for c in gate if c["check"] in ("port", "completion"))


def _stop_s(p: Project) -> float:
    """How long the engine takes to end once it is told to; its supervisor starts it again."""
    pid, began = p.engine_pid(), time.monotonic()
    os.kill(pid, signal.SIGTERM)
    while Path(f"/proc/{pid}/exe").exists():
        time.sleep(0.001)
    took = time.monotonic() - began
    until("the engine is back", lambda: p.status()["health"] == "healthy", 60)
    return took


def cancel_to_revert(p: Project) -> None:
    """From ^C, while a new engine does not come up, to the start of the old one."""
    p.up()
    seconds, good = [], dict(p.config)
    for number in range(SWAPS):
        p.use(faulty(p, "never ready", args=["--threads", "1", "--batch-size", str(number + 9)]))
        before = set(p.jobs())
        up = p.start_up()
        until("the new engine is waited for", lambda b=before: _of(p, b, '"progress"'), 60)
        asked = datetime.now().astimezone()
        up.send_signal(signal.SIGINT)
        up.communicate(timeout=120)
        line = next(line for line in _of(p, before, "going back to").splitlines() if "going back to" in line)
        seconds.append((datetime.fromisoformat(json.loads(line)["t"]) - asked).total_seconds())
        p.use_config(good)
    figure("^C to a started revert", seconds, "s", "1")


def _of(p: Project, before: set[Path], text: str) -> str:
    """The events of the new activate job, once they hold the text."""
    for job in p.jobs():
        if job not in before and job.name.endswith("activate") and text in (job / "events.jsonl").read_text():
            return (job / "events.jsonl").read_text()
    return ""


def random_walk(p: Project) -> None:
    p.up()
    walk, began = Walk(p, seed=20261130), time.monotonic()
    walk.run(WALK_STEPS)
    minutes = (time.monotonic() - began) / 60
    say(f"  random walk: {WALK_STEPS} steps, {WALK_STEPS / minutes:.1f} a minute, {walk.faults} faults survived, "
        "0 broken invariants")  # fmt: skip
