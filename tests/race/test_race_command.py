"""`race` from options to files and exit codes, as a user runs it. Servers on loopback; no time judged."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.race.asking import ENVIRONMENT, run
from tests.race.servers import Asked, events, refuse, serving, stream


def race(monkeypatch: pytest.MonkeyPatch, *options: object) -> int:
    return run(monkeypatch, "race", *options)


def good(_: Asked) -> Iterable[bytes | float | None]:
    return stream(*events())  # a little apart: what arrives in one piece has no speed


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "250")
    return tmp_path


def test_a_race_writes_what_it_promises(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(good) as a, serving(good) as b:
        code = race(
            monkeypatch,
            "--target",
            f"ours={a.url},model=m,precision=fp8,hourly=4.5",
            "--target",
            f"them={b.url},model=n",
            "--csv",
            "r.csv",
        )
        firsts = [asked.body["messages"][0]["content"].split("\n")[0] for asked in a.asked + b.asked]
    assert code == 0
    assert len(set(firsts)) == 2 * 25
    document = json.loads((place / "race-final.json").read_text())
    assert document["schema"] == 1
    assert document["started"].endswith("Z")
    assert {"rounds", "max_tokens", "temperature", "top_p", "seed", "salt", "prompts"} <= document["settings"].keys()
    for target in document["targets"]:
        assert {"name", "url", "model", "precision", "hardware"} <= target.keys()
        assert target["hardware"] is None
        assert {"median", "p10"} <= target["summary"]["output_speed"].keys()
        assert {"median", "p90"} <= target["summary"]["ttft_ms"].keys()
        assert target["summary"]["ttft_ms"]["p90_high"] is None
        assert len(target["requests"]) == 24
        assert target["warm_up"]["round"] == 0
    lines = list(csv.DictReader((place / "r.csv").open()))
    assert len(lines) == 48
    assert {line["error"] for line in lines} == {""}
    shown = capsys.readouterr()
    assert "24/24" in shown.out
    assert "rank" in shown.out
    assert "50/50" in shown.err


def test_one_bad_target_does_not_stop_the_others_and_the_exit_code_tells(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(good) as server, serving(lambda _: refuse("404 No", {"message": "model m does not exist"})) as wrong:
        code = race(
            monkeypatch,
            "--target",
            f"ok={server.url},model=m",
            "--target",
            f"wrong={wrong.url},model=m",
            "--target",
            "gone=http://127.0.0.1:1/v1,model=m",
            "--rounds",
            1,
        )
    assert code == 1
    ok, bad, gone = json.loads((place / "race-final.json").read_text())["targets"]
    assert ok["summary"]["requests"] == 6
    assert "does not exist" in bad["error"]
    assert gone["error"] == "connection refused"
    assert bad["summary"]["output_speed"] is None
    assert "gone is out: connection refused" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ([], "nothing to race"),
        (["--target", "x"], "needs NAME=URL"),
        (["--target", "a=http://h/v1,model=m", "--target", "a=http://h/v1,model=m"], "two targets are called a"),
        (["--openrouter", "m/m"], "go together"),
        (["--openrouter", "m/m", "--providers", "all"], "OPENROUTER_API_KEY is not set"),
        (["--target", "a=http://h/v1,model=m", "--prompts", "none.json"], "none.json"),
        (["--target", "a=http://h/v1,model=m", "--json", "no/folder/x.json"], "cannot be written"),
        (["--target", "a=http://h/v1,model=m", "--csv", "."], "cannot be written"),
        (["--target", "a=http://h/v1,model=m", "--resume"], "race-final.json"),
        (["--target", "a=http://h/v1,model=m", "--json", "earlier.json"], "earlier result"),
        (["--target", "a=http://h/v1,model=m", "--json", "earlier.json", "--resume"], "no result"),
    ],
)
def test_bad_options_are_one_line_and_nothing_is_sent(
    options: list[str], why: str, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)
    (place / "earlier.json").write_text("{}")
    assert race(monkeypatch, *options) == 2
    shown = capsys.readouterr()
    assert why in shown.err
    assert shown.err.count("\n") == 1
    assert shown.out == ""


@pytest.mark.parametrize(
    "options",
    ["--rounds 0", "--rounds x", "--max-tokens 1", "--concurrency 999", "--timeout 0", "--timeout nan", "--no-such"],
)
def test_numbers_out_of_range_are_refused_by_the_parser(
    options: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit) as stopped:
        race(monkeypatch, "--target", "a=http://h/v1,model=m", *options.split())
    assert stopped.value.code == 2
    assert list(place.iterdir()) == []


def test_without_a_salt_prompts_go_out_as_they_are_and_cached_tokens_are_told(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "p.json").write_text(json.dumps({"only": "Just this."}))
    told = {"completion_tokens": 4, "prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 3}}
    usage = b"data: " + json.dumps({"choices": [], "usage": told}).encode() + b"\n\n"
    wire = events()[:-2]
    with serving(lambda _: stream(*wire, usage, b"data: [DONE]\n\n", pause=0.0)) as server:
        assert (
            race(
                monkeypatch,
                "--target",
                f"a={server.url},model=m",
                "--prompts",
                "p.json",
                "--no-salt",
                "--rounds",
                2,
                "--max-tokens",
                64,
            )
            == 0
        )
        assert {asked.body["messages"][0]["content"] for asked in server.asked} == {"Just this."}
        assert {asked.body["max_tokens"] for asked in server.asked} == {64}
    (target,) = json.loads((place / "race-final.json").read_text())["targets"]
    assert target["summary"]["cached_tokens"] == 6
    assert target["summary"]["first_round_ttft_ms"]["n"] == 1
    assert "6 of 18 prompt tokens came from a prefix cache" in capsys.readouterr().out


def test_an_interrupt_keeps_what_is_there_and_resume_does_the_rest_once(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process: list[subprocess.Popen[bytes]] = []

    def interrupting(asked: Asked) -> Iterable[bytes | float | None]:
        if len(server.asked) == 5:
            process[0].send_signal(signal.SIGINT)
            return [30.0]
        return good(asked)

    with serving(interrupting) as server:
        options = ["race", "--target", f"a={server.url},model=m", "--rounds", "2", "--seed", "7"]
        process.append(
            subprocess.Popen(
                [sys.executable, "-m", "sluicegate.race", *options], env=ENVIRONMENT, cwd=place, stderr=subprocess.PIPE
            )
        )
        _, said = process[0].communicate(timeout=60)
        assert process[0].returncode == 130
        assert b"--resume" in said
        assert b"Traceback" not in said
        kept = json.loads((place / "race-final.json").read_text())
        assert kept["finished"] is None
        assert len(kept["targets"][0]["requests"]) == 3
        assert race(monkeypatch, *options[1:]) == 2
        assert race(monkeypatch, *options[1:], "--resume", "--rounds", 3) == 2
        assert race(monkeypatch, *options[1:-1], 8, "--resume") == 2
        assert race(monkeypatch, *options[1:], "--resume") == 0
        assert len(server.asked) == 5 + 1 + 9
        before = (place / "race-final.json").read_text()
        assert race(monkeypatch, *options[1:], "--resume") == 0
        assert len(server.asked) == 5 + 1 + 9
    document: dict[str, Any] = json.loads(before)
    assert document["settings"]["salt"] == kept["settings"]["salt"]
    rows = document["targets"][0]["requests"]
    assert rows[:3] == kept["targets"][0]["requests"]
    assert len({(row["prompt"], row["round"]) for row in rows}) == len(rows) == 12
    assert {path.name for path in place.iterdir()} == {"race-final.json"}


def test_termination_keeps_what_is_there_too(place: Path) -> None:
    process: list[subprocess.Popen[bytes]] = []

    def stopping(asked: Asked) -> Iterable[bytes | float | None]:
        if len(server.asked) == 3:
            process[0].terminate()
            return [30.0]
        return good(asked)

    with serving(stopping) as server:
        options = ["race", "--target", f"a={server.url},model=m"]
        process.append(
            subprocess.Popen([sys.executable, "-m", "sluicegate.race", *options], env=ENVIRONMENT, cwd=place)
        )
        assert process[0].wait(60) == 130
    assert len(json.loads((place / "race-final.json").read_text())["targets"][0]["requests"]) == 1


@pytest.mark.usefixtures("place")
def test_a_file_that_cannot_be_written_in_the_end_is_an_error_with_its_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(good) as server:
        assert race(monkeypatch, "--target", f"a={server.url},model=m", "--rounds", 1, "--csv", "/dev/full") == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("sluicegate: ")
