"""Many requests on one thread. Servers on loopback; no time judged."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from types import SimpleNamespace

import pytest

from sluicegate.race import loop
from sluicegate.race.exchange import Exchange
from sluicegate.race.loop import drive
from sluicegate.race.measure import measure
from sluicegate.race.targets import Target
from tests.race.asking import SETTINGS
from tests.race.servers import Asked, events, serving, stream

GOOD = events()
Wire = Iterable[bytes | float | None]


def test_many_requests_run_at_once_on_one_thread() -> None:
    together, all_here = [0], threading.Barrier(32)

    def wait_for_all(_: Asked) -> Wire:
        all_here.wait(20)
        together[0] += 1
        return stream(*GOOD)

    with serving(wait_for_all) as server:
        target = Target("it", server.url, "m")
        origin, seen = target.resolve(), list[Exchange]()
        calls = [target.call(origin, "hello", SETTINGS) for _ in range(32)]
        drive(lambda _: calls.pop() if calls else None, seen.append)
    assert together == [32]
    assert {measure(exchange).error for exchange in seen} == {None}


@pytest.mark.skipif(not loop.KERNEL_STAMPS, reason="without the kernel's stamps every read is made at once")
@pytest.mark.parametrize(("in_flight", "gathered"), [(loop.CROWD - 1, False), (loop.CROWD + 8, True)])
def test_only_a_crowd_s_reads_are_gathered_and_never_for_longer_than_said(
    in_flight: int, gathered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rests: list[float] = []
    monkeypatch.setattr(loop, "GATHER_S", 0.01)
    monkeypatch.setattr(loop, "time", SimpleNamespace(perf_counter=time.perf_counter, sleep=rests.append))
    all_here = threading.Barrier(in_flight)

    def wait_for_all(_: Asked) -> Wire:
        all_here.wait(20)
        return stream(*GOOD)

    with serving(wait_for_all) as server:
        target = Target("it", server.url, "m")
        origin, seen = target.resolve(), list[Exchange]()
        calls = [target.call(origin, "hello", SETTINGS) for _ in range(in_flight)]
        loop.drive(lambda _: calls.pop() if calls else None, seen.append)
    assert {measure(exchange).error for exchange in seen} == {None}
    assert bool(rests) is gathered
    assert max(rests, default=0.0) <= loop.GATHER_S * in_flight
