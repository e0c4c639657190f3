"""A swap whose processes are killed at each step: what served before serves again, or the new one does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sluicegate.provider.host import jobs
from tests.provider.host.kit import Stack, kill, pids_with, until, worker
from tests.provider.host.test_activate import Stream

STEPS = ("finishes its running ones", "starting ", "stub: slow", "gate passed")


def swap_to(stack: Stack, spec: dict[str, Any], step: str) -> Path:
    """Start a swap, and wait until it is at the step; the job."""
    assert stack.run("prepare", spec)["result"] == "prepared"
    job = stack.start("activate", spec)
    if step == "stub: slow":  # the new engine runs, and its first completion hangs
        log = stack.places.release(spec["digest"]) / "engine/log"
        until(lambda: log.exists() and "completion 1" in log.read_text(), "its first completion")
    else:
        until(lambda: step in (job / "events.jsonl").read_text(), step)
    return job


def engines(stack: Stack) -> list[int]:
    return [pid for pid in pids_with(f"{stack.places.run}/") if "stub_engine.py" in _command(pid)]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


@pytest.mark.parametrize("step", STEPS[:3])
def test_a_swap_whose_worker_is_killed_is_taken_back(step: str, stack: Stack, tmp_path: Path) -> None:
    old, go = stack.serve(), tmp_path / "go"
    stream = Stream(stack, go) if step == STEPS[0] else None
    new = stack.engine("--hang-when", str(stack.places.home), "--tokens", "9")
    job = swap_to(stack, new, step)
    kill(worker(job))
    done = stack.wait(job)
    assert (done["result"], done["serving"], done["cause"]["kind"]) == ("reverted", old["digest"], "killed")
    if stream:
        stream.end()
    there = stack.status()
    assert (there["health"], there["serving"]) == ("healthy", old["digest"])
    assert engines(stack) == [stack.pid(old)]
    assert not (stack.places.home / "failed").exists()


def test_a_swap_whose_worker_is_killed_after_the_gate_stays(stack: Stack) -> None:
    stack.serve()
    new = stack.engine("--tokens", "9")
    job = swap_to(stack, new, "gate passed")
    kill(worker(job))
    stack.wait(job)
    # The gate's last line is written just before the link moves: either release is right, and exactly one serves.
    there = stack.status()
    assert there["health"] == "healthy"
    assert len(engines(stack)) == 1
    assert stack.activate(new)["result"] == "serving"
    assert engines(stack) == [stack.pid(new)]


@pytest.mark.parametrize("step", STEPS)
def test_a_swap_whose_job_is_killed_is_finished_by_its_worker(step: str, stack: Stack, tmp_path: Path) -> None:
    stack.serve()
    go = tmp_path / "go"
    stream = Stream(stack, go) if step == STEPS[0] else None
    new = stack.engine("--hang-when", str(tmp_path / "hang"), "--tokens", "9")
    (tmp_path / "hang").touch()
    if step == "gate passed":
        (tmp_path / "hang").unlink()
    job = swap_to(stack, new, step)
    kill(jobs.process(job))
    (tmp_path / "hang").unlink(missing_ok=True)
    if stream:
        stream.end()
    assert stack.wait(job)["result"] == "serving"
    assert engines(stack) == [stack.pid(new)]
    assert stack.status()["serving"] == new["digest"]


@pytest.mark.parametrize("step", STEPS)
def test_a_swap_that_is_killed_whole_is_told_and_healed_by_the_next(step: str, stack: Stack, tmp_path: Path) -> None:
    old, go = stack.serve(), tmp_path / "go"
    stream = Stream(stack, go) if step == STEPS[0] else None
    hang = tmp_path / "hang"
    new = stack.engine("--hang-when", str(hang), "--tokens", "9")
    if step != "gate passed":
        hang.touch()
    job = swap_to(stack, new, step)
    kill(jobs.process(job), worker(job))
    done = stack.wait(job)
    there = stack.status()
    assert done["result"] in ("down", "serving")
    assert (there["serving"] is None) == (there["health"] in ("dead", "none")), there
    hang.unlink(missing_ok=True)
    if stream:
        stream.end()
    assert stack.activate(new)["result"] == "serving"
    assert engines(stack) == [stack.pid(new)]
    assert stack.activate(old)["result"] == "serving"
    assert engines(stack) == [stack.pid(old)]


def test_a_first_start_whose_worker_is_killed_leaves_nothing_running(stack: Stack, tmp_path: Path) -> None:
    (tmp_path / "hang").touch()
    new = stack.engine("--hang-when", str(tmp_path / "hang"))
    job = swap_to(stack, new, "stub: slow")
    kill(worker(job))
    done = stack.wait(job)
    assert (done["result"], done["serving"], done["cause"]["kind"]) == ("failed", None, "killed")
    assert engines(stack) == []
    assert json.dumps(stack.status()["jobs"]) == "[]"
    (tmp_path / "hang").unlink()
    assert stack.activate(new)["result"] == "serving"
