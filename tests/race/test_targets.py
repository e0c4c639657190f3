"""Whom to ask and how: the --target option, the request's bytes, the salt, the prompts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sluicegate.race.exchange import Origin
from sluicegate.race.prompts import load_prompts, salted
from sluicegate.race.targets import Target, parse_target

SETTINGS = {"max_tokens": 512, "temperature": 0.7, "top_p": 0.8, "timeout_s": 1.0}


def test_a_target_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "secret-1")
    target = parse_target(
        "H100=https://h.example/v1,model=a/b,key-env=A_KEY,precision=fp8,hardware=1x H100,hourly=4.5,chunk-usage=yes"
    )
    assert (target.name, target.model, target.key, target.precision) == ("H100", "a/b", "secret-1", "fp8")
    assert (target.hardware, target.hourly, target.price, target.chunk_usage) == ("1x H100", 4.5, None, True)
    assert target.address() == ("h.example", 443, True, "/v1/chat/completions")
    assert "secret-1" not in repr(target)
    assert target.mask("bad key secret-1!") == "bad key ***!"


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("http://x/v1", "needs NAME=URL"),
        ("a=http://x/v1", "needs NAME=URL"),
        ("=http://x/v1,model=m", "needs NAME=URL"),
        ("a=http://x/v1,model=m,colour=red", "colour"),
        ("a=http://x/v1,model=m,model=n", "each once"),
        ("a=ftp://x/v1,model=m", "base URL"),
        ("a=http://user:pw@x/v1,model=m", "base URL"),
        ("a=http://x/v1?key=1,model=m", "base URL"),
        ("a=http://,model=m", "base URL"),
        ("a=http://x:99999/v1,model=m", "[Pp]ort"),
        ("a=http://x/v 1,model=m", "ASCII"),
        ("a=http://x/v1,model=m,hourly=free", "no price"),
        ("a=http://x/v1,model=m,price=-1", "no price"),
        ("a=http://x/v1,model=m,price=nan", "no price"),
        ("a=http://x/v1,model=m,thinking=hard", "thinking"),
        ("a=http://x/v1,model=m,chunk-usage=maybe", "yes or no"),
        ("a=http://x/v1,model=m,key-env=NOT_SET_ANYWHERE", "not set"),
        ("a=http://x/v1,model=m,key-env=TWO_LINES", "no header may"),
    ],
)
def test_a_bad_target_is_refused_with_its_reason(spec: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWO_LINES", "a\r\nX-Evil: 1")
    with pytest.raises(ValueError, match=why) as refused:
        parse_target(spec)
    assert "pw" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "host", "path"),
    [
        ("http://h:8000", "h:8000", "/v1/chat/completions"),
        ("https://h/api/v1/", "h", "/api/v1/chat/completions"),
        ("http://[::1]:80/v1", "[::1]", "/v1/chat/completions"),
        ("https://h:80", "h:80", "/v1/chat/completions"),
    ],
)
def test_the_request_names_its_host_and_path(url: str, host: str, path: str) -> None:
    call = Target("a", url, "m", "k").call(Origin("h", 1, False, (), 0.0), "hello", SETTINGS)
    head, _, body = call.request.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == f"POST {path} HTTP/1.1"
    assert f"Host: {host}" in lines
    assert "Authorization: Bearer k" in lines
    assert f"Content-Length: {len(body)}" in lines
    assert json.loads(body)["stream_options"] == {"include_usage": True}


def test_everyone_is_asked_alike_and_thinking_is_off_in_each_dialect() -> None:
    bodies = {
        t: Target("a", "http://h", "m", thinking=t).body("hello", SETTINGS)
        for t in ("template", "reasoning", "unasked")
    }
    for body in bodies.values():
        assert (body["temperature"], body["top_p"], body["max_tokens"], body["stream"]) == (0.7, 0.8, 512, True)
    assert bodies["template"]["chat_template_kwargs"] == {"enable_thinking": False}
    assert bodies["reasoning"]["reasoning"] == {"enabled": False}
    assert Target("a", "http://h", "m", chunk_usage=True).body("x", SETTINGS)["stream_options"][
        "continuous_usage_stats"
    ]


def test_the_built_in_prompts_are_six_of_the_seeds_kinds() -> None:
    assert list(load_prompts()) == ["code", "writing", "summary", "comparison", "email", "explanation"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"a": 1}', '{"a": "  "}', "\xff"])
def test_a_bad_prompts_file_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=r"p\.json"):
        load_prompts(tmp_path / "p.json")


def test_a_salt_makes_every_prompt_s_beginning_its_own_and_no_salt_changes_nothing() -> None:
    texts = {salted("same", "s", target, round_) for target in "ab" for round_ in range(4)}
    assert len({text.split("\n")[0] for text in texts}) == 8
    assert len({len(text) for text in texts}) == 1
    assert salted("same", "s", 1) == salted("same", "s", 1) != salted("same", "t", 1)
    assert salted("same", None, 1) == "same"
