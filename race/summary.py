"""A target's rows as a summary, and what may be said of one target beside another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .cost import per_million
from .stats import Estimate, above, estimate

Row = dict[str, Any]


def spread(values: Sequence[float], tail: float) -> dict[str, Any] | None:
    """Median and one tail percentile (0.1 or 0.9), each with the bounds of its 95 % interval.

    A bound that the sample cannot give is null: p90 of 24 values has no upper one. None of an empty sample.
    """
    middle, edge = estimate(values, 0.5), estimate(values, tail)
    if middle is None or edge is None:
        return None
    named: dict[str, Any] = {"n": middle.n}
    for name, found in (("median", middle), (f"p{tail * 100:.0f}", edge)):
        bounds = {"": found.value, "_low": found.low, "_high": found.high}
        named |= {name + end: None if bound is None else round(bound, 3) for end, bound in bounds.items()}
    return named


def values(rows: Sequence[Row], key: str) -> list[float]:
    """What the rows without an error know of `key`."""
    return [row[key] for row in rows if row["error"] is None and row[key] is not None]


def summarise(rows: Sequence[Row], hourly: float | None) -> dict[str, Any]:
    """The summary of a target's counted rows; speeds in tok/s, times in ms, cost in USD; unknown is null.

    `request_speed` is completion tokens over the whole request, TTFT included: the definition of most published speeds,
    and the one that `cost_per_million` (of a machine used one request at a time) rests on.
    """
    good = [row for row in rows if row["error"] is None]
    whole = [
        row["completion_tokens"] / row["last_token_ms"] * 1000
        for row in good
        if row["completion_tokens"] and row["last_token_ms"]
    ]
    request_speed = spread(whole, 0.1)
    cached, prompted = values(rows, "cached_tokens"), values(rows, "prompt_tokens")
    return {
        "requests": len(good),
        "failed": len(rows) - len(good),
        "output_speed": spread(values(rows, "output_speed"), 0.1),
        "unbiased_speed": spread(values(rows, "unbiased_speed"), 0.1),
        "ttft_ms": spread(values(rows, "ttft_ms"), 0.9),
        "first_round_ttft_ms": spread(values([row for row in good if row.get("round") == 1], "ttft_ms"), 0.9),
        "request_speed": request_speed,
        "completion_tokens": spread(values(rows, "completion_tokens"), 0.1),
        "prompt_tokens": int(sum(prompted)) if prompted else None,
        "cached_tokens": int(sum(cached)) if cached else None,
        "thought": sum(row["first_reasoning_ms"] is not None or bool(row["reasoning_tokens"]) for row in good),
        "client_lag_ms": max(values(rows, "client_lag_ms"), default=None),
        "cost_per_million": per_million(hourly, request_speed["median"] if request_speed else None),
    }


def median_of(target: dict[str, Any], what: str) -> Estimate | None:
    """The median of `what` (output_speed, ttft_ms) of a result's target, or None when it has none."""
    found = target["summary"][what]
    return found and Estimate(found["median"], found["median_low"], found["median_high"], found["n"])


def verdicts(targets: Sequence[dict[str, Any]]) -> list[str]:
    """A sentence or two per target that was asked directly: its rank by median output speed, and what that is worth.

    Ranked are the targets not known to run on something other than a GPU. "Faster" and "slower" are said only when the
    two medians' 95 % intervals do not overlap.
    """
    lines = []
    others_chips = [t for t in targets if t["summary"]["output_speed"] and not gpu_or_unknown(t)]
    field = [t for t in targets if t["summary"]["output_speed"] and gpu_or_unknown(t)]
    field.sort(key=lambda t: -t["summary"]["output_speed"]["median"])
    for target in targets:
        if not target["own"] or target not in field or len(field) + len(others_chips) < 2:
            continue
        place = field.index(target) + 1
        lines.append(f"{target['name']}: rank {place} of {len(field)} by median output speed{_left_out(others_chips)}.")
        said: dict[bool | None, list[str]] = {True: [], False: [], None: []}
        for other in [*field, *others_chips]:
            if other is not target:
                said[above(median_of(target, "output_speed"), median_of(other, "output_speed"))].append(other["name"])
        words = ((True, "faster than"), (False, "slower than"), (None, "not told apart from"))
        told = [f"{word} {', '.join(said[key])}" for key, word in words if said[key]]
        lines.append(f"  By 95 % intervals it is {'; '.join(told)}.")
    return lines


def gpu_or_unknown(target: dict[str, Any]) -> bool:
    """False only for a target told to run on a chip that is no GPU (a wafer, an LPU, an RDU, a TPU, a CPU)."""
    told = (target["hardware"] or "").lower().replace("-", " ").split()
    return not {"wafer", "lpu", "rdu", "tpu", "cpu"} & set(told)


def _left_out(others: Sequence[dict[str, Any]]) -> str:
    named = ", ".join(f"{t['name']} ({t['hardware']})" for t in others)
    return " among those not known to run on something other than a GPU" + (f" (apart: {named})" if named else "")
