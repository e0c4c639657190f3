"""What the requests of one load step say together, and what the whole curve says. Speeds in tok/s, costs in USD."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .cost import BreakEven, break_even, per_million
from .summary import spread, values

Row = dict[str, Any]
Point = dict[str, Any]


def summarise_point(
    concurrency: int | None, rate: float | None, rows: Sequence[Row], settings: dict[str, Any], whole: bool = True
) -> Point:
    """The point of one step; unknown is null. `settings` may have limit_ttft_ms, limit_speed, hourly.

    `total_speed` is all completion tokens over the time from the first send to the last end. `per_request_speed` is the
    seeds' output speed. `product` is concurrency x its median, the figure one is tempted to expect as the total, and
    `gap` says what lies between: the share of all slot time spent waiting for a first token, and the share with no
    request at all (the ragged end). `steady_speed` is the total while every slot is busy, with the interval that a
    break-even rests on: N times the median of a request's tokens over its whole time.
    """
    good = [row for row in rows if row["error"] is None]
    known = [row for row in good if row["completion_tokens"] is not None and row["last_token_ms"] is not None]
    begin = min((row["started_s"] for row in good), default=0.0)
    wall = max((row["started_s"] + row["end_ms"] / 1000 for row in good), default=0.0) - begin
    total = sum(row["completion_tokens"] for row in known) / wall if wall > 0 and len(known) == len(good) > 0 else None
    speeds = spread(values(rows, "output_speed"), 0.1)
    kept = [row for row in good if _within(row, settings)]
    return {
        "mode": "open" if rate is not None else "closed",
        "concurrency": concurrency,
        "rate": rate,
        "whole": whole,
        "requests": len(rows),
        "failed": len(rows) - len(good),
        "errors": sorted({row["error"] for row in rows if row["error"]})[:5],
        "wall_s": round(wall, 3) if good else None,
        "mean_in_flight": round(sum(row["end_ms"] for row in good) / 1000 / wall, 3) if wall > 0 else None,
        "total_speed": None if total is None else round(total, 3),
        "steady_speed": _steady(known, concurrency) if total is not None else None,
        "per_request_speed": speeds,
        "product": None if speeds is None or concurrency is None else round(concurrency * speeds["median"], 3),
        "gap": _gap(good, concurrency, wall),
        "ttft_ms": spread(values(rows, "ttft_ms"), 0.9),
        "ttft_from_plan_ms": _from_plan(good),
        "goodput": _goodput(len(kept), len(rows), wall),
        "cost_per_million": per_million(settings.get("hourly"), total),
        "client_lag_ms": max(values(rows, "client_lag_ms"), default=None),
        "cached_tokens": sum(int(v) for v in values(rows, "cached_tokens")) if values(rows, "cached_tokens") else None,
        "rows": list(rows),
    }


def _goodput(kept: int, asked: int, wall: float) -> dict[str, float] | None:
    return {"per_s": round(kept / wall, 4), "share": round(kept / asked, 4)} if wall > 0 else None


def _within(row: Row, settings: dict[str, Any]) -> bool:
    """Whether a request kept the limits; one whose figure is unknown did not."""
    ttft, speed = settings.get("limit_ttft_ms"), settings.get("limit_speed")
    from_plan = (row["ttft_ms"] or 0.0) + (row["queue_ms"] or 0.0)
    if ttft is not None and (row["ttft_ms"] is None or from_plan > ttft):
        return False
    return speed is None or (row["output_speed"] is not None and row["output_speed"] >= speed)


def _from_plan(good: Sequence[Row]) -> dict[str, Any] | None:
    """TTFT counted from the planned arrival, so that a client that sends late does not hide it."""
    planned = [r["ttft_ms"] + r["queue_ms"] for r in good if r["queue_ms"] is not None and r["ttft_ms"] is not None]
    return spread(planned, 0.9)


def _gap(good: Sequence[Row], concurrency: int | None, wall: float) -> dict[str, float] | None:
    if concurrency is None or wall <= 0:
        return None
    slots = concurrency * wall
    waiting = sum(row["ttft_ms"] or row["end_ms"] for row in good) / 1000
    busy = sum(row["end_ms"] for row in good) / 1000
    return {"waiting": round(waiting / slots, 4), "idle": round(max(1 - busy / slots, 0.0), 4)}


def _steady(known: Sequence[Row], concurrency: int | None) -> dict[str, Any] | None:
    """Total speed while every slot is busy: N times a request's tokens over its whole time, as a median with bounds."""
    if concurrency is None or not known:
        return None
    return spread([concurrency * row["completion_tokens"] / row["end_ms"] * 1000 for row in known], 0.1)


def knee(points: Sequence[Point]) -> int | None:
    """The concurrency of the highest power, total speed over response time (Kleinrock 1979), in a closed loop.

    By Little's law that is where total_speed squared over concurrency is highest. None with fewer than three points, or
    when the highest is the last: the curve was not followed far enough.
    """
    known = [p for p in points if p["concurrency"] and p["total_speed"] and p["whole"]]
    known.sort(key=lambda p: int(p["concurrency"]))
    if len(known) < 3:
        return None
    best = max(known, key=lambda p: float(p["total_speed"] ** 2 / p["concurrency"]))
    return None if best is known[-1] else int(best["concurrency"])


def capacity(points: Sequence[Point], settings: dict[str, Any]) -> Point | None:
    """The point of the highest total speed without a failure whose p90 TTFT and median speed keep the limits."""
    ttft, speed = settings.get("limit_ttft_ms"), settings.get("limit_speed")
    fit = [p for p in points if p["total_speed"] and not p["failed"] and p["whole"]]
    if ttft is not None:
        fit = [p for p in fit if p["ttft_ms"] and (p["ttft_from_plan_ms"] or p["ttft_ms"])["p90"] <= ttft]
    if speed is not None:
        fit = [p for p in fit if p["per_request_speed"] and p["per_request_speed"]["median"] >= speed]
    return max(fit, key=lambda p: float(p["total_speed"]), default=None)


def break_even_at(point: Point | None, hourly: float | None, price: float | None) -> BreakEven | None:
    """Break-even against `price`, as a share of the point's steady interval; None where a figure is missing."""
    if hourly is None or price is None:
        return None
    steady = point and point["steady_speed"]
    low, high = (steady["median_low"], steady["median_high"]) if steady else (None, None)
    return break_even(hourly, price, (low, high) if low and high else None)
