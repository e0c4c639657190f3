"""Recipe and lock files: what is read, what is refused, what is written."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.recipes.faults import RecipeError
from sluicegate.recipes.fields import validate
from sluicegate.recipes.files import (
    find_lock,
    find_recipe,
    lock_bytes,
    read_lock,
    read_recipe,
    recipe_folders,
    write_lock,
)
from sluicegate.recipes.model import Lock, Pins, Recipe
from sluicegate.recipes.plain import load_json, load_yaml
from tests.recipes.recipe_cases import EXAMPLES, SHIPPED, ZEROS

RECIPE = (EXAMPLES / "recipe.yaml").read_text()
json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def faults_of(text: str | bytes, tmp_path: Path) -> list[tuple[str, object, str]]:
    path = tmp_path / "x.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(RecipeError) as caught:
        read_recipe(path)
    assert all(fault.mend == f"edit {path}" for fault in caught.value.faults)
    return [(fault.key, fault.value, fault.allowed) for fault in caught.value.faults]


def test_the_example_of_each_format_is_read() -> None:
    recipe, sha256 = read_recipe(EXAMPLES / "recipe.yaml")
    assert recipe.args == ("--language-model-only", "--reasoning-parser=qwen3")
    assert recipe.claims[0].date == "2026-10-29"
    assert sha256 == hashlib.sha256(RECIPE.encode()).hexdigest()
    lock, digest = read_lock(EXAMPLES / "lock.json")
    assert lock_bytes(lock) == (EXAMPLES / "lock.json").read_bytes()
    pins = validate(Pins, load_yaml((EXAMPLES / "pins.yaml").read_bytes(), "pins", ""), "pins", "")
    assert (pins.lock, pins.draft_tokens) == (digest, 7)


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("version: 0.32.0", "version: 0.32", ("engine.version", 0.32, "a valid string")),
        ("tokens: 7", "tokens: '7'", ("speculation.tokens", "7", "a valid integer")),
        ("tokens: 7", "tokens: 0", ("speculation.tokens", 0, "greater than or equal to 1")),
        ("count: 2", "count: true", ("gpu.count", True, "a valid integer")),
        ("name: vllm", "name: tgi", ("engine.name", "tgi", "'vllm', 'sglang', 'llamacpp' or 'openai'")),
        ("not_helping: fail", "not_helping: maybe", ("gate.not_helping", "maybe", "'fail' or 'warn'")),
        ("floor: 0.2", "floor: .nan", ("gate.acceptance_floor", None, "")),
        ("precision: fp8", "precission: fp8", ("model.precission", "fp8", "no such key")),
        ("{VLLM_LOGGING_LEVEL: INFO}", "{A-B: x}", ("env.A-B", "A-B", "match pattern")),
        ("2026-10-29", "yesterday", ("claims[0].date", "yesterday", "")),
        ('["--language', '["--x\\ny", "--language', ("args[0]", "--x\ny", "a string without control characters")),
        ("serve: {name: qwen3.8-27b, ", "serve: {", ("serve.name", None, "required")),
        (", tokens: 7}", "}", ("speculation.tokens", None, "required")),
    ],
)
def test_a_wrong_value_is_named_by_its_dotted_key(
    old: str, new: str, fault: tuple[str, object, str], tmp_path: Path
) -> None:
    found = faults_of(RECIPE.replace(old, new), tmp_path)
    key, value, allowed = fault
    hit = next(item for item in found if item[0] == key)
    assert value is None or hit[1] == value
    assert allowed in hit[2]


def test_all_faults_of_a_recipe_come_in_one_message(tmp_path: Path) -> None:
    text = RECIPE.replace("tokens: 7", "tokens: x").replace("count: 2", "count: 0").replace("precision: fp8", "p: q")
    assert {key for key, _, _ in faults_of(text, tmp_path)} == {
        "speculation.tokens",
        "gpu.count",
        "model.precision",
        "model.p",
    }


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("a: &a [x, x]\nb: [*a, *a]", "YAML without aliases"),
        ("x: &x {a: 1}\ny: {<<: *x}", "YAML without aliases"),
        ("engine: {name: vllm, name: sglang}", "each key once; 'name' comes again in line 1"),
        ("{1: x}", "text keys only"),
        ("{[a]: x}", "text keys only"),
        ("engine: {name: vllm", "valid YAML"),
        ("<<<<<<< HEAD\nengine: x\n=======\n", "valid YAML"),
        ("a: !!python/object/apply:os.system [x]", "valid YAML"),
        ("--- a\n--- b\n", "valid YAML"),
        (b"\xff\xfe", "UTF-8"),
        ("[" * 5000, "shallower nesting"),
        ("- x\n" * 100_000, "at most 262144 bytes"),
        ("a: !!set {x, y}", "plain strings, numbers, lists and maps"),
        ("", ""),
        ("just words", ""),
    ],
)
def test_yaml_that_is_no_recipe_is_refused_clearly(text: str | bytes, allowed: str, tmp_path: Path) -> None:
    assert allowed in " ".join(item[2] for item in faults_of(text, tmp_path))


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ('{"a": 1, "a": 2}', "each key once; 'a' comes again"),
        ('{"a": NaN}', "finite numbers; found NaN"),
        ("[" * 100_000, "shallower nesting"),
        ("{", "valid JSON"),
        ("1" * 5000, "valid JSON"),
        ("<<<<<<< HEAD", "valid JSON"),
    ],
)
def test_json_that_is_no_lock_is_refused_clearly(text: str, allowed: str) -> None:
    with pytest.raises(RecipeError, match=allowed):
        load_json(text.encode(), "lock", "mend")


@pytest.mark.parametrize(
    ("tokenizer", "keys"),
    [
        ({"same_as": "drafter"}, ["same_as"]),
        ({"same_as": "weights", "files": []}, ["files"]),
        ({"ref": "hf:a/b@main", "files": []}, ["ref"]),
        ({"ref": f"hf:a/b@{'0' * 40}"}, ["files"]),
        ({"ref": f"file:a#sha256:{ZEROS}", "files": []}, [""]),
        ({}, ["ref", "files"]),
        (7, [""]),
    ],
)
def test_a_fault_of_a_source_is_of_the_form_that_was_begun(tokenizer: object, keys: list[str]) -> None:
    data = json.loads((EXAMPLES / "lock.json").read_text())
    data["sources"]["tokenizer"] = tokenizer
    with pytest.raises(RecipeError) as caught:
        validate(Lock, data, "lock", "mend")
    expected = [f"lock.sources.tokenizer.{key}".rstrip(".") for key in keys]
    assert [fault.key for fault in caught.value.faults] == expected


@given(st.one_of(st.text(), st.text(alphabet="{}[]:,-&*!?|>'\"\n\t a1<")))
def test_junk_yaml_raises_nothing_but_a_recipe_error(text: str) -> None:
    with contextlib.suppress(RecipeError):
        validate(Recipe, load_yaml(text.encode("utf-8", "surrogatepass"), "recipe", "mend"), "", "mend")


@given(json_like)
def test_junk_data_raises_nothing_but_a_recipe_error(data: object) -> None:
    for model in (Recipe, Lock, Pins):
        with pytest.raises(RecipeError):
            validate(model, data, "x", "mend")


@given(key=st.sampled_from(sorted(json.loads((EXAMPLES / "lock.json").read_text()))), value=json_like)
def test_a_lock_with_one_value_replaced_is_refused_or_round_trips(key: str, value: object) -> None:
    data: dict[str, Any] = json.loads((EXAMPLES / "lock.json").read_text()) | {key: value}
    with contextlib.suppress(RecipeError):
        lock = validate(Lock, data, "lock", "mend")
        assert validate(Lock, json.loads(lock_bytes(lock)), "lock", "mend") == lock


def test_a_lock_written_and_read_again_has_the_digest_in_its_name(tmp_path: Path) -> None:
    lock, digest = read_lock(EXAMPLES / "lock.json")
    path = write_lock(tmp_path, lock)
    assert path == tmp_path / "qwen3.8-27b/locks" / f"fp8-dflash2-{digest[7:19]}.json"
    assert read_lock(path) == (lock, digest)
    assert find_lock(lock.recipe, digest, [tmp_path / "none", tmp_path]) == path
    assert os.listdir(path.parent) == [path.name]
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_lock_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        write_lock(tmp_path, read_lock(EXAMPLES / "lock.json")[0])
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    "name", ["../etc/passwd", "a/../b", "/a/b", "a", "a/b/c", "A/b", "a/.b", "a/b\n", "", "a b/c", "..", 7, None]
)
def test_a_name_that_could_leave_the_folder_is_refused(name: Any, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="MODEL/NAME of lower-case letters"):
        find_recipe(name, [tmp_path])
    with pytest.raises(RecipeError, match="MODEL/NAME of lower-case letters"):
        find_lock(name, f"sha256:{ZEROS}", [tmp_path])


def test_a_recipe_that_is_not_there_names_those_that_are(folder: Path) -> None:
    with pytest.raises(RecipeError, match=r"one of: .*smollm2-135m/f16, .*smollm2-135m/q4, smollm2-135m/q4-ngram"):
        find_recipe("smollm2-135m/q8", [folder])


def test_the_projects_own_recipe_comes_before_the_shipped_one(folder: Path) -> None:
    folders = recipe_folders(folder.parent)
    assert folders == [folder.resolve(), SHIPPED]
    assert find_recipe("smollm2-135m/q4", folders).is_relative_to(folder)
    assert find_recipe("qwen3.8-27b/fp8-dflash2", folders).is_relative_to(SHIPPED)
    assert recipe_folders(SHIPPED.parent) == [SHIPPED]


def test_a_file_that_cannot_be_read_is_a_fault_not_a_traceback(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="a readable file"):
        read_recipe(tmp_path)
