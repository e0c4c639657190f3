"""Which leaves differ, by which path, and whether that replaces: the rules of Diff."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pulumi.runtime.proto import provider_pb2

from sluicegate.provider.answers import diff_response
from sluicegate.provider.resource import Change, carry, compare, leaves
from sluicegate.provider.values import UNKNOWN, known
from tests.provider.resource_cases import BY_NAME, INPUTS, OUTPUTS
from tests.provider.test_values import plain

Kind = provider_pb2.PropertyDiff


@given(plain)
def test_equal_values_make_no_change(value: Any) -> None:
    assert leaves(value, value, "a", replace=True) == []


@given(plain, plain)
def test_changes_are_found_both_ways_unless_the_values_are_equal_or_absent(a: Any, b: Any) -> None:
    there, back = leaves(a, b, "x"), leaves(b, a, "x")
    assert {c.path for c in there} == {c.path for c in back}
    assert not (there and a == b and repr(a) == repr(b))


unknowns = st.recursive(
    st.just(UNKNOWN) | plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner)
)


@given(plain, unknowns)
def test_what_is_not_known_is_an_update_and_never_replaces(old: Any, new: Any) -> None:
    changes = compare({"a": old}, {"a": new}, (), ("a",))
    if new is UNKNOWN:
        assert [(c.path, c.replace) for c in changes] == [("a", False)]
    for change in changes:
        assert not (change.replace and change.path == "a" and not known(new))


def test_an_unknown_deep_inside_replaces_neither_as_a_change_nor_as_an_addition() -> None:
    assert leaves({"b": 1}, {"b": UNKNOWN}, "a", replace=True) == [Change("a.b")]
    assert compare({}, {"a": {"b": [UNKNOWN]}}, (), ("a",)) == [Change("a", "add")]
    assert compare({}, {"a": {"b": 1}}, (), ("a",)) == [Change("a", "add", replace=True)]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": 1}, {"a": True}, [Change("v.a")]),
        ({"a": 1}, {"a": None}, [Change("v.a")]),
        ({"a": None}, {}, []),
        ({}, {"a": None}, []),
        ({"a": 1}, {}, [Change("v.a", "delete")]),
        ({}, {"a": {"b": 1}}, [Change("v.a", "add")]),
        ([1, 2], [1, 3, 4], [Change("v[1]"), Change("v[2]", "add")]),
        ([1, 2], [1], [Change("v[1]", "delete")]),
        ([{"a": [1]}], [{"a": [2]}], [Change("v[0].a[0]")]),
        ({"a": [1]}, {"a": {"b": 1}}, [Change("v.a")]),
        # As PropertyPath.String of the engine writes them, which is what `--diff` and ignoreChanges are matched by.
        ({"a.b": 1}, {"a.b": 2}, [Change('v["a.b"]')]),
        ({"a[0]": {"c": 1}}, {"a[0]": {"c": 2}}, [Change('v["a[0]"].c')]),
        ({'say "x"': 1}, {'say "x"': 2}, [Change('v["say \\"x\\""]')]),
        ({"a-b": 1}, {"a-b": 2}, [Change('v["a-b"]')]),
        ({"A_1": 1}, {"A_1": 2}, [Change("v.A_1")]),
    ],
)
def test_the_path_of_each_leaf(old: Any, new: Any, expected: list[Change]) -> None:
    assert leaves(old, new, "v") == expected


def test_the_engine_is_told_kind_and_top_level_name_of_each_change() -> None:
    changes = [
        Change("pins.engine"), Change('env["a.b"]', "add"), Change("argv[2]", "delete"),
        Change("gpu.type", replace=True), Change("root", "add", replace=True),
    ]  # fmt: skip
    answer = diff_response(changes)
    assert answer.changes == provider_pb2.DiffResponse.DIFF_SOME
    assert list(answer.diffs) == ["argv", "env", "gpu", "pins", "root"]
    assert list(answer.replaces) == ["gpu", "root"]
    assert {path: diff.kind for path, diff in answer.detailedDiff.items()} == {
        "pins.engine": Kind.UPDATE, 'env["a.b"]': Kind.ADD, "argv[2]": Kind.DELETE, "gpu.type": Kind.UPDATE_REPLACE,
        "root": Kind.ADD_REPLACE,
    }  # fmt: skip
    assert diff_response([]).changes == provider_pb2.DiffResponse.DIFF_NONE
    assert diff_response([]).hasDetailedDiff


def test_ignoring_a_key_ignores_what_lies_under_it_and_no_namesake() -> None:
    changes = [Change("pins.engine"), Change("pinsMore"), Change("argv[0]"), Change("argv2")]
    assert set(diff_response(changes, ["pins", "argv"]).detailedDiff) == {"pinsMore", "argv2"}
    assert set(diff_response(changes, ["pins.engine"]).detailedDiff) == {"pinsMore", "argv[0]", "argv2"}
    assert set(diff_response(changes, ["pins.eng"]).detailedDiff) == {c.path for c in changes}


# resource, changed input -> (paths of updates, paths of replaces)
CHANGES: list[tuple[str, dict[str, Any], set[str], set[str]]] = [
    ("Volume", {"sizeGb": 3, "keep": False}, {"sizeGb", "keep"}, set()),
    ("Volume", {"name": "d"}, set(), {"name"}),
    ("Machine", {"search": {"regions": ["x"], "maxPrice": 1}}, set(), set()),
    ("Machine", {"price": 2}, {"price"}, set()),
    ("Machine", {"price": None}, {"price"}, set()),
    ("Machine", {"gpu": {"type": "cpu", "count": 2}}, set(), {"gpu.count"}),
    ("Machine", {"root": "/other"}, set(), {"root"}),
    ("Machine", {"stackId": UNKNOWN}, {"stackId"}, set()),
    ("Engine", {"argv": ["--ctx", "4096"]}, {"argv[1]"}, set()),
    ("Engine", {"gateDeadlineS": 5, "retry": 1, "holdS": 7, "lockFile": "/x", "facts": "{1}"}, set(), set()),
    ("Engine", {"machineId": UNKNOWN, "host": UNKNOWN}, {"machineId", "host"}, set()),
    ("Front", {"apiKey": "another-key-0123456789"}, {"apiKey"}, set()),
    ("Front", {"domain": None, "port": None}, {"domain", "port"}, set()),
    ("Front", {"keyOverlapS": 0, "deadlineS": 1}, set(), set()),
]


@pytest.mark.parametrize(("name", "change", "updates", "replaces"), CHANGES)
def test_what_a_change_of_an_input_does(
    name: str, change: dict[str, Any], updates: set[str], replaces: set[str]
) -> None:
    new = {k: v for k, v in (INPUTS[name] | change).items() if v is not None}
    found = BY_NAME[name].diff(INPUTS[name], OUTPUTS[name], new)
    assert {c.path for c in found if not c.replace} == updates
    assert {c.path for c in found if c.replace} == replaces


@pytest.mark.parametrize("name", list(BY_NAME))
def test_the_same_inputs_are_no_change(name: str) -> None:
    assert BY_NAME[name].diff(INPUTS[name], OUTPUTS[name], INPUTS[name]) == []


def test_an_input_that_was_taken_out_is_not_carried_over() -> None:
    assert carry({"a": 1}, {"a": 0, "b": 2, "fact": 3}, {"fact": "number", "other": "string"}) == {"a": 1, "fact": 3}
