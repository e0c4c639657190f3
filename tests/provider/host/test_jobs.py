"""Detached jobs, through the verbs that start them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sluicegate.provider.host import jobs
from sluicegate.provider.host.files import locked
from tests.provider.host.kit import HOST, KEY, Stack, kill, pids_with, until, worker


@pytest.fixture
def waiting(stack: Stack) -> Any:
    """A job that waits for as long as the test holds the stack's lock."""
    with locked(stack.places.home / "lock", "the test", 10):
        job = stack.start("activate", stack.engine())
        yield job


def follow(job: Path, offset: int = 0) -> list[dict[str, Any]]:
    done = subprocess.run([*HOST, "follow", str(job), str(offset)], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_job_finishes_without_a_follower(stack: Stack) -> None:
    job = stack.start("prepare", stack.engine())
    until(lambda: jobs.result_of(job), "the result")
    until(lambda: not jobs.alive(job), "its end")
    assert stack.status()["last_job"] == {"job": job.name, "result": "prepared", "cause": None}


def test_a_follower_gets_every_event_and_the_result_last(stack: Stack) -> None:
    job = stack.start("prepare", stack.engine())
    lines = follow(job)
    assert lines[-1]["result"] == "prepared"
    assert lines[-1].keys() >= {"phases", "gate", "cause", "log_tail", "serving"}
    assert [line["phase"] for line in lines[:-1] if line["event"] == "start"] == ["image", "weights", "check"]
    assert all(line.keys() == {"t", "job", "phase", "event", "bytes", "total", "text"} for line in lines[:-1])
    assert all(line["job"] == job.name for line in lines[:-1])


def test_following_from_an_offset_gives_what_comes_after_it(stack: Stack) -> None:
    job = stack.start("prepare", stack.engine())
    whole = follow(job)
    first = (job / "events.jsonl").read_bytes().splitlines(keepends=True)[0]
    assert follow(job, len(first)) == whole[1:]


def test_a_job_can_be_seen_from_the_moment_its_id_is_known(stack: Stack, waiting: Path) -> None:
    assert stack.status()["jobs"] == [waiting.name]
    assert stack.ask("revert", job=waiting.name)["running"]
    assert (waiting / "revert").exists()


def test_a_job_whose_processes_are_both_killed_is_down(waiting: Path) -> None:
    process = jobs.process(waiting)
    kill(process, worker(waiting))
    text = f"job {waiting.name} ended without an answer"
    assert follow(waiting) == [{"result": "down", "cause": {"kind": "killed", "transient": True, "text": text}}]


def test_a_worker_whose_job_is_killed_goes_on_alone(stack: Stack) -> None:
    with locked(stack.places.home / "lock", "the test", 10):
        job = stack.start("activate", stack.engine())
        left = worker(job)
        kill(jobs.process(job))
        until(lambda: not (process := jobs.process(job)) or not process.alive(), "the job's end")
        assert jobs.alive(job)
        assert stack.status()["jobs"] == [job.name]
    assert follow(job)[-1]["cause"]["kind"] == "not prepared"
    until(lambda: not left.alive(), "the worker's end")


def test_a_worker_that_is_killed_is_answered_for_by_its_job(stack: Stack) -> None:
    with locked(stack.places.home / "lock", "the test", 10):
        job = stack.start("activate", stack.engine())
        end = worker(job)
        with (job / "events.jsonl").open("a") as events:
            events.write('{"half": ')
        kill(end)
    done = follow(job)[-1]
    assert (done["result"], done["cause"]["kind"], done["serving"]) == ("failed", "killed", None)
    assert jobs.result_of(job) == done


def test_half_a_line_of_a_killed_job_is_not_told(stack: Stack) -> None:
    job = stack.start("prepare", stack.engine())
    lines = follow(job)
    (job / "events.jsonl").write_text(json.dumps(lines[0]) + '\n{"result": "prep')
    assert [line.get("result") for line in follow(job)] == [None, "down"]
    assert jobs.result_of(job) is None


def test_a_job_nobody_knows_is_down(stack: Stack) -> None:
    assert follow(stack.places.jobs / "20260101T000000.000000-prepare")[0]["cause"]["kind"] == "lost"


def test_a_job_that_is_asked_to_give_up_does(stack: Stack, waiting: Path) -> None:
    stack.ask("revert", job=waiting.name)
    assert follow(waiting)[-1]["cause"] == {"kind": "cancelled", "text": "asked to give up", "transient": True}


def test_asking_a_job_that_has_ended_to_give_up_changes_nothing(stack: Stack) -> None:
    job = stack.start("prepare", stack.engine())
    follow(job)
    until(lambda: not jobs.alive(job), "its end")
    assert stack.ask("revert", job=job.name) == {"job": job.name, "running": False}
    assert not (job / "revert").exists()


def test_a_fault_of_our_own_is_a_failed_result_with_its_cause_and_no_traceback(stack: Stack) -> None:
    spec = stack.engine()
    spec["lock"]["sources"] = {"weights": {"same_as": "nothing"}}
    job = stack.start("prepare", spec)
    done = follow(job)[-1]
    assert done["result"] == "failed"
    assert done["cause"] == {"kind": "internal", "text": "KeyError: 'nothing'", "transient": True}
    assert "Traceback" not in (job / "events.jsonl").read_text()
    assert "Traceback" in (job / "stderr").read_text()


def test_only_the_newest_ended_jobs_are_kept(stack: Stack, waiting: Path) -> None:
    for i in range(jobs.KEEP + 5):
        (stack.places.jobs / f"20000101T000000.{i:06d}-prepare").mkdir()
    stack.wait(stack.start("prepare", stack.engine()))
    left = sorted(p.name for p in stack.places.jobs.iterdir())
    assert len(left) == jobs.KEEP
    assert waiting.name in left
    assert "20000101T000000.000000-prepare" not in left


def test_a_job_that_runs_is_never_forgotten(stack: Stack, waiting: Path) -> None:
    old = waiting.with_name("20000101T000000.000000-activate")
    waiting.rename(old)
    for i in range(jobs.KEEP):
        (stack.places.jobs / f"20000102T000000.{i:06d}-prepare").mkdir()
    stack.wait(stack.start("prepare", stack.engine()))
    assert old.is_dir()
    process = jobs.process(old)
    assert process
    process.kill(signal.SIGKILL)


def test_a_key_in_a_spec_never_lies_on_disk_nor_in_a_command_line_nor_an_environment(stack: Stack) -> None:
    with locked(stack.places.home / "front.lock", "the test", 10):
        job = stack.start("front", stack.front())
        process = jobs.process(job)
        assert process
        seen = [Path(f"/proc/{process.pid}/{name}").read_bytes() for name in ("cmdline", "environ")]
        files = [p.read_bytes() for p in stack.places.home.rglob("*") if p.is_file()]
        process.kill(signal.SIGKILL)
    assert KEY.encode() not in b"".join(seen + files)
    assert not pids_with(KEY)


def test_jobs_do_not_inherit_passphrases_but_pips_settings(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "the secret")
    monkeypatch.setenv("PIP_TESTS", "1")
    with locked(stack.places.home / "lock", "the test", 10):
        process = jobs.process(stack.start("activate", stack.engine()))
        assert process
        environ = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
        os.kill(process.pid, signal.SIGKILL)
    assert b"PIP_TESTS=1" in environ
    assert not [e for e in environ if b"the secret" in e]


@pytest.mark.parametrize("kept", ["20991231T235959.999999-prepare", "2099-odd-activate", "notes"])
def test_ids_sort_in_the_order_of_the_starts_also_by_a_clock_that_was_set_back(kept: str, stack: Stack) -> None:
    (stack.places.jobs / kept).mkdir(parents=True)
    first = stack.start("activate", stack.engine())
    second = stack.start("activate", stack.engine())
    assert first.name < second.name
    assert kept == "notes" or kept[4:] == "-odd-activate" or kept < first.name
    assert stack.wait(first)["cause"]["kind"] == stack.wait(second)["cause"]["kind"] == "not prepared"
    assert stack.status()["last_job"]["job"] == second.name
