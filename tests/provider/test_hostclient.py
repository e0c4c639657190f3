"""Asking a host program: scripted lines, and jobs that are asked to give up."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from sluicegate.provider import hostclient
from sluicegate.provider.clouds import local
from sluicegate.provider.hostclient import Host, HostError
from sluicegate.provider.resource import FailedError, Run, UnreachableError, Values

PLACES = {"root": "/r", "stack": "p.s", "run": "/run"}


@dataclass(frozen=True)
class Scripted(Host):
    """A host whose `job` goes as `mode` says: short, endless (until asked to revert), or cut before its result."""

    mode: str = "short"
    deaf: list[int] = field(default_factory=list)  # questions to revert that are lost
    asked: list[Values] = field(default_factory=list)
    reverted: threading.Event = field(default_factory=threading.Event)

    def lines(self, verb: str, spec: Values) -> Iterator[str]:
        self.asked.append({"verb": verb} | spec)
        if verb == "revert":
            if self.deaf:
                self.deaf.pop()
                raise UnreachableError("the line is down")
            self.reverted.set()
            yield "{}"
            return
        if verb == "job":
            yield json.dumps({"job": "j-1"})
        yield json.dumps({"phase": "load", "event": "note", "text": "começa"}, ensure_ascii=False)
        if self.mode == "endless":
            assert self.reverted.wait(60)
        if self.mode == "cut":
            raise UnreachableError("the line is down")
        if self.mode != "silent":
            yield json.dumps({"result": "reverted" if self.reverted.is_set() else "serving"})


def nobody(_event: Values) -> None:
    """For those who listen to nothing."""


def test_a_job_is_started_with_the_places_and_followed_to_its_result() -> None:
    host, told = Scripted(PLACES), list[Any]()
    done = host.run_job(Run("urn"), "job", {"a": "é"}, told.append)
    assert done == {"serving": None, "phases": {}, "gate": [], "cause": None, "log_tail": [], "result": "serving"}
    assert [event["text"] for event in told] == ["começa"]
    assert host.asked == [{"verb": "job", "places": PLACES, "follow": True, "a": "é"}]


def test_a_job_of_an_earlier_run_is_followed_by_its_id() -> None:
    host = Scripted(PLACES)
    assert host.follow(Run("urn"), "j-0", nobody)["result"] == "serving"
    assert host.asked == [{"verb": "follow", "places": PLACES, "job": "j-0", "offset": 0}]


@pytest.mark.parametrize("mode", ["cut", "silent"])
def test_a_job_that_is_lost_sight_of_is_not_told_as_failed(mode: str) -> None:
    with pytest.raises(UnreachableError, match="it goes on by itself"):
        Scripted(PLACES, mode).run_job(Run("urn"), "job", {}, nobody)


@pytest.mark.parametrize("deaf", [0, 1])
def test_a_job_asked_to_give_up_is_followed_to_the_end_of_its_revert(
    deaf: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hostclient, "AGAIN_S", 0.05)
    host = Scripted(PLACES, "endless", deaf=[1] * deaf)
    run = Run("urn")
    threading.Timer(0.3, run.cancel.set).start()
    assert host.run_job(run, "job", {}, nobody)["result"] == "reverted"
    asked = [said for said in host.asked if said["verb"] == "revert"]
    assert asked == [{"verb": "revert", "places": PLACES, "job": "j-1"}] * (1 + deaf)


def test_nothing_is_started_for_an_operation_that_was_stopped_or_is_out_of_time() -> None:
    stopped, late, host = Run("urn"), Run("urn", timeout_s=0.001), Scripted(PLACES)
    stopped.cancel.set()
    time.sleep(0.01)
    for run, why in ((stopped, "cancelled"), (late, "custom timeout")):
        with pytest.raises(FailedError, match=f"{why}.*nothing was touched"):
            host.run_job(run, "job", {}, nobody)
    assert host.asked == []


def test_a_refusal_of_this_machine_is_told_with_its_kind() -> None:
    host = local.connect(PLACES)
    with pytest.raises(HostError, match="lacks what, token") as caught:
        host.ask("deactivate")
    assert caught.value.kind == "Unusable"
    with pytest.raises(HostError, match="no verb 'stat'; allowed: activate, claim"):
        host.ask("stat")


def test_every_way_a_host_fails_is_one_the_engine_is_told_plainly() -> None:
    assert issubclass(HostError, FailedError)
    assert issubclass(UnreachableError, FailedError)
