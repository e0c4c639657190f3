"""The page: safe with any name, whole without a network, and looked at by a real browser where one is installed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from sluicegate.race.__main__ import main
from sluicegate.race.caveats import load_caveats, race_caveats
from sluicegate.race.load_table import label, remarks
from sluicegate.race.report import page, write_page
from sluicegate.race.results import load
from sluicegate.race.table import notes
from tests.race.browser import CHROMIUM, browser

pytest.importorskip("plotly")
EXAMPLES = Path(__file__).with_name("examples")
NASTY = "</script><img src=x onerror=alert(1)> <b>&amp;"


@pytest.fixture
def race() -> dict[str, Any]:
    return load(EXAMPLES / "race.json", "race")


@pytest.fixture
def curve() -> dict[str, Any]:
    return load(EXAMPLES / "load.json", "load")


def body(text: str) -> str:
    """The page without the plotting library."""
    return text[text.index("</head>") :]


def test_the_page_has_every_target_with_its_precision_and_says_what_it_does_not_show(race: dict[str, Any]) -> None:
    text = body(page([race]))
    for target in race["targets"]:
        assert f"{target['name']} ({target['precision'] or 'precision not told'})" in text
        assert target["model"] in text
    for line in notes(race["targets"]):
        assert line in text
    for caveat in race_caveats(race):
        assert caveat in text.replace("&#x27;", "'")


def test_names_from_outside_can_add_no_markup(race: dict[str, Any]) -> None:
    for key in ("name", "hardware", "error", "precision", "note"):
        race["targets"][0][key] = NASTY
    race["verdicts"] = [NASTY]
    for row in race["targets"][1]["requests"]:
        row["prompt"] = row["error"] = NASTY
    text = body(page([race]))
    assert "<img" not in text
    assert text.count("<script>") == text.count("</script>") == 1


def test_the_page_asks_no_network_for_anything(race: dict[str, Any], curve: dict[str, Any]) -> None:
    text = page([race, curve])
    assert "default-src 'none'" in text
    assert not re.search(r"""(src|href)\s*=\s*["']?https?:""", body(text))


def test_a_load_page_has_each_step_and_what_the_terminal_says_of_the_curve(curve: dict[str, Any]) -> None:
    curve["points"][1] |= {"failed": 2, "errors": ["HTTP 503: busy"]}
    text = body(page([curve]))
    for line in remarks(curve):
        assert line.replace("'", "&#x27;") in text
    assert "HTTP 503: busy" in text
    for point in curve["points"]:
        assert label(point) in text


def test_a_result_in_two_sittings_says_so(race: dict[str, Any], curve: dict[str, Any]) -> None:
    for document, caveats in ((race, race_caveats), (curve, load_caveats)):
        assert not any("sitting" in line for line in caveats(document))
        document["resumed"] = 2
        assert any("sitting" in line for line in caveats(document))


def test_caveats_are_those_that_apply(race: dict[str, Any], curve: dict[str, Any]) -> None:
    assert any("precision differs" in line for line in race_caveats(race))
    race["settings"]["salt"] = None
    race["targets"][0]["summary"]["thought"] = 3
    race["targets"][0]["own"] = False
    assert sum("salted" in line or "thought" in line or "router" in line for line in race_caveats(race)) == 3
    curve["settings"]["hourly"] = None
    assert not any("bill" in line for line in load_caveats(curve))


def test_report_is_a_command_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "page.html"
    monkeypatch.setattr(
        "sys.argv", ["race", "report", str(EXAMPLES / "race.json"), str(EXAMPLES / "load.json"), "--html", str(out)]
    )
    assert main() == 0
    assert out.stat().st_size < 6e6
    (tmp_path / "bad.json").write_text(json.dumps({"kind": "race", "schema": 99}))
    monkeypatch.setattr("sys.argv", ["race", "report", str(tmp_path / "bad.json"), "--html", str(out)])
    assert main() == 2
    assert "schema 99" in capsys.readouterr().err
    (tmp_path / "bad.json").write_text(json.dumps({"kind": "race", "schema": 1, "settings": {}}))
    assert main() == 2
    assert "not a whole result" in capsys.readouterr().err


@pytest.mark.skipif(CHROMIUM is None, reason="needs a Chromium")
def test_a_browser_shows_it_without_a_complaint_or_a_sideways_scroll(
    race: dict[str, Any], curve: dict[str, Any], tmp_path: Path
) -> None:
    race["targets"][0]["name"] = "a-provider-with-quite-a-long-name-and-no-spaces-in-it-at-all"
    race["targets"][1]["error"] = "a reason without an end " * 8
    write_page(tmp_path / "page.html", [race, curve])
    with browser() as seen:
        for width, height, dark, phone in ((1280, 900, False, False), (360, 740, True, True)):
            seen.show(tmp_path / "page.html", width, height, dark, phone)
            assert seen.evaluate("document.documentElement.scrollWidth <= innerWidth")
            charts = seen.evaluate("document.querySelectorAll('.chart').length")
            assert charts == seen.evaluate("document.querySelectorAll('.chart .main-svg:first-child').length") == 8
            ink, paper = (
                seen.evaluate(f"getComputedStyle(document.body).{name}") for name in ("color", "backgroundColor")
            )
            assert (luma(ink) > luma(paper)) is dark
            assert luma(seen.evaluate("getComputedStyle(document.querySelector('.xtick text')).fill")) == luma(ink)
            seen.picture(tmp_path / f"{width}.png")
            assert (tmp_path / f"{width}.png").stat().st_size > 10_000
        assert seen.complaints == []
        assert {url.split(":")[0] for url in seen.requests} <= {"file", "data", "blob"}


def luma(colour: str) -> float:
    red, green, blue = map(float, re.findall(r"[\d.]+", colour)[:3])
    return 0.3 * red + 0.59 * green + 0.11 * blue
