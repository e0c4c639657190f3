"""Reading what engines print: Prometheus samples and event streams, from well made to garbage."""

from __future__ import annotations

import json
import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.provider.host.completion import Completion, take_line
from sluicegate.provider.host.engine_http import Unanswered, samples

NAMES = st.from_regex(r"[a-zA-Z_:][a-zA-Z0-9_:]*", fullmatch=True)
VALUES = st.floats(allow_nan=False, allow_infinity=False)


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


@given(
    NAMES,
    st.lists(st.tuples(st.dictionaries(NAMES, st.text(), max_size=3), VALUES), min_size=1, max_size=5),
    st.sampled_from(["", " 1700000000000"]),
)
def test_a_samples_value_is_read_whatever_its_labels_hold_and_summed_over_them(
    name: str, rows: list[tuple[dict[str, str], float]], timestamp: str
) -> None:
    text = f"# HELP {name} words\n# TYPE {name} counter\n\n"
    for labels, value in rows:
        inner = ",".join(f'{key}="{escaped(label)}"' for key, label in labels.items())
        text += f"{name}{{{inner}}} {value!r}{timestamp}\n" if labels else f"{name} {value!r}{timestamp}\n"
    total = 0.0
    for _, value in rows:
        total += value
    assert samples(text) == {name: total}


@given(st.text())
def test_no_text_breaks_the_reader_of_samples(text: str) -> None:
    assert all(math.isfinite(v) or v for v in samples(text).values())


@pytest.mark.parametrize(
    ("line", "expected"),
    [("a NaN", {}), ("a +Inf", {}), ("a", {}), ("a one", {}), ("1a 1", {}), ('a{b="c" 1', {}), ("a\t2", {"a": 2})],
)
def test_what_is_no_finite_number_is_left_out(line: str, expected: dict[str, float]) -> None:
    assert samples(f"{line}\nb 1\n") == expected | {"b": 1}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "choices", "delta", "content", "usage", "model", "finish_reason", "reasoning"])
            | st.text(),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_a_chunk_of_any_shape_is_taken_or_refused_plainly(value: object) -> None:
    seen = Completion()
    with suppress(Unanswered):
        take_line(seen, b"data: " + json.dumps(value).encode() + b"\n", 1.0)
    assert seen.completion_tokens is None or isinstance(seen.completion_tokens, int)
    assert isinstance(seen.text, str)


@given(st.binary())
def test_a_line_of_any_bytes_is_taken_or_refused_plainly(line: bytes) -> None:
    with suppress(Unanswered):
        take_line(Completion(), line, 1.0)


@given(st.lists(st.text(min_size=1), max_size=10), st.sampled_from([b"\n", b"\r\n"]), st.sampled_from([b"", b" "]))
def test_the_text_is_the_sum_of_its_chunks(words: list[str], end: bytes, space: bytes) -> None:
    seen = Completion()
    for word in words:
        take_line(seen, b"data:" + space + json.dumps({"choices": [{"delta": {"content": word}}]}).encode() + end, 1.0)
        take_line(seen, b": a comment" + end, 1.0)
    take_line(seen, b"data: [DONE]" + end, 1.0)
    assert (seen.text, seen.chunks, seen.done) == ("".join(words), len(words), True)
