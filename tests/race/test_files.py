"""Result files of another make, or that two runs want: refused in one sentence, and never built on."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sluicegate.race.load_table import load_table
from sluicegate.race.race_command import _left
from sluicegate.race.report import _load as load_part
from sluicegate.race.report import _race as race_part
from sluicegate.race.results import claimed, load
from sluicegate.race.summary import summarise
from sluicegate.race.table import race_table
from tests.race.asking import run

EXAMPLES = Path(__file__).with_name("examples")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def spots(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to everything in a document, of each list the first item only."""
    items = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, part in items:
        yield (*path, key)
        yield from spots(part, (*path, key))


@pytest.mark.parametrize("name", ["race", "load"])
def test_a_result_with_anything_wrong_in_it_is_refused_or_can_be_shown_and_gone_on_with(
    name: str, tmp_path: Path
) -> None:
    whole, refused = json.loads((EXAMPLES / f"{name}.json").read_text()), 0
    for part, items in (("targets", "requests"), ("points", "rows")):  # a small one, for it is read 1,500 times
        whole[part] = [each | {items: each[items][:1]} for each in whole.get(part, [])[:1]]
    path = tmp_path / "r.json"
    for spot in spots(whole):
        for junk in (None, "x", -5, 1.5, [], {}, [None], "gone"):
            document = copy.deepcopy(whole)
            parent = document
            for key in spot[:-1]:
                parent = parent[key]
            if junk == "gone":
                del parent[spot[-1]]
            else:
                parent[spot[-1]] = junk
            path.write_text(json.dumps(document))
            try:
                found = load(path)
            except ValueError:
                refused += 1
                continue
            if name == "race":
                race_table(found, 100)
                race_part(found, "", {})
                for target in found["targets"]:
                    summarise(target["requests"], target["hourly"])
                if "settings" not in spot:
                    _left(found)
            else:
                load_table(found, 100)
                load_part(found, "", {})
    assert refused > 300


@pytest.mark.parametrize("text", ["", "[]", "{}", "\xff", "[" * 100_000, '{"kind": "race", "schema": true}', "NaN"])
def test_no_file_that_is_no_result_is_read_as_one(
    text: str, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "r.json").write_bytes(text.encode("latin-1"))
    assert run(monkeypatch, "report", "r.json", "--html", "p.html") == 2
    for kind in ("race", "load"):
        assert run(monkeypatch, kind, "--target", "a=http://h/v1,model=m", "--json", "r.json", "--resume") == 2
        assert run(monkeypatch, kind, "--target", "a=http://h/v1,model=m", "--prompts", "r.json") == 2
    assert capsys.readouterr().err.count("\n") == 5
    assert {path.name for path in place.iterdir()} == {"r.json"}


def test_a_page_never_takes_the_place_of_a_result(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "r.json").write_text((EXAMPLES / "race.json").read_text())
    assert run(monkeypatch, "report", "r.json", "--html", "./r.json") == 2
    assert "one of the results" in capsys.readouterr().err
    assert load(place / "r.json")


def test_two_runs_never_write_one_file(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with claimed(place / "r.json"):
        for kind in ("race", "load"):
            assert run(monkeypatch, kind, "--target", "a=http://127.0.0.1:1/v1,model=m", "--json", "r.json") == 2
    assert capsys.readouterr().err.count("being written by another run") == 2
    (place / ".r.json.lock").touch()  # what a crash leaves claims nothing
    with claimed(place / "r.json"):
        pass
    assert list(place.iterdir()) == []
