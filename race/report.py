"""One self-contained page from results of race and load: tables, figures, and what they do not show. No network."""

from __future__ import annotations

import html
import importlib.resources
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import charts
from .caveats import load_caveats, race_caveats
from .load_table import label, remarks
from .results import Document, named
from .table import figure, money, notes, number, price_of

_BOXES = "<p class=soft>Boxes hold the middle half of the requests, their line is the median; a dot is one request.</p>"
_PAGE = Path(__file__).with_name("page.html")


def write_page(path: Path, documents: Sequence[Document]) -> None:
    """Write the page of the documents, in their order. Raises OSError."""
    text = page(documents)
    with named(path):
        path.write_text(text, encoding="utf-8", errors="replace")


def page(documents: Sequence[Document]) -> str:
    """The page as HTML; the plotting library is inside it, so it is some 5 MB."""
    library = importlib.resources.files("plotly").joinpath("package_data/plotly.min.js").read_text(encoding="utf-8")
    drawn: dict[str, charts.Chart] = {}
    parts = [
        (_race if document["kind"] == "race" else _load)(document, f"d{index}", drawn)
        for index, document in enumerate(documents)
    ]
    # "</" and "<!--" would end or change a script element wherever they stand in it.
    data = json.dumps(drawn, allow_nan=False).replace("<", "\\u003c")
    filled = {
        "@TITLE@": "Measured speed" if len(documents) > 1 else f"Measured speed: {documents[0]['kind']}",
        "@BODY@": "\n".join(parts),
        "@CHARTS@": data,
        "@PLOTLY@": library,
    }
    text = _PAGE.read_text(encoding="utf-8")
    pieces = []
    for mark in ("@TITLE@", "@PLOTLY@", "@BODY@", "@CHARTS@"):  # in the page's order: what is filled in is not searched
        before, _, text = text.partition(mark)
        pieces += [before, filled[mark]]
    return "".join([*pieces, text])


def _race(document: Document, prefix: str, drawn: dict[str, charts.Chart]) -> str:
    settings = document["settings"]
    targets = sorted(document["targets"], key=lambda t: -((t["summary"]["output_speed"] or {}).get("median") or 0))
    measured = [target for target in targets if target["summary"]["requests"]]
    parts = [
        "<h1>Race</h1>",
        f"<p class=soft>{_esc(_protocol(document))}</p>",
        _race_table(targets),
        *(f"<p>{_esc(line)}</p>" for line in [*notes(targets), *_joined(document["verdicts"])]),
    ]
    spoken, figures = [target for target in measured if target["summary"]["output_speed"]], []
    if spoken:
        figures = [
            ("Output speed", charts.distribution(spoken, "output_speed", "tok/s")),
            ("Output speed by prompt", charts.per_prompt(spoken, list(settings["prompts"]))),
            ("Output speed over the rounds", charts.over_rounds(spoken)),
        ]
    if measured:
        figures.insert(1, ("Time to first token", charts.distribution(measured, "ttft_ms", "ms")))
        parts += [_BOXES, *(_figure(title, chart, f"{prefix}c{i}", drawn) for i, (title, chart) in enumerate(figures))]
    return "\n".join([*parts, _list("What this does not show", race_caveats(document))])


def _protocol(document: Document) -> str:
    settings, turns, targets = document["settings"], "", [document.get("target")]
    if document["kind"] == "race":
        turns = f", {settings['rounds']} rounds, {settings['concurrency']} at a time, {settings['order']}"
        targets = document["targets"]
    return (
        f"{document['started']}. Model {', '.join(sorted({target['model'] for target in targets if target}))}. "
        f"{len(settings['prompts'])} prompts{turns}; up to {settings['max_tokens']} tokens, temperature "
        f"{settings['temperature']}, top-p {settings['top_p']}, thinking {settings['thinking']}."
    )


def _race_table(targets: Sequence[dict[str, Any]]) -> str:
    head = (
        "Who",
        "Output speed, median [95 %]",
        "10th pct",
        "First token, median [95 %]",
        "90th pct",
        "ok",
        "Hardware",
        "$/M tokens",
        "Published~",
    )
    rows = []
    for target in targets:
        found = target["summary"]
        rows.append(
            (
                f"{target['name']} ({target['precision'] or 'precision not told'})",
                figure(found["output_speed"], "median", " tok/s", bounds=True),
                figure(found["output_speed"], "p10"),
                figure(found["ttft_ms"], "median", " ms", bounds=True),
                figure(found["ttft_ms"], "p90"),
                f"{found['requests']}/{found['requests'] + found['failed']}",
                target["hardware"] or "-",
                money(price_of(target)),
                number(target["published_tok_s"]),
            )
        )
    return _table(head, rows)


def _joined(lines: Sequence[str]) -> list[str]:
    """The lines, those that are set in with the one before them."""
    out: list[str] = []
    for line in lines:
        if line.startswith(" ") and out:
            out[-1] += f" {line.strip()}"
        else:
            out.append(line)
    return out


def _load(document: Document, prefix: str, drawn: dict[str, charts.Chart]) -> str:
    target, points, settings = document["target"], document["points"], document["settings"]
    named = f"{target['name']} ({target['precision'] or 'precision not told'})"
    parts = [f"<h1>Load: {_esc(named)}</h1>", f"<p class=soft>{_esc(_protocol(document))}</p>", _load_table(points)]
    parts += [f"<p>{_esc(line)}</p>" for line in remarks(document)]
    for mode, title in (("closed", ""), ("open", ", by arrivals at random")):
        shown = [point for point in points if point["mode"] == mode]
        if len(shown) < 2:  # one point is no curve; the table has it
            continue
        figures = [
            (f"Total output speed{title}", charts.load_speed(shown)),
            (f"Output speed of one request{title}", charts.load_each(shown)),
            (f"Time to first token{title}", charts.load_ttft(shown)),
        ]
        if settings["hourly"]:
            figures.append((f"Cost at {money(settings['hourly'])} an hour{title}", charts.load_cost(shown)))
        parts += [_figure(name, chart, f"{prefix}{mode}{i}", drawn) for i, (name, chart) in enumerate(figures)]
    return "\n".join([*parts, _list("What this does not show", load_caveats(document))])


def _load_table(points: Sequence[dict[str, Any]]) -> str:
    head = (
        "Load",
        "Total tok/s",
        "Each, median [95 %]",
        "First token, median",
        "90th pct",
        "Goodput/s",
        "$/M",
        "failed",
    )
    rows = []
    for point in points:
        ttft = point["ttft_from_plan_ms"] or point["ttft_ms"]
        rows.append(
            (
                label(point),
                number(point["total_speed"]),
                figure(point["per_request_speed"], "median", " tok/s", bounds=True),
                figure(ttft, "median", " ms"),
                figure(ttft, "p90", " ms"),
                number(point["goodput"] and point["goodput"]["per_s"]),
                money(point["cost_per_million"]),
                f"{point['failed']}/{point['requests']}",
            )
        )
    return _table(head, rows)


def _figure(title: str, chart: charts.Chart, name: str, drawn: dict[str, charts.Chart]) -> str:
    drawn[name] = chart
    return f'<h3>{_esc(title)}</h3><div class=chart id="{name}"></div>'


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{_esc(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{_esc(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<div class=scroll><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"


def _list(title: str, items: Sequence[str]) -> str:
    return f"<h2>{_esc(title)}</h2><ul>{''.join(f'<li>{_esc(item)}</li>' for item in items)}</ul>"


def _esc(text: Any) -> str:
    return html.escape(str(text))
