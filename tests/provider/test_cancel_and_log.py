"""Operations while they run: asked to stop, out of time, many at once, and what they say meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from pulumi.runtime.proto import plugin_pb2

from sluicegate.provider.resource import Run
from sluicegate.provider.values import decode
from tests.provider.calls import EMPTY, create, failure, update
from tests.provider.conftest import Plugin, init_failed
from tests.provider.fake_host import FakeHost, until_told
from tests.provider.resource_cases import INPUTS, KEY, urn


def in_background(call: Callable[[], Any]) -> tuple[threading.Thread, list[grpc.RpcError]]:
    errors: list[grpc.RpcError] = []
    thread = threading.Thread(target=lambda: errors.append(failure(call)))
    thread.start()
    return thread, errors


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


def test_cancel_reaches_a_job_that_never_ends_and_the_answer_says_what_serves(plugin: Plugin, host: FakeHost) -> None:
    host.jobs["activate"] = until_told
    thread, errors = in_background(lambda: update(plugin))
    wait_for(lambda: "activate" in host.verbs())
    plugin.stub.Cancel(EMPTY)
    thread.join(10)
    assert errors[0].code() == grpc.StatusCode.FAILED_PRECONDITION
    assert "asked to give up: cancelled" in (errors[0].details() or "")
    assert not plugin.servicer.busy()


@pytest.mark.parametrize("call", [create, update])
def test_a_custom_timeout_ends_a_job_that_never_does(call: Any, plugin: Plugin, host: FakeHost) -> None:
    host.jobs["activate"] = until_told
    error = failure(lambda: call(plugin, timeout=0.2))
    assert "the custom timeout of 0.2 s has passed" in (error.details() or "")
    if call is create:  # what a create leaves is in the state
        assert init_failed(error).id.startswith("engine-")


def test_a_cancel_that_comes_first_lets_nothing_begin_until_the_next_run_of_the_engine(
    plugin: Plugin, host: FakeHost
) -> None:
    plugin.stub.Cancel(EMPTY)
    assert "nothing was touched" in (failure(lambda: update(plugin)).details() or "")
    assert "activate" not in host.verbs()
    plugin.stub.Attach(plugin_pb2.PluginAttach(address=plugin.address))
    assert decode(update(plugin).properties)["serving"] == INPUTS["Engine"]["pins"]["lock"]


def test_many_operations_and_cancels_at_once_lose_none(plugin: Plugin, host: FakeHost) -> None:
    host.jobs["activate"] = until_told
    running = [in_background(lambda: update(plugin)) for _ in range(6)]
    wait_for(lambda: host.verbs().count("activate") == 6)
    for _ in range(3):
        plugin.stub.Cancel(EMPTY)
    for thread, errors in running:
        thread.join(10)
        assert errors[0].code() == grpc.StatusCode.FAILED_PRECONDITION
    assert not plugin.servicer.busy()


# --- the engine's log ---


def test_progress_reaches_the_engine_with_the_urn_and_without_the_secret(plugin: Plugin, host: FakeHost) -> None:
    plugin.stub.Attach(plugin_pb2.PluginAttach(address=plugin.address))
    host.jobs["front"] = lambda run: run.say(f"opened with {KEY} \ud800") or SERVED
    assert update(plugin, "Front").properties
    assert plugin.engine.lines == [
        ("opened with [secret] ?", False, urn("Front")),
        ("http://127.0.0.1:8080 answered: 4 tokens", False, urn("Front")),
    ]


SERVED = {
    "result": "serving", "url": "http://127.0.0.1:8080", "gate": [{"check": "public", "ok": True, "seen": "4 tokens"}],
    "phases": {}, "cause": None, "log_tail": [],
}  # fmt: skip


def test_the_status_column_is_not_flooded_and_a_line_that_stays_is_never_dropped(
    plugin: Plugin, host: FakeHost
) -> None:
    plugin.stub.Attach(plugin_pb2.PluginAttach(address=plugin.address))

    def chatty(run: Run) -> Any:
        for i in range(50):
            run.show(f"tick {i}")
            run.say(f"line {i}")
        return SERVED

    host.jobs["front"] = chatty
    update(plugin, "Front")
    texts = [text for text, ephemeral, _ in plugin.engine.lines if not ephemeral]
    assert texts[:50] == [f"line {i}" for i in range(50)]
    assert sum(ephemeral for _, ephemeral, _ in plugin.engine.lines) < 10


@pytest.mark.usefixtures("host")
def test_an_engine_that_no_longer_listens_does_not_stop_the_work(plugin: Plugin) -> None:
    plugin.stub.Attach(plugin_pb2.PluginAttach(address=plugin.address))
    plugin.stop_engine()
    assert decode(update(plugin).properties)["token"] == "tok"
