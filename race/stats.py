"""Percentiles with intervals that assume no distribution, and when two medians may be called different."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """A percentile of a sample and its 95 % interval; a bound is None where the sample is too small to give one."""

    value: float
    low: float | None
    high: float | None
    n: int


def percentile(values: Sequence[float], q: float) -> float:
    """The q-quantile by linear interpolation, numpy's default (Hyndman and Fan's type 7). Needs a value."""
    ordered = sorted(values)
    at = q * (len(ordered) - 1)
    below = math.floor(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (at - below)


@cache
def ranks(n: int, q: float) -> tuple[int, int]:
    """Ranks (from 1) of the shortest order-statistic interval that covers the q-quantile in 95 % of samples of n.

    P(X_(l) <= quantile < X_(u)) = P(l <= B < u) with B binomial(n, q). Rank 0 and rank n + 1 stand for no bound on that
    side. Of equally short ones the lowest. Source: David and Nagaraja, Order Statistics, 7.1.
    """
    best, total, high, mass = (n + 2, 0), 0.0, 0, [_mass(n, k, q) for k in range(n + 1)]
    for low in range(n + 1):
        while total < CONFIDENCE and high <= n:
            total += mass[high]
            high += 1
        if total < CONFIDENCE:
            break
        best = min(best, (high - low, low))
        total -= mass[low]
    width, low = best
    return low, min(low + width, n + 1)


def _mass(n: int, k: int, q: float) -> float:
    choose = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(choose + k * math.log(q) + (n - k) * math.log1p(-q))


def estimate(values: Sequence[float], q: float) -> Estimate | None:
    """The q-quantile of `values` with its interval; None of an empty sample."""
    if not values:
        return None
    ordered, n = sorted(values), len(values)
    low, high = ranks(n, q)
    return Estimate(
        percentile(ordered, q), ordered[low - 1] if low >= 1 else None, ordered[high - 1] if high <= n else None, n
    )


def above(a: Estimate | None, b: Estimate | None) -> bool | None:
    """True = a is higher than b, False = lower, None = the intervals do not say."""
    if a is None or b is None:
        return None
    if a.low is not None and b.high is not None and a.low > b.high:
        return True
    if a.high is not None and b.low is not None and a.high < b.low:
        return False
    return None
