"""Percentiles and their intervals, against the binomial distribution itself and numpy's figures."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.race.stats import Estimate, above, estimate, percentile, ranks


@pytest.mark.parametrize(
    ("n", "q", "expected"),
    [
        (24, 0.5, (7, 17)),
        (24, 0.9, (19, 25)),  # 25 = above the largest: no upper bound
        (24, 0.1, (0, 6)),
        (48, 0.9, (38, 47)),
        (96, 0.9, (80, 92)),
        (5, 0.5, (0, 5)),
        (6, 0.5, (1, 6)),
        (1, 0.5, (0, 2)),
    ],
)
def test_the_ranks_are_the_binomial_ones(n: int, q: float, expected: tuple[int, int]) -> None:
    assert ranks(n, q) == expected


@pytest.mark.parametrize("q", [Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)])
@pytest.mark.parametrize("n", [2, 7, 24, 48, 96, 150])
def test_the_interval_covers_95_percent_and_no_shorter_one_does(n: int, q: Fraction) -> None:
    def cover(low: int, high: int) -> Fraction:
        return sum(
            (math.comb(n, k) * q**k * (1 - q) ** (n - k) for k in range(max(low, 0), min(high, n + 1))), Fraction(0)
        )

    low, high = ranks(n, float(q))
    if (low, high) != (0, n + 1):
        assert cover(low, high) >= Fraction(95, 100)
    width = high - low - 1
    assert all(cover(i, i + width) < Fraction(95, 100) for i in range(n + 2 - width))


def test_a_large_sample_has_bounds() -> None:
    assert ranks(5000, 0.5) == pytest.approx((2431, 2569), abs=2)


@pytest.mark.parametrize(("q", "value"), [(0.0, 1), (0.1, 1.3), (0.5, 2.5), (0.9, 3.7), (1.0, 4)])
def test_percentiles_interpolate_as_numpy_does(q: float, value: float) -> None:
    assert percentile([4, 1, 3, 2], q) == pytest.approx(value)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=60), st.sampled_from([0.1, 0.5, 0.9]))
def test_an_estimate_lies_within_its_bounds_and_its_sample(values: list[float], q: float) -> None:
    found = estimate(values, q)
    assert found is not None
    assert min(values) <= found.value <= max(values)
    assert found.low is None or found.low <= found.value + 1e-9
    assert found.high is None or found.high >= found.value - 1e-9


def test_nothing_has_no_estimate() -> None:
    assert estimate([], 0.5) is None


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        (Estimate(2, 1.9, 2.1, 24), Estimate(1, 0.9, 1.1, 24), True),
        (Estimate(1, 0.9, 1.1, 24), Estimate(2, 1.9, 2.1, 24), False),
        (Estimate(2, 1.0, 3.0, 24), Estimate(1, 0.5, 1.0, 24), None),
        (Estimate(9, None, None, 3), Estimate(1, 0.9, 1.1, 24), None),
        (Estimate(9, 8.0, None, 5), Estimate(1, 0.9, 1.1, 24), True),
        (None, Estimate(1, 0.9, 1.1, 24), None),
    ],
)
def test_faster_is_said_only_when_the_intervals_say_so(a: Estimate | None, b: Estimate, verdict: bool | None) -> None:
    assert above(a, b) is verdict
