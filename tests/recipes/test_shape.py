"""config.json: the numbers that are kept, what is missing, and what they ask of a drafter and of code."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.recipes.faults import Faults
from sluicegate.recipes.shape import code_faults, depth_faults, shape_of
from tests.recipes.loopback_hub import CONFIG, DRAFTER
from tests.recipes.test_files import json_like


def shape(config: dict[str, Any]) -> tuple[dict[str, Any], str]:
    faults = Faults()
    found = shape_of(config, "org/model", "model", faults)
    return found, "\n".join(map(str, faults.found))


def test_the_numbers_that_memory_and_cost_follow_from_are_kept() -> None:
    found, faults = shape(
        CONFIG | {"transformers_version": "5", "quantization_config": {"quant_method": "fp8", "x": 1}}
    )
    assert faults == ""
    assert found == {
        "model_type": "qwen3", "architecture": "Qwen3ForCausalLM", "num_hidden_layers": 4, "hidden_size": 64,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 128,
        "vocab_size": 384, "max_position_embeddings": 4096, "mtp_num_hidden_layers": 1, "dtype": "bfloat16",
        "quantization": {"quant_method": "fp8"},
    }  # fmt: skip


def test_a_model_that_also_sees_has_its_numbers_in_its_text_part() -> None:
    text = CONFIG | {"layer_types": ["linear_attention", "full_attention"]}
    found, faults = shape({"model_type": "qwen3_5", "text_config": text, "vision_config": {"hidden_size": 9}})
    assert faults == ""
    assert (found["model_type"], found["hidden_size"]) == ("qwen3_5", 64)
    assert found["layer_types"] == ["linear_attention", "full_attention"]


def test_heads_that_are_not_said_follow_from_the_others() -> None:
    few = {k: v for k, v in CONFIG.items() if k not in ("num_key_value_heads", "head_dim")}
    found, _ = shape(few)
    assert (found["num_key_value_heads"], found["head_dim"]) == (4, 16)


def test_every_missing_or_wrong_number_is_named_at_once() -> None:
    wrong = CONFIG | {"hidden_size": "64", "vocab_size": True, "model_type": None}
    del wrong["num_hidden_layers"]
    _, faults = shape(wrong)
    assert len(faults.splitlines()) == 4
    for said in ("num_hidden_layers, a whole number; it lacks it", "hidden_size, a whole number; it has '64'",
                 "vocab_size, a whole number; it has True", "with model_type"):  # fmt: skip
        assert said in faults


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from([*CONFIG, "text_config", "layer_types", "quantization_config"]), json_like))
def test_junk_configs_give_faults_and_nothing_else(config: dict[str, Any]) -> None:
    shape(config)
    depth_faults("dflash", 7, config, config)
    code_faults(config, "a/b", "model.repo")


@pytest.mark.parametrize(
    ("method", "tokens", "drafter", "allowed"),
    [
        ("dflash", 7, DRAFTER, None),
        ("dflash", 6, DRAFTER, "7: the drafter's block size of 8 minus 1"),
        ("dflash", 8, DRAFTER, "7: the drafter's block size of 8 minus 1"),
        ("dflash", 3, CONFIG | {"block_size": 16}, None),
        ("dflash", 16, CONFIG | {"dflash_config": {"block_size": 16}}, "15 or fewer"),
        ("dflash", 99, CONFIG, None),
        ("mtp", 3, None, None),
        ("ngram", 99, None, None),
    ],
)
def test_a_drafter_is_asked_for_as_many_tokens_as_it_was_made_for(
    method: str, tokens: int, drafter: dict[str, Any] | None, allowed: str | None
) -> None:
    faults = depth_faults(method, tokens, CONFIG, drafter)
    assert [allowed in fault.allowed for fault in faults if allowed] == ([True] if allowed else [])
    assert bool(faults) is bool(allowed)


def test_mtp_fits_the_models_own_prediction_layers() -> None:
    assert "a multiple of 2" in str(depth_faults("mtp", 3, {"mtp_num_hidden_layers": 2}, None)[0])
    assert depth_faults("mtp", 4, {"mtp_num_hidden_layers": 2}, None) == []
    assert "no prediction layers" in str(depth_faults("mtp", 3, {"mtp_num_hidden_layers": 0}, None)[0])


def test_code_of_another_repository_is_at_no_commit() -> None:
    mapped = {"auto_map": {"AutoConfig": "configuration.Own", "AutoModel": ["other/repo--modeling.X", None]}}
    (fault,) = code_faults(mapped, "org/model", "model.repo")
    assert "it names code of other/repo, at no commit" in fault.allowed
