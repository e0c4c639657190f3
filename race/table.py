"""The terminal's table, no wider than the terminal: columns that do not fit are left out and named."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .summary import verdicts

OPEN_NOTE = "* too few requests to bound this percentile on both sides with 95 % confidence."
LAG_TOLD_MS = 5.0


@dataclass(frozen=True, slots=True)
class Column:
    """A heading, its cells, and how early it is given up in a narrow terminal (0 = never, higher = sooner)."""

    heading: str
    cells: list[str]
    give_up: int = 0
    right: bool = True

    def head(self, broken: bool) -> list[str]:
        """The heading's lines: one, or as many as make it no wider than the cells, or its longest word."""
        room = max(map(wide, [*self.cells, *self.heading.split()]))
        return textwrap.wrap(self.heading, room, break_long_words=False) if broken else [self.heading]

    def width(self, broken: bool) -> int:
        """Terminal cells the column needs."""
        return max(map(wide, [*self.head(broken), *self.cells]))


def wide(text: str) -> int:
    """Terminal cells of a text: East Asian wide characters take two, combining marks none."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def clean(text: str) -> str:
    """A text from outside made safe for a terminal: no control characters, no line ends."""
    return "".join(c if c.isprintable() else "?" for c in text)


def render(columns: Sequence[Column], width: int) -> str:
    """The table in `width` cells a line, without unknown columns.

    What is too wide has its headings broken into lines, then loses columns, then the ends of its names.
    """
    columns = [column for column in columns if not column.give_up or set(column.cells) != {"-"}]
    kept, broken = list(columns), False

    def over() -> int:
        return sum(c.width(broken) + 2 for c in kept) - 2 - width

    broken = over() > 0
    while over() > 0 and any(c.give_up for c in kept):
        kept.remove(max(kept, key=lambda c: c.give_up))
    if (most := kept[0].width(broken) - max(over(), 0)) < kept[0].width(broken):
        kept[0] = replace(kept[0], cells=[_cut(cell, max(most, 8)) for cell in kept[0].cells])
    heads = [c.head(broken) for c in kept]
    tall = max(map(len, heads))
    lines = [[([""] * (tall - len(head)) + head)[n] for head in heads] for n in range(tall)]
    lines += [
        ["-" * c.width(broken) for c in kept],
        *([*cells] for cells in zip(*(c.cells for c in kept), strict=True)),
    ]
    drawn = ["  ".join(_pad(cell, c, broken) for cell, c in zip(line, kept, strict=True)).rstrip() for line in lines]
    if gone := [c.heading for c in columns if c.heading not in {k.heading for k in kept}]:
        drawn += wrapped([f"(left out for width, in the files: {', '.join(gone)})"], width)
    return "\n".join(drawn)


def _pad(cell: str, column: Column, broken: bool) -> str:
    space = " " * (column.width(broken) - wide(cell))
    return space + cell if column.right else cell + space


def _cut(text: str, room: int) -> str:
    if wide(text) <= room:
        return text
    while wide(text) > room - 1:
        text = text[:-1]
    return text + "\u2026"


def wrapped(lines: Sequence[str], width: int) -> list[str]:
    """Sentences broken at spaces to the terminal's width, the rest of each set in."""
    return [
        part
        for line in lines
        for part in textwrap.wrap(line, max(width, 20), subsequent_indent="    ", break_on_hyphens=False)
    ]


def unbounded(found: dict[str, Any] | None) -> bool:
    """Whether a percentile of a spread has an interval without a bound on one side."""
    return found is not None and any(found[key] is None for key in found if key.endswith(("_low", "_high")))


def figure(found: dict[str, Any] | None, name: str, unit: str = "", bounds: bool = False) -> str:
    """A percentile as text, `*` after one whose interval has an open side, `-` for unknown."""
    if found is None:
        return "-"
    low, high = found[f"{name}_low"], found[f"{name}_high"]
    text = f"{number(found[name])}{unit}"
    if bounds:
        return f"{text} [{'?' if low is None else number(low)}..{'?' if high is None else number(high)}]"
    return text + ("*" if low is None or high is None else "")


def price_of(target: dict[str, Any]) -> float | None:
    """USD per million output tokens: the price that was told, free included, else what the machine's hours cost."""
    told: float | None = target["price"]
    return target["summary"]["cost_per_million"] if told is None else told


def number(value: float | None) -> str:
    """Three significant digits, thousands set off; `-` for unknown."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def money(value: float | None) -> str:
    """USD to a cent, `-` for unknown."""
    return "-" if value is None else f"${value:,.2f}"


def race_table(document: dict[str, Any], width: int) -> str:
    """The race as the seeds print it, fastest first, with intervals, failures and what may be concluded."""
    targets = sorted(document["targets"], key=lambda t: -((t["summary"]["output_speed"] or {}).get("median") or 0))
    sums = [t["summary"] for t in targets]

    def cells(key: str, name: str, unit: str, bounds: bool = False) -> list[str]:
        return [figure(s[key], name, unit, bounds) for s in sums]

    columns = [
        Column("Provider", [clean(t["name"])[:40] for t in targets], right=False),
        Column("Hardware", [clean(t["hardware"] or "-") for t in targets], 3, right=False),
        Column("Precision", [clean(t["precision"] or "-") for t in targets], 2, right=False),
        Column("Output speed, median", cells("output_speed", "median", " tok/s")),
        Column("95 %", [figure(s["output_speed"], "median", bounds=True).partition(" ")[2] for s in sums], 5),
        Column("10th pct", cells("output_speed", "p10", " tok/s"), 1),
        Column("First token, median", cells("ttft_ms", "median", " ms")),
        Column("90th pct", cells("ttft_ms", "p90", " ms"), 1),
        Column("$/M tokens", [money(price_of(t)) for t in targets], 4),
        Column(
            "Published~",
            [number(t["published_tok_s"]) for t in targets],
            6,
        ),
        Column("ok", [f"{s['requests']}/{s['requests'] + s['failed']}" for s in sums]),
    ]
    return "\n".join([render(columns, width), "", *wrapped([*notes(targets), *map(clean, verdicts(targets))], width)])


def notes(targets: Sequence[dict[str, Any]]) -> list[str]:
    """What must be said beside the figures: marks, failures, thought, cached tokens, speeds that are not known."""
    lines = []
    if any(unbounded(t["summary"]["output_speed"]) or unbounded(t["summary"]["ttft_ms"]) for t in targets):
        lines.append(OPEN_NOTE)
    if any(t["published_tok_s"] for t in targets):
        lines.append("~ tok/s as published, another definition (whole requests, live traffic): not to be compared.")
    lines += [*lag_note(t["summary"]["client_lag_ms"] for t in targets), *failures(targets)]
    for target in targets:
        found, name = target["summary"], clean(target["name"])
        if target["note"]:
            lines.append(f"{name}: {clean(target['note'])}")
        if found["thought"]:
            lines.append(f"{name}: thought in {found['thought']} answers although thinking was off.")
        if found["cached_tokens"]:
            cached, asked = found["cached_tokens"], found["prompt_tokens"] or "an unknown number of"
            lines.append(f"{name}: {cached} of {asked} prompt tokens came from a prefix cache.")
        if found["requests"] and not found["output_speed"]:
            lines.append(f"{name}: tells no usable token count, so it has no output speed.")
    return lines


def lag_note(lags: Iterable[float | None]) -> list[str]:
    """A warning when this machine was too busy to read in time: what waits together has the last piece's stamp."""
    worst = max((lag for lag in lags if lag is not None), default=0.0)
    if worst <= LAG_TOLD_MS:
        return []
    return [f"This machine was busy and read late by up to {worst:.0f} ms: a first token may look late by up to that."]


def failures(targets: Sequence[dict[str, Any]]) -> list[str]:
    """A line per target that is out, or of which requests failed, with the reasons."""
    lines = []
    for target in targets:
        name = clean(target["name"])
        if target["error"]:
            lines.append(f"{name} is out: {clean(target['error'])}")
        elif errors := sorted({row["error"] for row in target["requests"] if row["error"]}):
            lines.append(f"{name}: {target['summary']['failed']} failed: {clean('; '.join(errors[:3]))}")
    return lines
