"""`load` from options to files and exit codes, as a user runs it. Servers on loopback; no time judged."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest

from sluicegate.race.results import load
from tests.race.asking import ENVIRONMENT, run
from tests.race.servers import Asked, events, refuse, serving, stream

Wire = Iterable[bytes | float | None]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def good(_: Asked) -> Wire:
    return stream(*events())


def test_a_load_run_writes_its_points_and_prints_both_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    with serving(lambda _: stream(*events(n=20), pause=0.001)) as server:
        options = [
            "--target",
            f"a={server.url},model=m,hourly=4.5",
            "--levels",
            "1,2,4",
            "--rates",
            "50",
            "--requests",
            12,
        ]
        code = run(monkeypatch, "load", *options, "--against", 2.5, "--limit-ttft-ms", 60_000, "--csv", "load.csv")
    assert code == 0
    document = json.loads((tmp_path / "load.json").read_text())
    assert [point["concurrency"] for point in document["points"]] == [1, 2, 4, None]
    for point in document["points"]:
        assert point["total_speed"] > 0
        assert point["per_request_speed"]["median"] > 0
        assert {"median", "p90"} <= point["ttft_ms"].keys()
        assert point["failed"] == 0
    assert document["break_even"]["tok_s"] == pytest.approx(500)
    assert len((tmp_path / "load.csv").read_text().splitlines()) == 1 + 48
    shown = capsys.readouterr().out
    assert "but the total is" in shown
    assert "Against $2.50 per million" in shown


def test_a_target_that_cannot_answer_is_measured_no_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with serving(lambda _: refuse("401 No", {"message": "bad key"})) as server:
        assert run(monkeypatch, "load", "--target", f"a={server.url},model=m") == 1
        assert len(server.asked) == 1
    assert "nothing was measured: HTTP 401: bad key" in capsys.readouterr().out
    assert json.loads((tmp_path / "load.json").read_text())["points"] == []


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ([], "exactly one"),
        (["--target", "a=http://h/v1,model=m", "--target", "b=http://h/v1,model=m"], "exactly one"),
        (["--target", "a=http://h/v1,model=m", "--up-to", "4", "--levels", "1"], "give one"),
    ],
)
def test_bad_options_are_refused(
    options: list[str], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, "load", *options) == 2
    assert why in capsys.readouterr().err


def test_a_load_run_that_was_stopped_goes_on_with_the_steps_that_are_not_whole(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process: list[subprocess.Popen[bytes]] = []
    texts: list[str] = []
    lock = threading.Lock()

    def interrupting(asked: Asked) -> Wire:
        with lock:
            texts.append(asked.body["messages"][0]["content"])
            stop = len(texts) == 12
        if stop:
            process[0].send_signal(signal.SIGINT)
            process[0].send_signal(signal.SIGINT)  # impatience breaks nothing
            return [30.0]
        return good(asked)

    with serving(interrupting) as server:
        options = ["load", "--target", f"a={server.url},model=m", "--levels", "1,2,3", "--requests", "6"]
        process.append(
            subprocess.Popen([sys.executable, "-m", "sluicegate.race", *options], env=ENVIRONMENT, cwd=place)
        )
        assert process[0].wait(60) == 130
        before, kept = len(texts), load(place / "load.json")
        assert [point["whole"] for point in kept["points"]] == [True, False]
        assert run(monkeypatch, *options) == 2
        assert run(monkeypatch, *options, "--resume", "--hourly", 3) == 2
        assert run(monkeypatch, *options, "--resume", "--overwrite") == 2
        assert run(monkeypatch, *options, "--resume") == 0
        sent = len(texts)
        assert run(monkeypatch, *options, "--resume") == 0
    assert len(texts) == sent == before + 1 + 12
    assert len(set(texts)) == len(texts)
    document = load(place / "load.json")
    assert [(point["concurrency"], point["requests"]) for point in document["points"]] == [(1, 6), (2, 6), (3, 6)]
    assert document["points"][0] == kept["points"][0]
    assert document["finished"]


@pytest.mark.parametrize(
    "options",
    [
        "--hourly 1e308",
        "--against 1e-300",
        "--rates 1e-9",
        "--rates 1e308",
        "--timeout 1e300",
        "--levels ,",
        "--limit-speed inf",
    ],
)
def test_numbers_that_mean_nothing_are_refused_by_the_parser(
    options: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit) as stopped:
        run(monkeypatch, "load", "--target", "a=http://h/v1,model=m", *options.split())
    assert stopped.value.code == 2
    assert list(place.iterdir()) == []


def test_fewer_requests_than_should_be_in_flight_are_refused(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "load --target a=http://h/v1,model=m --levels 8 --requests 7"
    assert run(monkeypatch, *words.split()) == 2
    assert "never be 8 in flight" in capsys.readouterr().err
    assert list(place.iterdir()) == []
