"""The terminal's table, as wide as the terminal: columns that do not fit are left out and named."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .summary import verdicts


@dataclass(frozen=True, slots=True)
class Column:
    """A heading, its cells, and how early it is given up in a narrow terminal (0 = never, higher = sooner)."""

    heading: str
    cells: list[str]
    give_up: int = 0
    right: bool = True

    @property
    def width(self) -> int:
        """Terminal cells the column needs."""
        return max(map(wide, [self.heading, *self.cells]))


def wide(text: str) -> int:
    """Terminal cells of a text: East Asian wide characters take two, combining marks none."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def clean(text: str) -> str:
    """A text from outside made safe for a terminal: no control characters, no line ends."""
    return "".join(c if c.isprintable() else "?" for c in text)


def render(columns: Sequence[Column], width: int) -> str:
    """The table in at most `width` cells a line where giving up columns can reach that, and without unknown columns."""
    columns = [column for column in columns if not column.give_up or set(column.cells) != {"-"}]
    kept = list(columns)
    while sum(c.width + 2 for c in kept) - 2 > width and any(c.give_up for c in kept):
        kept.remove(max(kept, key=lambda c: c.give_up))
    lines = [[c.heading for c in kept], ["-" * c.width for c in kept]]
    lines += [list(cells) for cells in zip(*(c.cells for c in kept), strict=True)]
    drawn = ["  ".join(_pad(cell, c) for cell, c in zip(line, kept, strict=True)).rstrip() for line in lines]
    if gone := [c.heading for c in columns if c not in kept]:
        drawn.append(f"(left out for width, in the files: {', '.join(gone)})")
    return "\n".join(drawn)


def _pad(cell: str, column: Column) -> str:
    space = " " * (column.width - wide(cell))
    return space + cell if column.right else cell + space


def wrapped(lines: Sequence[str], width: int) -> list[str]:
    """Sentences broken at spaces to the terminal's width, the rest of each set in."""
    return [part for line in lines for part in textwrap.wrap(line, max(width, 20), subsequent_indent="    ")]


def figure(found: dict[str, Any] | None, name: str, unit: str = "", bounds: bool = False) -> str:
    """A percentile as text, `*` after one whose interval has an open side, `-` for unknown."""
    if found is None:
        return "-"
    low, high = found[f"{name}_low"], found[f"{name}_high"]
    text = f"{number(found[name])}{unit}"
    if bounds:
        return f"{text} [{number(low)}..{number(high)}]"
    return text + ("*" if low is None or high is None else "")


def number(value: float | None) -> str:
    """Three significant digits, thousands set off; `?` for unknown."""
    if value is None:
        return "?"
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
        Column("$/M tokens", [money(t["price"] or t["summary"]["cost_per_million"]) for t in targets], 4),
        Column(
            "Published~",
            [number(t["published_tok_s"]) if t["published_tok_s"] else "-" for t in targets],
            6,
        ),
        Column("ok", [f"{s['requests']}/{s['requests'] + s['failed']}" for s in sums]),
    ]
    return "\n".join([render(columns, width), "", *wrapped([*_notes(targets), *map(clean, verdicts(targets))], width)])


def _notes(targets: Sequence[dict[str, Any]]) -> list[str]:
    lines = []
    if any(_open(t["summary"]) for t in targets):
        lines.append("* too few requests to bound this percentile on both sides with 95 % confidence.")
    if any(t["published_tok_s"] for t in targets):
        lines.append("~ tok/s as published, another definition (whole requests, live traffic): not to be compared.")
    lines += failures(targets)
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


def _open(summary: dict[str, Any]) -> bool:
    pairs = [(summary["output_speed"], "p10"), (summary["ttft_ms"], "p90")]
    pairs += [(summary["output_speed"], "median"), (summary["ttft_ms"], "median")]
    return any(found and None in (found[f"{name}_low"], found[f"{name}_high"]) for found, name in pairs)
