"""How the programs of this room begin and end, whatever the terminal can show."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tools.paths import ROOT
from tools.stamps import fingerprint

NARROW = [{"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, {"PYTHONIOENCODING": "ascii"}]


def python(code: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **env}, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("env", NARROW, ids=["the C locale", "an ASCII terminal"])
def test_a_character_that_cannot_be_shown_is_a_question_mark(env: dict[str, str]) -> None:
    code = """
from pathlib import Path
from tools import console
def main(words):
    console.say("caf\\xe9\\u2026")
    command = ["sh", "-c", r"printf 'caf\\303\\251\\377\\n'; exit 1"]
    try:
        console.run_with_progress("a step", command, cwd=Path.cwd(), env={"PATH": "/usr/bin:/bin"})
    except console.SetupError as error:
        return console.fail(error)
console.start(main)
"""
    done = python(code, env)
    assert (done.returncode, done.stdout) == (1, "caf??\n")
    assert done.stderr.endswith("  caf??\n")


@pytest.mark.parametrize("env", NARROW, ids=["the C locale", "an ASCII terminal"])
def test_every_program_here_refuses_a_wrong_word_without_a_trace(env: dict[str, str]) -> None:
    for module in ("setup", "up", "down", "exports", "with_env"):
        command = [sys.executable, "-m", f"tools.{module}", "größe…"]
        done = subprocess.run(
            command, cwd=ROOT, env={**os.environ, **env}, capture_output=True, text=True, errors="replace", check=False
        )
        assert done.returncode in (1, 2)
        assert "Traceback" not in done.stderr


def test_a_stamp_of_a_folder_with_an_accent_holds_in_every_locale() -> None:
    code = "import os; from tools.stamps import *; print(fingerprint(facts=[os.fsdecode(b'/h/caf\\xc3\\xa9')]))"
    assert {python(code, env).stdout.strip() for env in [*NARROW, {}]} == {fingerprint(facts=["/h/café"])}


def test_an_interrupted_program_ends_with_130_and_no_trace() -> None:
    code = "import signal; from tools.console import start; start(lambda _: signal.raise_signal(signal.SIGINT))"
    done = python(code, {})
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
