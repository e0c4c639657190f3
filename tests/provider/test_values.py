"""The codec between Pulumi's structs and plain values: nothing is lost, and nothing secret leaves in clear."""

from __future__ import annotations

import math
from typing import Any

import pytest
from google.protobuf import json_format, struct_pb2
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.provider.values import (
    OUTPUT,
    SECRET,
    SIG,
    UNKNOWN,
    UNKNOWN_TEXTS,
    decode,
    encode,
    known,
    secret_names,
    secret_texts,
)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8).filter(lambda t: t not in UNKNOWN_TEXTS)
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts.filter(lambda k: k != SIG), inner, max_size=3),
    max_leaves=8,
)
structs = st.dictionaries(texts.filter(lambda k: k != SIG), plain, max_size=4)


def struct(values: dict[str, Any]) -> struct_pb2.Struct:
    made = struct_pb2.Struct()
    json_format.ParseDict(values, made)
    return made


def wrapped(value: Any, signature: str = SECRET, **more: Any) -> dict[str, Any]:
    return {SIG: signature, "value": value, **more}


@given(structs)
def test_what_is_encoded_is_decoded_the_same(values: dict[str, Any]) -> None:
    assert decode(encode(values)) == values


@given(structs, st.data())
def test_a_named_secret_is_wrapped_and_comes_back_the_same(values: dict[str, Any], data: st.DataObject) -> None:
    names = data.draw(st.sets(st.sampled_from(sorted(values)))) if values else set()
    made = encode(values, names)
    assert decode(made) == values
    assert secret_names(made) == {name for name in names if values[name] is not None}


@given(plain)
def test_a_secret_is_found_at_any_depth(value: Any) -> None:
    arrived = struct({"a": {"b": [1, wrapped("MARK")]}, "c": value})
    assert decode(arrived)["a"] == {"b": [1, "MARK"]}
    assert secret_names(arrived) == {"a"}
    assert secret_texts(arrived) == {"MARK"}


def test_a_secret_map_gives_all_its_texts_and_an_output_value_may_be_secret() -> None:
    arrived = struct({
        "a": wrapped({"user": "MARK-1", "more": ["MARK-2", 3]}),
        "b": wrapped("MARK-3", OUTPUT, secret=True),
        "c": wrapped("in clear", OUTPUT),
    })  # fmt: skip
    assert decode(arrived) == {"a": {"user": "MARK-1", "more": ["MARK-2", 3]}, "b": "MARK-3", "c": "in clear"}
    assert secret_texts(arrived) == {"MARK-1", "MARK-2", "MARK-3"}
    assert secret_names(arrived) == {"a", "b"}


@pytest.mark.parametrize("text", sorted(UNKNOWN_TEXTS))
def test_every_way_to_say_unknown_is_the_one_unknown(text: str) -> None:
    arrived = struct({"a": {"b": [text]}, "c": wrapped(text), "d": {SIG: OUTPUT}})
    found = decode(arrived)
    assert found["a"]["b"][0] is found["c"] is found["d"] is UNKNOWN
    assert not known(found["a"])
    assert decode(encode(found)) == {"a": {"b": [UNKNOWN]}, "c": UNKNOWN, "d": UNKNOWN}


def test_the_truth_of_an_unknown_cannot_be_asked_for_by_mistake() -> None:
    with pytest.raises(TypeError, match="truth of an unknown"):
        bool(UNKNOWN)


def test_reading_changes_nothing_in_what_arrived() -> None:
    arrived = struct({"a": {SIG: SECRET}, "b": {SIG: OUTPUT}, "c": {"d": 1}})
    before = arrived.SerializeToString(deterministic=True)
    decode(arrived)
    secret_names(arrived)
    secret_texts(arrived)
    assert arrived.SerializeToString(deterministic=True) == before


def test_whole_numbers_are_ints_and_others_stay() -> None:
    found = decode(struct({"a": 1200.0, "b": 0.5, "c": 2**60, "d": 1e300}))
    assert [type(found[key]) for key in "abcd"] == [int, float, int, int]
    assert found["d"] == int(1e300)
    nan = decode(encode({"a": math.nan, "b": math.inf}))
    assert math.isnan(nan["a"])
    assert nan["b"] == math.inf


def test_true_is_not_one() -> None:
    assert decode(encode({"a": True, "b": 1})) == {"a": True, "b": 1}
    assert decode(encode({"a": True}))["a"] is True
