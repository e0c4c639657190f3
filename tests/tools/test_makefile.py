"""The Makefile by itself: its list of goals, and that it is the same from any folder."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tools.paths import ROOT


def make(*words: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["make", *words], cwd=cwd, capture_output=True, text=True, check=False)


def test_every_goal_has_its_line_within_100_columns() -> None:
    goals = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    lines = make("help").stdout.splitlines()
    assert [line.split()[1] for line in lines] == goals
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize(
    "words", [["-f", "../Makefile"], ["-f", "../Makefile", "help"], ["-f", str(ROOT / "Makefile")]]
)
def test_from_another_folder_it_works_in_its_own(words: list[str]) -> None:
    assert make(*words, cwd=ROOT / "tools").stdout == make("help").stdout


def test_what_is_said_on_the_command_line_and_the_exit_status_come_along_to_its_own_folder() -> None:
    done = make("-s", "-f", "../Makefile", "env", "STACK=nofile", cwd=ROOT / "tests")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: stack nofile has no file")


def test_a_folder_with_spaces_is_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "a b"
    folder.mkdir()
    shutil.copy(ROOT / "Makefile", folder)
    assert make("help", cwd=folder).stdout == make("help").stdout
