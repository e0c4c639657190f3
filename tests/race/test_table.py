"""The tables in terminals of every width."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from sluicegate.race.load_table import load_table
from sluicegate.race.results import load
from sluicegate.race.table import Column, race_table, render, wide

EXAMPLES = Path(__file__).with_name("examples")
ROOT = Path(__file__).parents[2]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}
Wire = Iterable[bytes | float | None]


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 140, 200])
def test_a_table_is_no_wider_than_its_terminal_and_says_what_is_left_out(width: int) -> None:
    document = load(EXAMPLES / "race.json")
    document["targets"][0]["name"] = "a provider of a very long name " * 3
    document["targets"][1]["name"] = "\u65e5\u672c\u8a9e" * 9
    for text in (race_table(document, width), load_table(load(EXAMPLES / "load.json"), width)):
        table, _, prose = text.partition("\n\n")
        assert max(map(wide, table.splitlines())) <= max(width, 40)
        assert max(map(len, prose.splitlines())) <= width
    assert ("left out for width" in race_table(document, width)) is (width < 150)


def test_headings_are_broken_before_columns_are_given_up_and_names_are_cut_last() -> None:
    columns = [Column("Who", ["abcdefghijklmnop"], right=False), Column("Output speed", ["1"]), Column("x y", ["2"], 1)]
    assert render(columns, 40).splitlines()[0] == "Who               Output speed  x y"
    assert [line.split() for line in render(columns, 30).splitlines()[:2]] == [["Output", "x"], ["Who", "speed", "y"]]
    narrow = render(columns, 20)
    assert "abcdefghijk\u2026" in narrow
    assert "left out for width" in narrow


def test_a_machine_too_busy_to_read_in_time_is_told_beside_both_tables() -> None:
    race, curve = load(EXAMPLES / "race.json"), load(EXAMPLES / "load.json")
    for lag, told in ((4.0, False), (31.0, True), (None, False)):
        for target in race["targets"]:
            target["summary"]["client_lag_ms"] = lag
        for point in curve["points"]:
            point["client_lag_ms"] = lag
        for text in (race_table(race, 200), load_table(curve, 200)):
            assert ("read late by up to 31 ms" in text) is told
