"""What `status` and `logs` say is read from processes and sockets, never from what was once written."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluicegate.provider.host.service import Service
from tests.provider.host.kit import Stack
from tests.provider.host.test_activate import Stream


def engine(stack: Stack, digest: str) -> Service:
    return Service(stack.places.release(digest) / "engine")


def test_a_stack_without_a_release_serves_nothing(stack: Stack) -> None:
    there = stack.status()
    assert (there["result"], there["serving"], there["health"], there["front"]) == ("down", None, "none", None)
    assert (there["jobs"], there["last_job"]) == ([], None)
    assert stack.ask("logs") == []


def test_an_engine_that_answers_is_healthy(stack: Stack) -> None:
    spec = stack.serve()
    there = stack.status()
    assert (there["result"], there["serving"], there["health"]) == ("serving", spec["digest"], "healthy")
    assert (there["why"], there["restarts"], there["current"]) == (None, 0, spec["digest"])
    assert there["last_job"]["result"] == "serving"


def test_an_engine_with_running_requests_is_busy_and_not_asked_for_more(stack: Stack, tmp_path: Path) -> None:
    spec = stack.serve()
    stream = Stream(stack, tmp_path / "go")
    there = stack.status()
    assert (there["result"], there["serving"], there["health"]) == ("serving", spec["digest"], "busy")
    assert there["why"] == "1 requests running, 0 waiting; tokens move"
    stream.end()


def test_an_engine_whose_requests_stand_still_is_judged_by_a_completion(stack: Stack, tmp_path: Path) -> None:
    hang = tmp_path / "hang"
    stack.serve("--hang-when", str(hang))
    stream = Stream(stack, tmp_path / "go", "stuck until")
    assert stack.ask("status", budget_s=0.5)["health"] == "healthy"
    hang.touch()
    there = stack.ask("status", budget_s=0.5)
    assert (there["result"], there["health"]) == ("down", "dead")
    assert there["why"].startswith("1 requests running, 0 waiting, no token moved in 0.5 s; completion: no answer")
    hang.unlink()
    stream.end()


def test_an_engine_whose_counters_cannot_be_read_is_judged_by_a_completion(stack: Stack) -> None:
    stack.serve("--no-metrics", facts={"drain_s": 0.1})
    assert stack.status()["health"] == "healthy"


@pytest.mark.parametrize("counters", [None, {"path": "/metrics", "running": None, "waiting": None, "moving": []}])
def test_an_engine_without_counters_is_judged_by_a_completion(counters: object, stack: Stack) -> None:
    first = stack.serve("--no-metrics", facts={"drain_s": 0.1, "metrics": counters})
    assert stack.status()["health"] == "healthy"
    second = stack.serve("--no-metrics", "--tokens", "9", facts={"drain_s": 0.1, "metrics": counters})
    assert stack.status()["serving"] == second["digest"] != first["digest"]


def test_an_engine_whose_process_has_ended_is_dead(stack: Stack) -> None:
    spec = stack.serve()
    engine(stack, spec["digest"]).stop()
    there = stack.status()
    assert (there["result"], there["serving"], there["health"]) == ("down", None, "dead")
    assert "not running" in there["why"]
    assert there["current"] == spec["digest"]


def test_an_engine_that_the_front_cannot_reach_is_dead(stack: Stack) -> None:
    stack.serve()
    stack.places.current_sock.unlink()
    assert stack.status()["why"] == "the front's link to the engine is gone"


def test_an_engine_that_answers_health_but_no_completion_is_dead(stack: Stack, tmp_path: Path) -> None:
    spec = stack.serve()
    other = tmp_path / "hung"
    service = Service(other)
    socket = tmp_path / "s"
    service.start([*spec["command"], "--socket", str(socket), "--hang"], {}, 1, [socket])
    stack.places.current_sock.unlink()
    stack.places.current_sock.symlink_to(socket)
    try:
        while not socket.exists():
            assert service.child()
        there = stack.ask("status", budget_s=0.5)
        assert there["health"] == "dead"
        assert "no answer in 0.5 s" in there["why"]
    finally:
        service.stop(0)


@pytest.mark.parametrize("text", ["", "{", "{}"])
def test_a_release_whose_marker_cannot_be_read_is_none(stack: Stack, text: str) -> None:
    spec = stack.serve()
    (stack.places.release(spec["digest"]) / "complete").write_text(text)
    assert stack.status()["health"] == "none"
    # The next activation finds it whole again, and has nothing to start.
    pid = stack.pid(spec)
    assert stack.activate(spec)["result"] == "serving"
    assert stack.pid(spec) == pid
    assert stack.status()["health"] == "healthy"


def test_logs_are_the_last_lines_of_the_engine_or_of_the_front(stack: Stack) -> None:
    stack.serve("--say", "one", "--say", "two")
    assert stack.ask("logs", lines=1) == ["two"]
    assert stack.ask("logs") == ["one", "two"]
    assert stack.ask("logs", what="front") == []
