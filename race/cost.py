"""What tokens cost on a machine paid by the hour, and from which traffic on that beats a price per token. USD."""

from __future__ import annotations

from dataclasses import dataclass

SECONDS_PER_DAY = 86_400


def per_million(hourly: float | None, tok_s: float | None) -> float | None:
    """USD per million output tokens at `tok_s` all hour long; None where either is unknown."""
    return None if not hourly or not tok_s else hourly / (tok_s * 3600 / 1e6)


@dataclass(frozen=True, slots=True)
class BreakEven:
    """Traffic at which `hourly` equals `price` per million output tokens, and which part of the capacity that is.

    `share` is (at the most, at the least) that the capacity's interval allows; above 1 the machine never gets there.
    """

    tokens_per_day: float
    tok_s: float
    share: tuple[float, float] | None


def break_even(hourly: float, price: float, capacity: tuple[float, float] | None) -> BreakEven:
    """Break-even of a machine at `hourly` against `price` per million; `capacity` = (low, high) measured tok/s."""
    per_day = hourly * 24 / price * 1e6
    tok_s = per_day / SECONDS_PER_DAY
    return BreakEven(per_day, tok_s, None if capacity is None else (tok_s / capacity[1], tok_s / capacity[0]))
