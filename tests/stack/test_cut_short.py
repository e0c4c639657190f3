"""A swap that is interrupted, or whose processes are killed, at each of its steps.

Whatever is cut, the host finishes the swap or takes it back by itself; the state and what serves agree, or `up` says
that they do not and mends it; there are never two engines, and no lock is left that `unlock` does not clear.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.stack.harness import Project, post, until

# A step -> what is seen when it has begun: text in the events of a job of the swap, or one of its files.
STEPS = {
    "the host is not asked yet": lambda _new: True,
    "prepare has begun": lambda new: new("prepare") is not None,
    "sources are fetched": lambda new: '"weights", "event": "start"' in new("prepare", ""),
    "the command line is checked": lambda new: '"check", "event": "start"' in new("prepare", ""),
    "prepare has ended": lambda new: '"result": "prepared"' in new("prepare", ""),
    "activate has begun": lambda new: new("activate") is not None,
    "requests are held": lambda new: "holding new requests" in new("activate", ""),
    "the new engine starts": lambda new: '"starting ' in new("activate", ""),
    "the new engine loads": lambda new: '"progress"' in new("activate", ""),
    "the gate has passed": lambda new: "gate passed" in new("activate", ""),
}  # fmt: skip
OF_THE_HOST = [step for step in STEPS if not step.startswith(("the host", "prepare has"))]


class Swap:
    """`up` to a lock that this machine has never seen, begun; `at` waits for a step of it."""

    numbers = count(257)

    def __init__(self, p: Project) -> None:
        self.p, self.out = p, p.outputs()
        self.old = self.out["lock"]
        args = {"args": ["--threads", "1", "--batch-size", str(next(Swap.numbers))]}
        self.new = p.use(p.vary("smollm2-135m/q4", "other", args))
        self.before = set(p.jobs())
        self.up = p.start_up()

    def at(self, step: str) -> None:
        end = time.monotonic() + 120
        while not STEPS[step](self._events):
            assert self.up.poll() is None, f"it has ended before {step}: {self.up.communicate()[0]}"
            assert time.monotonic() < end, step
            time.sleep(0.002)

    def _events(self, verb: str, missing: Any = None) -> Any:
        job = self.job(verb)
        return (job / "events.jsonl").read_text() if job and (job / "events.jsonl").exists() else missing

    def job(self, verb: str = "") -> Path | None:
        found = [job for job in self.p.jobs() if job not in self.before and job.name.endswith(verb)]
        return found[-1] if found else None

    def end(self) -> str:
        """What `up` printed, once it has ended."""
        return self.up.communicate(timeout=120)[0]


def healthy(swap: Swap) -> str:
    """The one engine serves, through the front too; its lock."""
    there = swap.p.settled()
    assert there["health"] == "healthy", there
    assert len(swap.p.engines()) == 1
    assert post(swap.out).status_code == 200
    return str(there["serving"])


def finish(swap: Swap) -> None:
    """The next `up` brings what was asked for, and leaves nothing to warn of."""
    swap.p.up("--refresh")
    assert healthy(swap) == swap.new
    left = json.loads(swap.p.state())["deployment"]
    assert not left.get("pending_operations")
    (engine,) = (r for r in left["resources"] if r["type"] == "sluicegate:index:Engine")
    assert engine["outputs"]["lock"] == swap.new
    assert not engine.get("initErrors")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("how", ["^C", "SIGTERM"])
def test_an_interrupt_ends_with_the_old_release_or_the_new_and_the_state_says_which(
    how: str, step: str, served: Project
) -> None:
    swap = Swap(served)
    swap.at(step)
    swap.up.send_signal(signal.SIGINT if how == "^C" else signal.SIGTERM)
    said = swap.end()
    serving = healthy(swap)
    assert serving in (swap.old, swap.new)
    engine = served.resource("Engine")
    assert engine["outputs"]["lock"] == serving, said
    assert not engine.get("initErrors")
    assert swap.up.returncode != 0 or serving == swap.new, said
    finish(swap)


@pytest.mark.parametrize("step", STEPS)
def test_two_interrupts_leave_an_engine_that_serves_and_the_next_up_agrees(step: str, served: Project) -> None:
    swap = Swap(served)
    swap.at(step)
    swap.up.send_signal(signal.SIGINT)
    time.sleep(0.3)
    swap.up.send_signal(signal.SIGINT)
    swap.end()
    assert healthy(swap) in (swap.old, swap.new)
    finish(swap)


def _tree(pid: int) -> Iterator[int]:
    """The process and all below it that lives."""
    yield pid
    done = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False)
    for child in done.stdout.split():
        yield from _tree(int(child))


def _argv(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def kill(*pids: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def _of_job(job: Path | None, note: str) -> int:
    assert job
    until(f"{note} of {job.name}", (job / note).exists, 20)
    found = json.loads((job / note).read_text())
    return int(found.get("process", found)["pid"])


def kill_cli(swap: Swap) -> None:
    kill(swap.up.pid)
    swap.end()
    locked = swap.p.up(check=False)
    assert locked.code != 0
    assert "locked" in locked.text
    subprocess.run(["sluicegate", "unlock", "--yes", "--stack", swap.p.name], cwd=swap.p.folder, env=swap.p.env,
                   check=True, capture_output=True, timeout=120)  # fmt: skip


def kill_provider(swap: Swap) -> None:
    kill(*(pid for pid in _tree(swap.up.pid) if "pulumi-resource-sluicegate" in _argv(pid)))


def kill_job(swap: Swap) -> None:
    kill(_of_job(swap.job(), "job.json"))


def kill_worker(swap: Swap) -> None:
    kill(_of_job(swap.job(), "worker.json"))


def kill_job_and_worker(swap: Swap) -> None:
    kill(_of_job(swap.job(), "job.json"), _of_job(swap.job(), "worker.json"))


def kill_supervisors(swap: Swap) -> None:
    engines = (pid for pid, line in swap.p.processes().items() if "supervise" in line and "/releases/" in line)
    kill(*engines)


KILLED: dict[str, Callable[[Swap], None]] = {
    "the CLI": kill_cli, "the provider": kill_provider, "the host's job": kill_job, "the job's worker": kill_worker,
    "job and worker": kill_job_and_worker, "the engine's supervisor": kill_supervisors,
}  # fmt: skip


@pytest.mark.parametrize("step", OF_THE_HOST)
@pytest.mark.parametrize("what", KILLED)
def test_a_kill_never_leaves_two_engines_or_none_without_saying_so(what: str, step: str, served: Project) -> None:
    swap = Swap(served)
    swap.at(step)
    KILLED[what](swap)
    said = swap.end() if swap.up.returncode is None else ""
    there = served.settled()
    assert len(served.engines()) <= 1
    if there["serving"] is None:
        # Nobody is left who could have taken it back: `up` has said so, or the next look does.
        seen = served.pulumi("preview", "--refresh", "--stack", served.name)
        assert "nothing serves" in said + seen.text
    elif what not in ("the CLI", "the provider"):
        assert served.resource("Engine")["outputs"]["lock"] == there["serving"], said
    finish(swap)
