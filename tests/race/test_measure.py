"""Streams of known times into figures: every odd stream, and the pairs that may never be."""

from __future__ import annotations

import json
from array import array
from typing import Any

import pytest

from sluicegate.race.exchange import Call, Exchange, Origin
from sluicegate.race.http1 import Response
from sluicegate.race.measure import ImpossibleError, Measurement, _check, measure

START = 100.0


def streamed(*events: tuple[float, dict[str, Any] | str]) -> Exchange:
    """An exchange whose events came at the given times in milliseconds after the send."""
    response = Response(1 << 20)
    response.status, response.headers = 200, {"content-type": "text/event-stream"}
    response.first_byte_at = response.headers_at = START + 0.001
    response.ends, response.stamps, response.complete = array("Q"), array("d"), True
    for at, event in events:
        response.body += b"data: " + (event if isinstance(event, str) else json.dumps(event)).encode() + b"\n\n"
        response.ends.append(len(response.body))
        response.stamps.append(START + at / 1000)
    call = Call(Origin("x", 1, False, (), 0.0), b"", 1, 1.0)
    exchange = Exchange(call, START - 0.01, connected=START - 0.005, started=START, sent=START, response=response)
    exchange.ended = START + 99
    return exchange


def text(content: str = "x", finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"delta": {"content": content}, "finish_reason": finish}]} | more


def thought(key: str) -> dict[str, Any]:
    return {"choices": [{"delta": {key: "hm"}}]}


def usage(n: Any, **more: Any) -> dict[str, Any]:
    return {"choices": [], "usage": {"completion_tokens": n} | more}


def so_far(n: int) -> dict[str, Any]:
    return {"usage": {"completion_tokens": n}}


STOP = (1000.0, text("", "stop"))
DONE = (1000.0, "[DONE]")


def test_speed_is_the_tokens_after_the_first_over_first_to_last_whatever_the_chunks() -> None:
    row = measure(streamed((100, text()), (600, text()), (1000, text()), STOP, (1150, usage(91)), (1150, "[DONE]")))
    assert row.error is None
    assert row.ttft_ms == pytest.approx(100)
    assert row.output_speed == pytest.approx(90 / 0.9)
    assert (row.chunks, row.completion_tokens) == (3, 91)
    assert row.longest_gap_ms == pytest.approx(500)
    assert row.usage_ms == pytest.approx(1150)
    assert row.connect_ms == pytest.approx(5)
    assert row.unbiased_speed is None
    assert row.peak_speed is None


def test_an_early_role_an_empty_delta_and_a_late_usage_move_nothing() -> None:
    role = {"choices": [{"delta": {"role": "assistant", "content": ""}}]}
    row = measure(
        streamed((40, role), (100, text()), (500, text("")), (1000, text()), STOP, (3000, usage(11)), (3000, "[DONE]"))
    )
    assert row.role_ms == pytest.approx(40)
    assert row.ttft_ms == pytest.approx(100)
    assert row.last_token_ms == pytest.approx(1000)
    assert row.output_speed == pytest.approx(10 / 0.9)


@pytest.mark.parametrize("key", ["reasoning", "reasoning_content"])
def test_thought_starts_the_clock_and_the_answer_has_its_own_time(key: str) -> None:
    row = measure(streamed((100, thought(key)), (700, text()), (1000, text()), STOP, (1000, usage(10)), DONE))
    assert row.first_reasoning_ms == pytest.approx(100)
    assert row.ttft_ms == pytest.approx(100)
    assert row.first_answer_ms == pytest.approx(700)


def test_hidden_thought_leaves_no_speed_for_its_tokens_are_in_the_count_only() -> None:
    hidden = usage(400, completion_tokens_details={"reasoning_tokens": 390})
    row = measure(streamed((900, text()), (1000, text()), STOP, (1000, hidden), DONE))
    assert row.error is None
    assert row.reasoning_tokens == 390
    assert row.output_speed is None


@pytest.mark.parametrize("told", [None, "12", 1, 0, True, -4, 1.5])
def test_without_a_usable_count_there_is_no_speed_and_chunks_are_never_taken_for_tokens(told: Any) -> None:
    row = measure(streamed((100, text()), (1000, text()), STOP, (1000, usage(told)), DONE))
    assert row.error is None
    assert row.output_speed is None


def test_all_text_in_one_chunk_has_no_speed() -> None:
    row = measure(streamed((1000, text("all of it")), STOP, (1000, usage(50)), DONE))
    assert row.error is None
    assert row.output_speed is None


def test_tokens_told_per_chunk_give_the_unbiased_form_and_a_peak_over_whole_seconds() -> None:
    marks = ((100, 5), (1000, 15), (2000, 75), (3100, 80))
    row = measure(
        streamed(
            *((at, text(**so_far(n))) for at, n in marks), (3100, text("", "stop")), (3100, usage(80)), (3100, "[DONE]")
        )
    )
    assert row.first_chunk_tokens == 5
    assert row.output_speed == pytest.approx(79 / 3)
    assert row.unbiased_speed == pytest.approx(75 / 3)
    assert row.peak_speed == pytest.approx(60)


@pytest.mark.parametrize("counts", [(5, None, 20), (9, 5, 20), (0, 10, 20), (20, 20, 20), (5, 10, 30)])
def test_counts_that_cannot_be_per_chunk_are_not_used_as_such(counts: tuple[int | None, ...]) -> None:
    marks = [(100.0 * i, text(**({} if n is None else so_far(n)))) for i, n in enumerate(counts, 1)]
    row = measure(streamed(*marks, STOP, (1000, usage(20)), DONE))
    assert row.error is None
    assert row.unbiased_speed is None
    assert row.peak_speed is None


@pytest.mark.parametrize(
    ("names", "error"),
    [
        (["Pinned", "pinned"], None),
        (["Other", "Other"], "answered by Other, not by Pinned"),
        (["Pinned", "Other"], "answered by Other, Pinned, not by Pinned"),
        ([], "answered by a provider it does not name, not by Pinned"),
    ],
)
def test_the_provider_in_the_answer_is_checked(names: list[str], error: str | None) -> None:
    marks = [(100.0 * i, text(provider=name)) for i, name in enumerate(names, 1)] or [(100.0, text())]
    row = measure(streamed(*marks, (900, text()), STOP, (1000, usage(20)), DONE), "Pinned")
    assert row.error == error


def test_cached_prompt_tokens_are_told() -> None:
    row = measure(
        streamed(
            (100, text()), STOP, (1000, usage(9, prompt_tokens=30, prompt_tokens_details={"cached_tokens": 16})), DONE
        )
    )
    assert (row.prompt_tokens, row.cached_tokens) == (30, 16)


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"choices": None},
        {"choices": [None]},
        {"choices": [{"delta": None}]},
        {"choices": [{"delta": {"content": 5}}], "usage": []},
    ],
)
def test_events_of_no_known_shape_break_nothing(odd: dict[str, Any]) -> None:
    assert measure(streamed((50, odd), (100, text()), (900, text()), STOP, (1000, usage(9)), DONE)).error is None


@pytest.mark.parametrize(
    "row",
    [
        Measurement(ttft_ms=10, first_answer_ms=9),
        Measurement(ttft_ms=10, last_token_ms=9),
        Measurement(first_byte_ms=10, ttft_ms=9),
        Measurement(unbiased_speed=200, peak_speed=52),
        Measurement(unbiased_speed=200, output_speed=199),
    ],
)
def test_an_impossible_pair_is_a_bug_not_a_row(row: Measurement) -> None:
    with pytest.raises(ImpossibleError):
        _check(row)


def test_a_row_of_json_has_the_names_a_result_promises() -> None:
    promised = {"ttft_ms", "first_answer_ms", "output_speed", "completion_tokens", "chunks", "longest_gap_ms", "error"}
    assert promised <= Measurement().as_json().keys()
    assert set(Measurement().as_json().values()) == {None, False}
