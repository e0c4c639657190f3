"""The page's figures as data for plotly.js: a name to what Plotly.react takes. Speeds in tok/s, times in ms."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from .stats import percentile

Chart = dict[str, Any]
# Okabe and Ito's colours: told apart with colour blindness, and on white and on black alike (their black left out).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#B8A800")
_MARKS = ("circle", "square", "diamond", "cross", "triangle-up")


def named(target: dict[str, Any]) -> str:
    """A target's name with its precision beside it, safe for HTML and for plotly's own markup."""
    return html.escape(f"{target['name']} ({target['precision'] or 'precision not told'})")


def _look(index: int) -> dict[str, Any]:
    return {"color": COLOURS[index % len(COLOURS)], "symbol": _MARKS[index // len(COLOURS) % len(_MARKS)], "size": 7}


def _axis(title: str, **more: Any) -> dict[str, Any]:
    return {"title": {"text": title}, "automargin": True} | more


def _good(target: dict[str, Any], key: str) -> list[dict[str, Any]]:
    return [row for row in target["requests"] if row["error"] is None and row[key] is not None]


def distribution(targets: Sequence[dict[str, Any]], key: str, title: str) -> Chart:
    """A box and every request of each target, the first target on top."""
    data = []
    for index, target in enumerate(targets):
        rows = _good(target, key)
        data.append(
            {
                "type": "box",
                "x": [row[key] for row in rows],
                "y": [named(target)] * len(rows),
                "text": [html.escape(f"{row['prompt']}, round {row['round']}") for row in rows],
                "orientation": "h",
                "boxpoints": "all",
                "jitter": 0.6,
                "pointpos": 0,
                "marker": _look(index) | {"size": 4, "opacity": 0.7},
                "line": {"width": 1.2},
            }
        )
    layout = _layout(_axis(title, rangemode="tozero"), _names(targets), 90 + 64 * len(targets))
    layout["margin"] |= {"l": 12}
    layout["annotations"] = [_above(target) for target in targets]
    return {"data": data, "layout": layout}


def per_prompt(targets: Sequence[dict[str, Any]], prompts: Sequence[str]) -> Chart:
    """The median output speed of each prompt, a mark per target."""
    data = []
    for index, target in enumerate(targets):
        points = []
        for prompt in prompts:
            found = [row["output_speed"] for row in _good(target, "output_speed") if row["prompt"] == prompt]
            points += [(percentile(found, 0.5), html.escape(prompt))] if found else []
        data.append(_marks([x for x, _ in points], [y for _, y in points], target, index))
    down = {"autorange": "reversed", "type": "category"}
    height = 150 + 40 * len(prompts) + 20 * len(targets)
    return {"data": data, "layout": _layout(_axis("median tok/s", rangemode="tozero"), _axis("", **down), height, True)}


def over_rounds(targets: Sequence[dict[str, Any]]) -> Chart:
    """The median output speed of each round, a line per target."""
    data = []
    for index, target in enumerate(targets):
        rows = _good(target, "output_speed")
        rounds = sorted({row["round"] for row in rows})
        medians = [percentile([row["output_speed"] for row in rows if row["round"] == r], 0.5) for r in rounds]
        data.append(_marks(rounds, medians, target, index) | {"mode": "lines+markers"})
    x, y = _axis("round", dtick=1), _axis("median tok/s", rangemode="tozero")
    return {"data": data, "layout": _layout(x, y, 320 + 20 * len(targets), True)}


def load_speed(points: Sequence[dict[str, Any]]) -> Chart:
    """Total speed with the interval while every slot is busy, and the N x median that one is tempted to expect."""
    x = _x(points)
    steady = [p["steady_speed"] for p in points]
    total = [p["total_speed"] for p in points]
    bars = {
        "type": "data",
        "symmetric": False,
        "array": [max(_or(s, "median_high", t) - t, 0) if t else 0 for s, t in zip(steady, total, strict=True)],
        "arrayminus": [max(t - _or(s, "median_low", t), 0) if t else 0 for s, t in zip(steady, total, strict=True)],
    }
    data = [_line(x, total, "total", 0) | {"error_y": bars}]
    if any(p["product"] for p in points):
        data.append(_line(x, [p["product"] for p in points], "N x median per request", 1) | {"line": {"dash": "dot"}})
    return {"data": data, "layout": _layout(_load(points), _axis("tok/s", rangemode="tozero"), 360, True)}


def load_each(points: Sequence[dict[str, Any]]) -> Chart:
    """Per-request speed: median and 10th percentile."""
    x, found = _x(points), [p["per_request_speed"] for p in points]
    data = [_line(x, [_or(s, key, None) for s in found], key, i) for i, key in enumerate(("median", "p10"))]
    return {"data": data, "layout": _layout(_load(points), _axis("tok/s", rangemode="tozero"), 320, True)}


def load_ttft(points: Sequence[dict[str, Any]]) -> Chart:
    """Time to first token: median and 90th percentile."""
    x, found = _x(points), [p["ttft_ms"] for p in points]
    data = [_line(x, [_or(s, key, None) for s in found], key, i) for i, key in enumerate(("median", "p90"))]
    return {"data": data, "layout": _layout(_load(points), _axis("ms", rangemode="tozero"), 320, True)}


def load_cost(points: Sequence[dict[str, Any]]) -> Chart:
    """USD per million output tokens, on a logarithmic axis."""
    x = _x(points)
    data = [_line(x, [p["cost_per_million"] for p in points], "cost", 0)]
    return {"data": data, "layout": _layout(_load(points), _axis("USD per million", type="log"), 320)}


def _x(points: Sequence[dict[str, Any]]) -> list[float]:
    """Requests in flight, or arrivals per second: the points of one mode."""
    return [point["concurrency"] or point["rate"] for point in points]


def _or(found: dict[str, Any] | None, key: str, otherwise: Any) -> Any:
    return otherwise if found is None or found[key] is None else found[key]


def _load(points: Sequence[dict[str, Any]]) -> dict[str, Any]:
    x, title = _x(points), "requests in flight" if points[0]["mode"] == "closed" else "requests per second"
    return _axis(title, type="log", tickvals=x, ticktext=[f"{v:g}" for v in x])


def _line(x: Sequence[Any], y: Sequence[Any], name: str, index: int) -> Chart:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": list(x),
        "y": list(y),
        "name": name,
        "marker": _look(index),
    }


def _marks(x: Sequence[Any], y: Sequence[Any], target: dict[str, Any], index: int) -> Chart:
    return _line(x, y, named(target), index) | {"mode": "markers"}


def _names(targets: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """No labels: beside the boxes they would take a phone's whole width, so each name stands above its box."""
    return {
        "visible": False,
        "type": "category",
        "autorange": "reversed",
        "categoryorder": "array",
        "categoryarray": [named(target) for target in targets],
    }


def _above(target: dict[str, Any]) -> dict[str, Any]:
    place = {"xref": "paper", "x": 0, "xanchor": "left", "yref": "y", "y": named(target), "yanchor": "bottom"}
    return place | {"text": named(target), "showarrow": False, "yshift": 16}


def _layout(x: dict[str, Any], y: dict[str, Any], height: int, legend: bool = False) -> dict[str, Any]:
    below = {"orientation": "h", "y": -0.25, "yanchor": "top", "x": 0}
    margin = {"l": 44, "r": 12, "t": 16, "b": 44}
    return {"xaxis": x, "yaxis": y, "height": height, "showlegend": legend, "legend": below, "margin": margin}
