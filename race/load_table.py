"""The load curve on a terminal: both figures that are wrongly multiplied, the gap between them, and the cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .table import OPEN_NOTE, Column, clean, figure, lag_note, money, number, render, unbounded, wrapped


def load_table(document: dict[str, Any], width: int) -> str:
    """The points, then what may be concluded from them."""
    points, target = document["points"], document["target"]
    if not points:
        return f"{clean(target['name'])}: nothing was measured: {clean(target['error'] or 'interrupted')}"
    return "\n".join([render(_columns(points), width), "", *wrapped(remarks(document), width)])


def remarks(document: dict[str, Any]) -> list[str]:
    """What the curve's figures need beside them: the mark's meaning, the gaps, failures, knee, cost."""
    points = document["points"]
    spreads = [p[key] for p in points for key in ("per_request_speed", "ttft_ms")]
    marks = [OPEN_NOTE] if any(map(unbounded, spreads)) else []
    return [*marks, *lag_note(p["client_lag_ms"] for p in points), *_gaps(points), *_conclusions(document)]


def _columns(points: Sequence[dict[str, Any]]) -> list[Column]:
    good, ttft = [p["goodput"] for p in points], [p["ttft_from_plan_ms"] or p["ttft_ms"] for p in points]
    return [
        Column("load", [label(p) for p in points], right=False),
        Column("total tok/s", [number(p["total_speed"]) for p in points]),
        Column("each, median", [figure(p["per_request_speed"], "median") for p in points]),
        Column("N x each", [number(p["product"]) for p in points], 5),
        Column("TTFT, ms", [figure(t, "median") for t in ttft]),
        Column("p90", [figure(t, "p90") for t in ttft], 1),
        Column("goodput/s", [f"{number(g['per_s'])} ({g['share']:.0%})" if g else "-" for g in good], 2),
        Column("$/M", [money(p["cost_per_million"]) for p in points], 4),
        Column("failed", [f"{p['failed']}/{p['requests']}" for p in points]),
    ]


def label(point: dict[str, Any]) -> str:
    """What a point is: `16 in flight`, or `2/s`."""
    text = f"{point['concurrency']} in flight" if point["concurrency"] else f"{point['rate']:g}/s"
    return text if point["whole"] else text + " (part)"


def gap_sentence(point: dict[str, Any]) -> str | None:
    """Why N x the median per-request speed is not the total, in figures; None for an open loop or unknown figures."""
    product, total, gap = point["product"], point["total_speed"], point["gap"]
    if not product or not total or not gap or point["concurrency"] == 1:
        return None
    each = number(point["per_request_speed"]["median"])
    return (
        f"{point['concurrency']} x {each} = {number(product)}, but the total is {number(total)} "
        f"({total / product:.0%}); {gap['waiting']:.0%} of the slots' time waited for a first token, "
        f"{gap['idle']:.0%} had no request (ragged end)."
    )


def _gaps(points: Sequence[dict[str, Any]]) -> list[str]:
    lines = [sentence for point in points if (sentence := gap_sentence(point))]
    lines += [f"{label(p)}: {p['failed']} failed: {clean('; '.join(p['errors'][:3]))}" for p in points if p["failed"]]
    return lines


def _conclusions(document: dict[str, Any]) -> list[str]:
    settings, points, lines = document["settings"], document["points"], []
    if sum(p["concurrency"] is not None for p in points) >= 3:
        at = document["knee"]
        lines.append(
            f"Knee (highest total speed squared over requests in flight): {at} in flight."
            if at
            else "Knee: not reached; the curve was still worth climbing at its end."
        )
    best, found = document["capacity"], document["break_even"]
    if best is None and (settings["limit_ttft_ms"] or settings["limit_speed"]):
        lines.append("No step kept the limits.")
    if found:
        lines.append(break_even_sentence(found, settings, best))
    elif settings["hourly"] is None:
        lines.append("Cost: unknown, for want of --hourly.")
    return lines


def break_even_sentence(found: dict[str, Any], settings: dict[str, Any], best: dict[str, Any] | None) -> str:
    """The traffic from which the machine beats a price, and how much of its measured capacity that takes."""
    head = (
        f"Against {money(settings['against'])} per million output tokens, a machine at {money(settings['hourly'])} "
        f"an hour pays from {found['tokens_per_day'] / 1e6:,.1f} M tokens a day = {number(found['tok_s'])} tok/s "
        "day and night"
    )
    if best is None:
        return head + "; no measured step says whether it can."
    if found["share"] is None:
        share = found["tok_s"] / best["total_speed"]
        return head + f": {share:.1%} of the {number(best['total_speed'])} measured (too short a step for a range)."
    low, high = found["share"]
    never = " It never gets there." if low > 1 else ""
    return head + f": {low:.1%} to {high:.1%} of its best step's total.{never} Input tokens and starts are extra."
