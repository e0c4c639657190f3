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
from .load_table import break_even_sentence, gap_sentence, label
from .results import Document, named
from .table import failures, figure, money, number, price_of

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
        *(f"<p>{_esc(line.strip())}</p>" for line in [*failures(targets), *document["verdicts"]]),
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
        parts += [_figure(title, chart, f"{prefix}c{i}", drawn) for i, (title, chart) in enumerate(figures)]
    return "\n".join([*parts, _list("What this does not show", race_caveats(document))])


def _protocol(document: Document) -> str:
    settings = document["settings"]
    return (
        f"{document['started']}. {len(settings['prompts'])} prompts, {settings['rounds']} rounds, up to "
        f"{settings['max_tokens']} tokens, {settings['concurrency']} at a time, {settings['order']}; temperature "
        f"{settings['temperature']}, top-p {settings['top_p']}, thinking {settings['thinking']}."
    )


def _race_table(targets: Sequence[dict[str, Any]]) -> str:
    head = (
        "Who",
        "Output speed, median [95 %]",
        "p10",
        "First token, median [95 %]",
        "p90",
        "ok",
        "Hardware",
        "$/M",
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
                number(target["published_tok_s"]) if target["published_tok_s"] else "-",
            )
        )
    note = (
        "<p class=soft>* too few requests to bound this percentile on both sides with 95 % confidence. - unknown.</p>"
    )
    return _table(head, rows) + note


def _load(document: Document, prefix: str, drawn: dict[str, charts.Chart]) -> str:
    target, points, settings = document["target"], document["points"], document["settings"]
    named = f"{target['name']} ({target['precision'] or 'precision not told'})"
    parts = [f"<h1>Load: {_esc(named)}</h1>", f"<p class=soft>{_esc(document['started'])}.</p>", _load_table(points)]
    parts += [f"<p>{_esc(text)}</p>" for point in points if (text := gap_sentence(point))]
    if document["knee"]:
        how = "highest total speed squared over requests in flight"
        parts.append(f"<p>Knee ({how}): {_esc(document['knee'])} in flight.</p>")
    if document["break_even"]:
        sentence = break_even_sentence(document["break_even"], settings, document["capacity"])
        parts.append(f"<p>{_esc(sentence)}</p>")
    for mode, title in (("closed", ""), ("open", ", by arrivals at random")):
        shown = [point for point in points if point["mode"] == mode]
        if not shown:
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
    head = ("Load", "Total tok/s", "Each, median [95 %]", "First token, median", "p90", "Goodput/s", "$/M", "failed")
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
