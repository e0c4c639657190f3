"""Asking a host program: real processes with scripted answers, and jobs that are asked to give up."""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from sluicegate.provider import hostclient
from sluicegate.provider.hostclient import Host, HostError
from sluicegate.provider.resource import FailedError, Run, UnreachableError

# `job` starts one; `follow` prints events until `revert` has been asked for, which it notes in a file.
SCRIPT = """
import json, pathlib, sys, time
verb, here = sys.argv[1], pathlib.Path(__file__).parent
if verb == "follow":
    print(json.dumps({"phase": "load", "event": "note", "text": "começa"}, ensure_ascii=False), flush=True)
    mode = (here / "mode").read_text()
    while mode == "endless" and not (here / "reverted").exists():
        time.sleep(0.01)
    if mode != "cut":
        print(json.dumps({"result": "reverted" if (here / "reverted").exists() else "serving"}), flush=True)
    sys.exit(0)
spec = json.load(sys.stdin)
if verb == "revert":
    with open(here / "asked", "a") as f: f.write("x")
    if (here / "deaf").exists():
        (here / "deaf").unlink(); sys.exit(1)
    (here / "reverted").touch()
if verb == "hang": time.sleep(60)
if verb == "noise": print("not json"); print("Traceback\\nValueError: no", file=sys.stderr)
elif verb == "error": print(json.dumps({"error": "no such stack", "kind": "Foreign"}))
elif verb == "job": print(json.dumps({"job": "j-1"}))
else: print(json.dumps({"spec": spec}))
"""


@pytest.fixture
def host(tmp_path: Path) -> Host:
    (tmp_path / "host.py").write_text(SCRIPT)
    (tmp_path / "mode").write_text("short")
    return Host([sys.executable, str(tmp_path / "host.py")], {"root": "/r", "stack": "p.s", "run": "/run"})


def test_an_answer_comes_back_with_the_places_in_the_question(host: Host) -> None:
    assert host.ask("status", {"a": "é"}) == {"spec": {"places": host.places, "a": "é"}}


def test_a_job_that_died_without_an_answer_has_every_part_of_one(tmp_path: Path) -> None:
    (tmp_path / "host.py").write_text("import json; print(json.dumps({'result': 'down', 'cause': {'kind': 'killed'}}))")
    host = Host([sys.executable, str(tmp_path / "host.py")], {"root": "/r", "stack": "p.s", "run": "/run"})
    done = host.follow(Run("urn"), "j", lambda _: None)
    assert done["result"] == "down"
    assert (done["phases"], done["gate"], done["log_tail"], done["serving"]) == ({}, [], [], None)


def test_a_refusal_is_told_from_silence(host: Host) -> None:
    with pytest.raises(HostError, match="no such stack") as caught:
        host.ask("error")
    assert caught.value.kind == "Foreign"
    with pytest.raises(UnreachableError, match="ValueError: no"):
        host.ask("noise")
    with pytest.raises(UnreachableError, match="does not start"):
        Host(["/nowhere/python"], {}).ask("status")


def test_a_host_program_that_hangs_is_silence_and_not_for_ever(host: Host) -> None:
    began = time.monotonic()
    with pytest.raises(UnreachableError, match=r"did not answer `hang` within 0.5 s"):
        host.ask("hang", limit_s=0.5)
    assert time.monotonic() - began < 30


def test_every_way_a_host_fails_is_one_the_engine_is_told_plainly() -> None:
    assert issubclass(HostError, FailedError)
    assert issubclass(UnreachableError, FailedError)


def test_a_job_is_followed_to_its_result(host: Host) -> None:
    told: list[Any] = []
    assert host.run_job(Run("urn"), "job", {}, told.append)["result"] == "serving"
    assert [event["text"] for event in told] == ["começa"]


def test_a_job_that_is_lost_sight_of_is_not_told_as_failed(host: Host, tmp_path: Path) -> None:
    (tmp_path / "mode").write_text("cut")
    with pytest.raises(UnreachableError, match="it goes on by itself"):
        host.run_job(Run("urn"), "job", {}, lambda _event: None)


@pytest.mark.parametrize("deaf", [False, True])
def test_a_job_asked_to_give_up_is_followed_to_the_end_of_its_revert(
    deaf: bool, host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hostclient, "AGAIN_S", 0.05)
    (tmp_path / "mode").write_text("endless")
    if deaf:  # the first attempt to tell it is lost
        (tmp_path / "deaf").touch()
    run = Run("urn")
    threading.Timer(0.3, run.cancel.set).start()
    assert host.run_job(run, "job", {}, lambda _event: None)["result"] == "reverted"
    assert (tmp_path / "asked").read_text() == ("xx" if deaf else "x")


def test_nothing_is_started_for_an_operation_that_was_stopped_or_is_out_of_time(host: Host, tmp_path: Path) -> None:
    stopped, late = Run("urn"), Run("urn", timeout_s=0.001)
    stopped.cancel.set()
    time.sleep(0.01)
    for run, why in ((stopped, "cancelled"), (late, "custom timeout")):
        with pytest.raises(FailedError, match=f"{why}.*nothing was touched"):
            host.run_job(run, "job", {}, lambda _event: None)
    assert not (tmp_path / "asked").exists()


def test_no_timeout_is_none_and_cancelled_is_said_before_a_timeout() -> None:
    run = Run("urn")
    assert run.gave_up() is None
    late = Run("urn", timeout_s=1, began=time.monotonic() - 2)
    assert late.gave_up() == "the custom timeout of 1 s has passed"
    late.cancel.set()
    assert late.gave_up() == "cancelled"


def test_every_secret_is_masked_the_longer_ones_first() -> None:
    run = Run("urn", secrets=("abc", "abcdef", "", 'q"x'))
    assert run.mask("abcdef abc " + json.dumps('q"x') + " \ud800") == '[secret] [secret] "[secret]" ?'
