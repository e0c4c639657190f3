"""Outputs that are gone, full disks, servers that send nonsense: each is one sentence, and costs no measured figure."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from sluicegate.race.results import load
from tests.race.asking import ENVIRONMENT, run
from tests.race.servers import SSE, Asked, chunk, events, refuse, serving, stream

Wire = Iterable[bytes | float | None]


def good(_: Asked) -> Wire:
    return stream(*events())


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


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
