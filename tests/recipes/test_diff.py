"""What moves between two locks, and whether it can be heard in the answers."""

from __future__ import annotations

from typing import Any

import pytest

from sluicegate.recipes.diff import answers, fetches, lines, size
from sluicegate.recipes.files import read_lock
from sluicegate.recipes.model import Lock, LockFile, Platform, SameAs, Source
from sluicegate.recipes.pins import pins_of
from tests.recipes.recipe_cases import EXAMPLES, ZEROS

LOCK, DIGEST = read_lock(EXAMPLES / "lock.json")
OTHER = f"sha256:{'1' * 64}"
PINS = pins_of(LOCK, DIGEST).as_config()
FILE = LockFile(path="model.safetensors", bytes=30_900_000_000, sha256=ZEROS)
MOVED = Source(ref=f"hf:Qwen/Qwen3.8-27B-FP8@{'1' * 40}", files=(FILE,))


def changed(**update: Any) -> Lock:
    return LOCK.model_copy(update=update)


def with_sources(**update: Any) -> Lock:
    return changed(sources=LOCK.sources.model_copy(update=update))


def test_a_lock_against_itself_moves_nothing() -> None:
    assert lines(LOCK, PINS, LOCK, DIGEST) == []


def test_new_weights_are_fetched_and_heard() -> None:
    new = with_sources(weights=MOVED)
    found = lines(LOCK, PINS, new, OTHER)
    assert f"  weights     {LOCK.sources.weights.ref}" in found
    assert f"           -> {MOVED.ref}" in found
    assert "to fetch: 30.9 GB (weights 30.9 GB)" in found
    assert found[-1] == "the answers may change: weights, tokenizer moved"


def test_a_new_drafter_or_engine_is_only_a_matter_of_speed() -> None:
    drafter = Source(ref=f"hf:incoai/Qwen3.8-27B-DFlash2@{'2' * 40}", files=(FILE,))
    found = lines(LOCK, PINS, with_sources(drafter=drafter), OTHER)
    assert found[-1] == "same model; only speed should change (drafter moved): checked by ladder, not proven"
    engine = LOCK.engine.model_copy(
        update={
            "source": f"oci:docker.io/vllm/vllm-openai@{OTHER}",
            "platforms": {"linux/amd64": Platform(digest=OTHER, bytes=9_040_000_000)},
        }
    )
    found = lines(LOCK, PINS, changed(engine=engine), OTHER)
    assert "to fetch: 9.0 GB (engine 9.0 GB)" in found
    assert "only speed should change (engine moved)" in found[-1]


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["--kv-cache-dtype", "fp8"], ["KV type"]),
        (["--kv-cache-dtype=fp8"], ["KV type"]),
        (["--kv_cache_dtype=fp8"], ["KV type"]),
        (["--quantization", "awq", "--dtype", "half"], ["quantisation", "number type"]),
        (["-ctk", "q8_0", "-ctv", "q8_0"], ["KV type"]),
        (["--max-num-batched-tokens", "8192"], []),
        (["--override-generation-config", "{}"], ["sampling defaults"]),
    ],
)
def test_flags_that_change_what_is_answered_are_told_from_those_that_change_when(
    argv: list[str], why: list[str]
) -> None:
    assert answers(LOCK, changed(argv=(*LOCK.argv, *argv))) == why


def test_a_quantisation_that_only_the_config_knows_is_heard_too() -> None:
    assert answers(LOCK, changed(shape=LOCK.shape | {"quantization": {"quant_method": "awq"}})) == ["quantisation"]


def test_arguments_and_variables_are_shown_word_by_word() -> None:
    new = changed(argv=(*LOCK.argv, "--seed", "1"), env=LOCK.env | {"A": "b"})
    found = lines(LOCK, PINS, new, OTHER)
    assert [line for line in found if line.startswith("  argv")] == [
        '  argv        + "--seed"', '  argv        + "1"',
    ]  # fmt: skip
    assert found[found.index("  env A       none") + 1] == "           -> b"
    assert "to fetch: nothing" in found
    assert "(argv, env moved)" in found[-1]


def test_a_stack_without_pins_fetches_all_and_has_no_answers_to_change() -> None:
    found = lines(None, {}, LOCK, DIGEST)
    assert found[-1] == "nothing was pinned before: there are no answers to change"
    assert set(fetches({}, LOCK, PINS)) == {"engine", "weights", "drafter"}


def test_pins_whose_lock_is_not_here_are_compared_as_far_as_they_go() -> None:
    found = lines(None, PINS | {"draftTokens": 3, "lock": OTHER}, LOCK, DIGEST)
    assert "its flags were not compared" in found[-1]
    assert isinstance(LOCK.sources.tokenizer, SameAs)
    found = lines(None, PINS | {"weights": "hf:a/b@x"}, LOCK, DIGEST)
    assert found[-1] == "the answers may change: weights moved"


def test_the_same_bits_under_another_seal_change_nothing() -> None:
    assert lines(LOCK, PINS, LOCK, OTHER)[-1] == "the same bits under another seal: neither answers nor speed change"


def test_bytes_read_well() -> None:
    assert [size(n) for n in (0, 999, 1000, 30_866_866_928)] == ["0 bytes", "999 bytes", "1.0 kB", "30.9 GB"]
