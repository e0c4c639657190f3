"""The load curve: its arithmetic on hand-made requests and the seeds' figures, its loops on loopback servers."""

from __future__ import annotations

import itertools
import statistics
import threading
from collections.abc import Iterable
from typing import Any

import pytest

from sluicegate.race.cost import break_even, per_million
from sluicegate.race.load import Load, Step
from sluicegate.race.load_table import load_table
from sluicegate.race.measure import Measurement
from sluicegate.race.point import break_even_at, capacity, knee, summarise_point
from sluicegate.race.targets import Target
from tests.race.asking import SETTINGS
from tests.race.servers import Asked, events, serving, stream


def row(start_s: float, ttft_ms: float, last_ms: float, tokens: int | None, **more: Any) -> dict[str, Any]:
    speed = None if tokens is None else (tokens - 1) / (last_ms - ttft_ms) * 1000
    known = Measurement(
        ttft_ms=ttft_ms, last_token_ms=last_ms, end_ms=last_ms, completion_tokens=tokens, output_speed=speed
    )
    return {"prompt": "p", "started_s": start_s} | known.as_json() | more


def waves(slots: int, count: int, ttft_ms: float, last_ms: float, tokens: int) -> list[dict[str, Any]]:
    return [row(wave * last_ms / 1000, ttft_ms, last_ms, tokens) for wave in range(count) for _ in range(slots)]


def test_cost_and_break_even_are_the_seeds_figures() -> None:
    assert per_million(4.5, 213) == pytest.approx(5.869, abs=5e-4)
    assert per_million(4.5, 1817) == pytest.approx(0.688, abs=5e-4)
    assert per_million(None, 213) is None
    assert per_million(4.5, None) is None
    found = break_even(4.5, 2.5, (1700.0, 1817.0))
    assert found.tokens_per_day == pytest.approx(43.2e6)
    assert found.tok_s == pytest.approx(500)
    assert found.share == pytest.approx((500 / 1817, 500 / 1700))
    assert break_even(4.5, 0.5, (1817.0, 1817.0)).share == pytest.approx((1.376, 1.376), abs=1e-3)


def test_n_times_the_median_is_not_the_total_and_the_gap_has_names() -> None:
    # 16 in flight, 512 tokens at 130 tok/s after 300 ms: 512 / (0.3 + 511/130) = 121 tok/s a slot.
    last_ms = 300 + 511 / 130 * 1000
    point = summarise_point(16, None, waves(16, 4, 300, last_ms, 512), {"hourly": 4.5})
    assert point["product"] == pytest.approx(2080)
    assert point["total_speed"] == pytest.approx(1936, abs=1)
    assert point["gap"]["waiting"] == pytest.approx(300 / last_ms, abs=1e-3)
    assert point["gap"]["idle"] == 0
    assert point["cost_per_million"] == pytest.approx(4.5 / (1936 * 0.0036), rel=1e-3)
    assert point["steady_speed"]["median"] == pytest.approx(point["total_speed"], rel=1e-4)
    ragged = summarise_point(
        16, None, [*waves(16, 4, 300, last_ms, 512), row(4 * last_ms / 1000, 300, last_ms, 512)], {}
    )
    assert ragged["gap"]["idle"] == pytest.approx(15 / 16 / 5, abs=1e-3)


def test_goodput_counts_only_what_kept_every_limit_from_the_planned_time_on() -> None:
    rows = [
        row(0, 100, 1000, 90),
        row(0, 900, 1800, 90),
        row(0, 100, 9000, 90),
        row(0, 100, 1000, 90, error="x"),
        row(0, 100, 1000, None),
    ]
    limits = {"limit_ttft_ms": 500, "limit_speed": 50}
    assert summarise_point(2, None, rows, limits)["goodput"]["share"] == pytest.approx(1 / 5)
    late = [row(0, 100, 1000, 90, queue_ms=450.0), row(0, 100, 1000, 90, queue_ms=0.0)]
    point = summarise_point(None, 1.0, late, limits)
    assert point["goodput"]["share"] == 0.5
    assert point["ttft_from_plan_ms"]["median"] == pytest.approx(325)
    assert point["product"] is None


def test_a_total_is_unknown_when_a_request_tells_no_count() -> None:
    point = summarise_point(1, None, [row(0, 100, 1000, 90), row(1, 100, 1000, None)], {"hourly": 4.5})
    assert point["total_speed"] is None
    assert point["cost_per_million"] is None
    assert point["steady_speed"] is None


def test_a_point_without_a_success_is_all_unknown() -> None:
    point = summarise_point(4, None, [row(0, 1, 2, 3, error="x")], {"hourly": 4.5})
    assert (point["failed"], point["total_speed"], point["goodput"], point["gap"], point["wall_s"]) == (
        1,
        None,
        None,
        None,
        None,
    )


def at(concurrency: int, total: float, **more: Any) -> dict[str, Any]:
    return summarise_point(concurrency, None, [], {}) | {"total_speed": total, "failed": 0} | more


def test_the_knee_is_where_power_is_highest_and_only_when_the_curve_goes_past_it() -> None:
    curve = [at(1, 196), at(2, 380), at(4, 740), at(8, 1300), at(16, 1500), at(32, 1510)]
    assert knee(curve) == 8
    assert knee(curve[:4]) is None
    assert knee(curve[:2]) is None


def test_capacity_is_the_fastest_point_that_kept_the_limits_and_break_even_rests_on_its_interval() -> None:
    slow = {"median": 900.0, "p90": 2000.0}
    steady = {"median": 1000.0, "median_low": 900.0, "median_high": 1100.0, "n": 10}
    points = [
        at(8, 1000, ttft_ms={"median": 1, "p90": 300.0}, steady_speed=steady),
        at(16, 1800, ttft_ms=slow),
        at(4, 9999, failed=1),
    ]
    best = capacity(points, {"limit_ttft_ms": 500, "limit_speed": None})
    assert best is not None
    assert best["concurrency"] == 8
    found = break_even_at(best, 4.5, 2.5)
    assert found is not None
    assert found.share == pytest.approx((500 / 1100, 500 / 900))
    assert break_even_at(best, None, 2.5) is None
    no_limit = capacity(points, {})
    assert no_limit is not None
    assert no_limit["concurrency"] == 16


def test_a_closed_loop_keeps_n_in_flight_and_never_more() -> None:
    lock, now, most = threading.Lock(), [0], [0]

    def counted(_: Asked) -> Iterable[bytes | float | None]:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        yield 0.02
        with lock:
            now[0] -= 1
        yield from stream(*events(), pause=0.0)

    with serving(counted) as server:
        target = Target("it", server.url, "m")
        load = Load(target, target.resolve(), SETTINGS | {"prompts": {"a": "x", "b": "y"}, "salt": "s", "seed": 1})
        point = load.step(Step(40, concurrency=4), lambda _: None)
        texts = [asked.body["messages"][0]["content"] for asked in server.asked]
    assert most[0] == 4
    assert (point["requests"], point["failed"], point["concurrency"]) == (40, 0, 4)
    assert len(set(texts)) == 40
    assert point["mean_in_flight"] == pytest.approx(4, rel=0.5)


def test_arrivals_of_an_open_loop_are_poisson_and_the_same_for_the_same_seed() -> None:
    def gaps(seed: int) -> list[float]:
        load = Load(Target("it", "http://h", "m"), None, {"prompts": {"a": "x"}, "salt": None, "seed": seed})  # type: ignore[arg-type]
        planned = [at or 0.0 for at in load._arrivals(Step(4000, rate=5.0), 0.0)]
        return [b - a for a, b in itertools.pairwise(planned)]

    assert gaps(1) == gaps(1) != gaps(2)
    assert statistics.mean(gaps(1)) == pytest.approx(0.2, rel=0.06)
    assert statistics.stdev(gaps(1)) == pytest.approx(0.2, rel=0.1)  # an exponential's deviation is its mean


def test_an_open_loop_does_not_wait_for_answers() -> None:
    with serving(lambda _: stream(0.3, *events(), pause=0.0)) as server:
        target = Target("it", server.url, "m")
        load = Load(target, target.resolve(), SETTINGS | {"prompts": {"a": "x"}, "salt": None, "seed": 1})
        point = load.step(Step(30, rate=300.0), lambda _: None)
    assert point["failed"] == 0
    assert point["mean_in_flight"] > 8
    assert all(each["queue_ms"] >= 0 for each in point["rows"])
    assert point["ttft_from_plan_ms"]["median"] >= point["ttft_ms"]["median"]


def test_arrivals_over_the_client_s_own_limit_are_failures_that_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluicegate.race.load.MAX_IN_FLIGHT", 2)
    with serving(lambda _: stream(0.3, *events(), pause=0.0)) as server:
        target = Target("it", server.url, "m")
        load = Load(target, target.resolve(), SETTINGS | {"prompts": {"a": "x"}, "salt": None, "seed": 1})
        point = load.step(Step(20, rate=1000.0), lambda _: None)
    assert point["requests"] == 20
    assert point["failed"] >= 1
    assert "this client's limit" in point["errors"][0]


def test_a_table_says_what_was_not_reached_and_what_is_not_known() -> None:
    points = [at(n, 100.0 * n) | {"whole": True} for n in (1, 2, 4)]
    document = {
        "points": points,
        "target": {"name": "a", "error": None},
        "settings": {"hourly": None, "against": None, "limit_ttft_ms": 5, "limit_speed": None},
        "knee": knee(points),
        "capacity": None,
        "break_even": None,
    }
    shown = load_table(document, 200)
    assert "Knee: not reached" in shown
    assert "No step kept the limits" in shown
    assert "Cost: unknown" in shown
