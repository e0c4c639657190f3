"""The provider race against a fake OpenRouter on loopback. Cannot prove that the real one behaves as its docs say."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from sluicegate.race import run
from sluicegate.race.__main__ import main
from sluicegate.race.openrouter import pick, pinned, provider_targets
from tests.race.servers import Router, events, refuse, serving, stream


def endpoint(provider: str, tag: str, **more: Any) -> dict[str, Any]:
    return {
        "provider_name": provider,
        "tag": tag,
        "quantization": "fp8",
        "pricing": {"prompt": "0.0000005", "completion": "0.0000025"},
        "supported_parameters": ["max_tokens", "temperature", "top_p", "reasoning"],
        "throughput_last_30m": {"p50": 142.0, "p90": 90.0},
    } | more


LISTED = [
    endpoint("Cerebras", "cerebras/fp16", quantization="fp16", throughput_last_30m={"p50": 532}),
    endpoint("ModelRun", "modelrun/fp4", quantization="fp4"),
    endpoint("ModelRun", "modelrun/turbo", quantization="unknown", throughput_last_30m=None, pricing={}),
    endpoint("Parasail", "parasail/fp8", supported_parameters=["max_tokens", "temperature", "top_p"]),
]


def good(provider: str) -> Iterable[bytes | float | None]:
    return stream(b": OPENROUTER PROCESSING\n\n", *events(n=9, provider=provider), pause=0.0)


def test_a_name_stands_for_all_endpoints_of_a_provider_and_a_tag_for_one() -> None:
    assert [e["tag"] for e in pick(LISTED, "modelrun")] == ["modelrun/fp4", "modelrun/turbo"]
    assert [e["tag"] for e in pick(LISTED, "ModelRun/Turbo")] == ["modelrun/turbo"]
    assert pick(LISTED, "model") == []


def test_a_pinned_target_lets_nobody_else_answer_and_carries_what_is_published() -> None:
    target = pinned(LISTED[0], "maker/model", "k")
    route = {
        "order": ["cerebras/fp16"],
        "only": ["cerebras/fp16"],
        "allow_fallbacks": False,
        "require_parameters": True,
    }
    body = target.body("hello", {"max_tokens": 9, "temperature": 0.7, "top_p": 0.8})
    assert body["provider"] == route
    assert body["reasoning"] == {"enabled": False}
    assert "chat_template_kwargs" not in body
    assert (target.provider, target.precision, target.hardware) == ("Cerebras", "fp16", "wafer-scale chip")
    assert (target.price, target.published_tok_s, target.own) == (2.5, 532.0, False)


def test_what_the_list_does_not_know_is_unknown() -> None:
    target = pinned(LISTED[2], "maker/model", "k")
    assert (target.precision, target.hardware, target.price, target.published_tok_s) == (None, None, None, None)


@pytest.mark.parametrize("price", ["-1", "NaN", "1e400", "free", None, [], 10**400])
def test_a_price_or_speed_that_can_be_none_is_unknown(price: Any) -> None:
    target = pinned(endpoint("X", "x", pricing={"completion": price}, throughput_last_30m={"p50": price}), "m/m", "k")
    assert (target.price, target.published_tok_s) == (None, None)
    assert pinned(endpoint("X", "x", pricing={"completion": "0"}), "m/m", "k").price == 0


def test_an_endpoint_that_takes_no_word_on_thinking_is_not_sent_one_and_noted() -> None:
    target = pinned(LISTED[3], "maker/model", "k")
    assert "reasoning" not in target.body("x", {"max_tokens": 9, "temperature": 0.7, "top_p": 0.8})
    assert target.note


def test_all_of_the_list_a_name_not_in_it_and_no_list_at_all() -> None:
    with serving(Router(LISTED, {})) as server:
        everyone = provider_targets("maker/model", "all", "right-key", server.url)
        mixed = provider_targets("maker/model", "Cerebras,Nobody", "right-key", server.url)
        refused = provider_targets("maker/model", "Cerebras", "wrong-key", server.url)
        LISTED.append(endpoint("", "nameless"))
        assert len(provider_targets("maker/model", "all", "right-key", server.url)) == len(everyone)
        LISTED.pop()
        unknown = provider_targets("maker/other", "all", "right-key", server.url)
    assert [t.name for t in everyone] == [
        "Cerebras",
        "ModelRun (modelrun/fp4)",
        "ModelRun (modelrun/turbo)",
        "Parasail",
    ]
    assert mixed[0].unusable is None
    assert "Cerebras, ModelRun, ModelRun, Parasail".replace("ModelRun, ModelRun", "ModelRun") in str(mixed[1].unusable)
    assert "401" in str(refused[0].unusable)
    assert "wrong-key" not in str(refused[0].unusable)
    assert "no such model" in str(unknown[0].unusable)
    gone = provider_targets("maker/model", "A,B", "right-key", server.url)
    assert ["refused" in str(t.unusable) for t in gone] == [True, True]


@pytest.mark.parametrize(
    "answer",
    [
        b"{}",
        b'{"data": {"endpoints": [{}]}}',
        b'{"data": {"endpoints": [[]]}}',
        b'{"data": {"endpoints": [{"tag": 5, "provider_name": "x"}]}}',
        b"[]",
        b"nope",
        b"[" * 100_000,
    ],
)
def test_a_list_in_another_form_is_said_to_be_one(answer: bytes) -> None:
    wire = [b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(answer), answer)]
    with serving(lambda _: wire) as server:
        (target,) = provider_targets("maker/model", "all", "k", server.url)
    assert "not in the form" in str(target.unusable)


def test_a_race_of_providers_keeps_to_the_pinned_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "PAUSE_S", 0.01)
    monkeypatch.setenv("OPENROUTER_API_KEY", "right-key")
    monkeypatch.setenv("COLUMNS", "250")
    choices = [{"delta": {"content": ""}, "finish_reason": "error"}]
    failed = {"error": {"code": 502, "message": "upstream died"}, "choices": choices}
    broken = b"data: " + json.dumps(failed).encode() + b"\n\n"
    router = Router(
        LISTED,
        {
            "cerebras/fp16": lambda n: (
                refuse("429 Limit", {"code": 429, "message": "rate"}, "retry-after: 0") if n == 2 else good("Cerebras")
            ),
            "modelrun/fp4": lambda n: good("ModelRun") if n != 3 else good("Elsewhere"),
            "modelrun/turbo": lambda _: refuse(
                "404 None", {"code": 404, "message": "No endpoints found that can handle the requested parameters."}
            ),
            "parasail/fp8": lambda n: good("Parasail") if n == 1 else stream(*events(provider="Parasail")[:2], broken),
        },
    )
    path = tmp_path / "race.json"
    with serving(router) as server:
        options = f"race --openrouter maker/model --providers all --openrouter-url {server.url} --rounds 1"
        monkeypatch.setattr("sys.argv", ["race", *options.split(), "--json", str(path)])
        assert main() == 1
    found = {t["name"]: t for t in json.loads(path.read_text())["targets"]}
    assert [row["error"] for row in found["Cerebras"]["requests"]] == [None] * 6
    assert sum(row["tries"] for row in found["Cerebras"]["requests"]) == 7
    assert {row["provider"] for row in found["Cerebras"]["requests"]} == {"Cerebras"}
    errors = [row["error"] for row in found["ModelRun (modelrun/fp4)"]["requests"]]
    assert errors.count(None) == 5
    assert "answered by Elsewhere, not by ModelRun" in errors
    assert "No endpoints found" in found["ModelRun (modelrun/turbo)"]["error"]
    assert {row["error"] for row in found["Parasail"]["requests"]} == {"error in the stream: upstream died (502)"}
    shown = capsys.readouterr().out
    assert "another definition" in shown
    assert "wafer-scale chip" in shown
    assert "right-key" not in path.read_text() + shown
