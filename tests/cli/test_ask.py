"""`sluicegate ask` against servers that answer oddly: a whole answer or one line that says what is wrong."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from sluicegate.cli.ask import ask
from sluicegate.cli.stack import CliError
from tests.cli.odd_server import DONE, END, answering, event

KEY = "the-key-of-this-test"


def asked(url: str) -> int:
    return ask(url, "m", KEY, "why?", 7)


def test_a_whole_answer_is_printed_with_the_servers_own_count(capsys: pytest.CaptureFixture[str]) -> None:
    usage = event(usage={"completion_tokens": 3})
    with answering(200, event("a") + ": a comment\n\n" + event("b") + END + usage + DONE) as (url, seen):
        assert asked(url) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("ab\n[3 tokens")
    path, headers, body = seen[0]
    assert (path, headers["Authorization"]) == ("/v1/chat/completions", f"Bearer {KEY}")
    assert (body["max_tokens"], body["stream"], body["stream_options"]) == (7, True, {"include_usage": True})


def test_reasoning_counts_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    thought = 'data: {"choices": [{"delta": {"reasoning_content": "hm"}, "finish_reason": "length"}]}\n\n'
    with answering(200, thought + DONE) as (url, _):
        assert asked(url) == 0
    assert capsys.readouterr().out.startswith("hm\n")


@pytest.mark.parametrize("usage", ["", event(usage=None), event(usage=[1]), event(usage={"completion_tokens": "3"})])
def test_a_server_that_does_not_count_is_said_to_not_count(usage: str, capsys: pytest.CaptureFixture[str]) -> None:
    with answering(200, event("a") + END + usage + DONE) as (url, _):
        assert asked(url) == 0
    assert "[tokens not counted by the server, first after" in capsys.readouterr().out


ODD = {
    "wrong key": (401, "", "answered 401: run `sluicegate status`"),
    "held too long": (503, "try\nlater", "answered 503: try later: run `sluicegate status`"),
    "a page": (502, "<html>\n<body>" + "x" * 999, "answered 502: <html> <body>x"),
    "nothing": (200, "", "without a token: run `sluicegate logs`"),
    "only the end": (200, DONE, "without a token"),
    "only a finish": (200, END + DONE, "without a token"),
    "an error": (200, event("a") + event(error={"message": "out of\nmemory"}), "an error in the answer: "),
    "not JSON": (200, "data: {no\n\n", "not an event of the OpenAI API in the answer: {no"),
    "a list": (200, "data: [1]\n\n", "not an event of the OpenAI API in the answer: [1]"),
    "odd choices": (200, 'data: {"choices": [7]}\n\n', "not an event of the OpenAI API"),
    "choices that are none": (200, 'data: {"choices": 7}\n\n', "not an event of the OpenAI API"),
    "an odd delta": (200, 'data: {"choices": [{"delta": "x"}]}\n\n', "without a token"),
    "cut, with the usual end": (200, event("a") + DONE, "ended its answer in the middle"),
    "cut": (200, event("a"), "ended its answer in the middle"),
}


@pytest.mark.parametrize("case", list(ODD))
def test_anything_but_a_whole_answer_is_one_line_that_says_what_to_do(case: str) -> None:
    status, body, said = ODD[case]
    with answering(status, body) as (url, _), pytest.raises(CliError) as caught:
        asked(url)
    text = str(caught.value)
    assert said in text
    assert "run `sluicegate " in text
    assert text.isprintable()
    assert len(text) < 500


def test_a_connection_that_breaks_in_the_middle_is_one_line() -> None:
    with answering(200, event("a"), Content_Length="9999") as (url, _), pytest.raises(CliError) as caught:
        asked(url)
    assert "run `sluicegate status`" in str(caught.value)
    assert str(caught.value).isprintable()


def test_nobody_listening_is_one_line() -> None:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        with pytest.raises(CliError, match=r"does not answer .*run `sluicegate status`") as caught:
            asked(f"http://127.0.0.1:{s.getsockname()[1]}")
    assert str(caught.value).isprintable()
    assert KEY not in str(caught.value)


def test_a_redirect_is_not_followed_with_the_key() -> None:
    with (
        answering(200, event("a") + END + DONE) as (other, elsewhere),
        answering(307, "", Location=f"{other}/v1/chat/completions") as (url, _),
    ):
        with pytest.raises(CliError, match="answered 307"):
            asked(url)
        assert elsewhere == []


def test_neither_a_proxy_nor_a_login_file_gets_between_us_and_loopback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("default login someone password else\n")
    monkeypatch.setenv("NETRC", str(netrc))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with answering(200, event("a") + END + DONE) as (url, seen):
        assert asked(url) == 0
    assert seen[0][1]["Authorization"] == f"Bearer {KEY}"
