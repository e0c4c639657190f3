"""The command where the locale or the terminal has fewer characters than answers, names and state do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.fake_pulumi import Fake
from tests.cli.odd_server import DONE, END, answering, event

NARROW = {
    "the C locale": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "an ASCII terminal": {"PYTHONIOENCODING": "ascii"},
}


@pytest.fixture(params=NARROW.values(), ids=NARROW.keys())
def narrow(fake: Fake, request: pytest.FixtureRequest) -> Fake:
    fake.env |= request.param
    return fake


def outputs(url: str, **more: Any) -> str:
    return json.dumps({"url": url, "model": "m", "api_key": "k" * 20} | more, ensure_ascii=False)


def test_an_answer_is_shown_with_question_marks_and_the_question_arrives_as_typed(narrow: Fake) -> None:
    with answering(200, event("Schön … 水") + END + DONE) as (url, seen):
        narrow.answer(output=outputs(url, note="größer"))
        done = narrow.run("ask", "Wärme…?")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Sch?n ? ?\n[")
    assert seen[0][2]["messages"][0]["content"] == "Wärme…?"


def test_a_race_shows_its_table_and_its_errors(narrow: Fake) -> None:
    with answering(404, "nicht da … 水") as (url, _):
        done = narrow.run("race", "--target", f"größe={url}/v1,model=m", "--rounds", "1", "--max-tokens", "4")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "gr??e" in done.stdout
    assert "größe" in (narrow.project / "race-final.json").read_text(encoding="utf-8")


def test_what_pulumi_says_and_what_a_wrong_word_is_are_one_line(narrow: Fake) -> None:
    narrow.answer(error="error: größer als … nötig")
    for words in (["env"], ["status"], ["logs"], ["ask", "q"], ["recipe", "pin", "größe/…"], ["report", "größe.json"]):
        done = narrow.run(*words)
        assert done.returncode in (1, 2)
        assert "Traceback" not in done.stderr
        assert done.stdout == ""
