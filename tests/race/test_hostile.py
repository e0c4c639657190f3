"""What a careless or a hostile hand gives the commands: files of another make, terminals that are gone, ^C, servers
that send nonsense. Each must end as one sentence and an exit code, and never cost what was measured."""

from __future__ import annotations

import copy
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sluicegate.race.__main__ import main
from sluicegate.race.load_table import load_table
from sluicegate.race.race_command import _left
from sluicegate.race.report import _load as load_part
from sluicegate.race.report import _race as race_part
from sluicegate.race.results import claimed, load
from sluicegate.race.summary import summarise
from sluicegate.race.table import Column, race_table, render, wide
from tests.race.servers import SSE, Asked, chunk, events, refuse, serving, stream

EXAMPLES = Path(__file__).with_name("examples")
ROOT = Path(__file__).parents[2]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}
Wire = Iterable[bytes | float | None]


def run(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    monkeypatch.setattr("sys.argv", ["race", *map(str, words)])
    return main()


def good(_: Asked) -> Wire:
    return stream(*events())


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


@pytest.mark.parametrize("closed", ["stdout", "stderr", "both"])
def test_an_output_that_is_closed_or_whose_reader_left_costs_nothing(closed: str, place: Path) -> None:
    with serving(good) as server:
        words = f"{sys.executable} -m sluicegate.race race --target a={server.url},model=m --rounds 1 --overwrite"
        for redirect in (
            {"stdout": ">&-", "stderr": "2>&-", "both": ">&- 2>&-"}[closed],
            {"stdout": "| true", "stderr": "2>&1 >/dev/null | true", "both": "2>&1 | true"}[closed],
        ):
            shell = ["bash", "-c", f"{words} {redirect}; exit ${{PIPESTATUS[0]}}"]
            done = subprocess.run(shell, env=ENVIRONMENT, cwd=place, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            assert "Traceback" not in done.stderr
            assert "Exception" not in done.stderr
            assert load(place / "race-final.json")["finished"]


def test_a_full_disk_is_said_with_the_file_the_user_named(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(good) as server:
        options = ["--target", f"a={server.url},model=m", "--rounds", 1, "--csv", "/dev/full"]
        assert run(monkeypatch, "race", *options) == 2
    shown = capsys.readouterr()
    assert shown.err.splitlines()[-1] == "sluicegate: /dev/full: No space left on device"
    assert "6/6" in shown.out
    assert load(place / "race-final.json")["finished"]


def nonsense(text: Any) -> list[bytes]:
    """An answer whose server puts `text` wherever it may put one."""
    event = {"model": text, "provider": text, "choices": [{"delta": {"content": "x"}, "finish_reason": text}]}
    usage = {"choices": [], "usage": dict.fromkeys(("completion_tokens", "prompt_tokens"), text)}
    made = [b"data: " + json.dumps(each).encode() + b"\n\n" for each in (event, event, usage)]
    return [*made, b"data: [DONE]\n\n"]


BAD_ANSWERS: dict[str, Callable[[], Wire]] = {
    "half a surrogate pair": lambda: stream(*nonsense("\ud800")),
    "a count of 400 digits": lambda: stream(*nonsense(10**400)),
    "a name of a megabyte": lambda: stream(*nonsense("n" * 2**20)),
    "an error that is no text": lambda: refuse("500 No", {"message": "\udfff\x1b[31m", "code": [10**400]}),
    "a wait of 400 digits": lambda: refuse("429 No", "busy", "retry-after: " + "9" * 400),
    "a redirect of 60 KB": lambda: [b"HTTP/1.1 302 x\r\nlocation: " + b"a" * 60_000 + b"\r\ncontent-length: 0\r\n\r\n"],
    "a type of 60 KB": lambda: [b"HTTP/1.1 200 x\r\ncontent-type: " + b"a" * 60_000 + b"\r\ncontent-length: 0\r\n\r\n"],
    "wrong key": lambda: refuse("401 No", {"message": "Incorrect API key"}),
    "wrong model": lambda: refuse("404 No", {"message": "The model does not exist"}),
    "a line of 5 MB": lambda: stream(b"data: " + b"x" * 5_000_000 + b"\n\n"),
    "invalid UTF-8": lambda: stream(b'data: {"choices": "\xff"}\n\n'),
    "gzip": lambda: [SSE + b"content-encoding: gzip\r\ncontent-length: 2\r\n\r\n\x1f\x8b"],
    "an HTTP/1.0 cut": lambda: [b"HTTP/1.0 200 OK\r\ncontent-type: text/event-stream\r\n\r\n", events()[0], None],
    "an odd chunk": lambda: [SSE + b"transfer-encoding: chunked\r\n\r\n", b"-1\r\nx\r\n", None],
    "no end": lambda: [SSE + b"transfer-encoding: chunked\r\n\r\n", *[chunk(events()[0]), 0.05] * 400],
    "nothing": lambda: [None],
}


def test_whatever_a_server_sends_is_its_own_row_and_the_others_go_on(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def answer(asked: Asked) -> Wire:
        return good(asked) if asked.body["model"] == "good" else list(BAD_ANSWERS.values())[int(asked.body["model"])]()

    with serving(answer) as server:
        plain, tls = server.url, server.url.replace("http:", "https:")
        options = ["--target", f"good={plain},model=good", "--target", f"no TLS={tls},model=good"]
        options += ["--target", "unreachable=http://127.0.0.1:1/v1,model=m"]
        for number, name in enumerate(BAD_ANSWERS):
            options += ["--target", f"{name}={plain},model={number}"]
        (place / "p.json").write_text('{"a": "x", "b\ud800": "y \udfff"}'.encode("ascii", "backslashreplace").decode())
        files = ["--prompts", "p.json", "--csv", "r.csv", "--rounds", 2, "--timeout", 1, "--concurrency", 8]
        assert run(monkeypatch, "race", *options, *files) == 1
    capsys.readouterr()
    found = {target["name"]: target for target in load(place / "race-final.json")["targets"]}
    assert found.pop("good")["summary"]["requests"] == 4
    assert found.keys() == {"no TLS", "unreachable", *BAD_ANSWERS}
    counts = found.pop("a count of 400 digits")
    assert counts["summary"]["output_speed"] is None
    for name in ("half a surrogate pair", "a name of a megabyte"):
        assert len(json.dumps(found.pop(name))) < 20_000
    for name, target in found.items():
        assert target["summary"]["requests"] == 0, name
        assert target["error"], name
        assert len(target["error"]) < 400, name
    assert run(monkeypatch, "report", "race-final.json", "--html", "p.html") == 0


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
        kept = load(place / "load.json")
        assert [point["whole"] for point in kept["points"]] == [True, False]
        assert run(monkeypatch, *options) == 2
        assert run(monkeypatch, *options, "--resume", "--hourly", 3) == 2
        assert run(monkeypatch, *options, "--resume", "--overwrite") == 2
        assert run(monkeypatch, *options, "--resume") == 0
        sent = len(texts)
        assert run(monkeypatch, *options, "--resume") == 0
    assert len(texts) == sent == 12 + 1 + 12
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
