"""Engines: a locked recipe's exact command line, and what is refused.

Whether an engine takes these command lines is not shown here: no golden case but the local ones runs in these tests.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from sluicegate.recipes.engines import adapter
from sluicegate.recipes.faults import RecipeError
from sluicegate.recipes.fields import validate
from sluicegate.recipes.files import find_recipe, read_recipe, recipe_names
from sluicegate.recipes.model import Recipe, Sources
from tests.recipes.engine_cases import EXAMPLE, GGUF, OPENAI, SGLANG, llamacpp, recipe_of, sources_of
from tests.recipes.recipe_cases import GOLDEN, SHIPPED, golden

DRAFT, NUMBER = "--speculative-draft-model-path", "--speculative-num-draft-tokens"
STEPS, TOP = ["--speculative-num-steps"], ["--speculative-eagle-topk", "1"]


@pytest.mark.parametrize("case", GOLDEN)
def test_a_recipe_and_its_sources_give_exactly_this_command_line(case: str) -> None:
    data = golden(case)
    recipe, _ = read_recipe(find_recipe(data["recipe"], [SHIPPED]))
    sources = validate(Sources, data["sources"], "sources", "mend")
    argv, env = adapter(recipe.engine.name).compile(recipe, sources)
    assert argv == data["argv"]
    assert env == data["env"]


def test_every_shipped_recipe_has_a_golden_case() -> None:
    assert sorted(golden(case)["recipe"] for case in GOLDEN) == recipe_names([SHIPPED])


def test_vllm_gets_tokenizer_and_parallelism_only_when_there_is_something_to_say() -> None:
    own = {"ref": f"hf:Qwen/Tok@{'1' * 40}", "files": []}
    argv, env = adapter("vllm").compile(recipe_of(), sources_of(tokenizer=own))
    assert argv[argv.index("--tensor-parallel-size") + 1] == "2"
    assert argv[argv.index("--tokenizer") + 1] == "{tokenizer}"
    assert argv[-2:] == ["--language-model-only", "--reasoning-parser=qwen3"]
    assert env["VLLM_LOGGING_LEVEL"] == "INFO"
    assert env["HF_HUB_OFFLINE"] == "1"


def test_a_setting_of_vllms_drafter_that_is_no_field_joins_its_configuration() -> None:
    args = ["--seed", "1", "--speculative-config.prompt_lookup_max=4", '--speculative-config.draft_load_config={"a":1}']
    args += ["--speculative-config.attention_backend=FLASH_ATTN"]
    argv, _ = adapter("vllm").compile(recipe_of(speculation={"method": "ngram", "tokens": 4}, args=args), sources_of())
    config = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4, "draft_load_config": {"a": 1}}
    assert json.loads(argv[-3]) == config | {"attention_backend": "FLASH_ATTN"}
    assert argv[-2:] == ["--seed", "1"]


@pytest.mark.parametrize(
    ("speculation", "config"),
    [
        ({"method": "mtp", "tokens": 3}, {"method": "mtp", "model": "{weights}", "num_speculative_tokens": 3}),
        ({"method": "ngram", "tokens": 4}, {"method": "ngram", "num_speculative_tokens": 4}),
        (
            {"method": "eagle3", "repo": "a/b", "tokens": 5},
            {"method": "eagle3", "model": "{drafter}", "num_speculative_tokens": 5},
        ),
    ],
)
def test_vllm_drafts_from_places_on_the_host_never_from_a_repository(
    speculation: dict[str, Any], config: dict[str, Any]
) -> None:
    argv, _ = adapter("vllm").compile(recipe_of(speculation=speculation), sources_of())
    assert argv[argv.index("--speculative-config") + 1] == json.dumps(config, separators=(",", ":"))


@pytest.mark.parametrize(
    ("speculation", "words"),
    [
        ({"method": "dflash", "repo": "a/b", "tokens": 7}, ["DFLASH", DRAFT, "{drafter}", NUMBER, "8"]),
        ({"method": "ngram", "tokens": 4}, ["NGRAM", NUMBER, "5"]),
        ({"method": "mtp", "tokens": 3}, ["NEXTN", *STEPS, "3", *TOP, NUMBER, "4"]),
        (
            {"method": "eagle3", "repo": "a/b", "tokens": 3},
            ["EAGLE3", DRAFT, "{drafter}", *STEPS, "3", *TOP, NUMBER, "4"],
        ),
    ],
)
def test_sglang_counts_the_known_token_of_a_verify_step_too(speculation: dict[str, Any], words: list[str]) -> None:
    recipe = recipe_of(engine=SGLANG, speculation=speculation, gate={}, args=[])
    own = {"ref": f"hf:Qwen/Tok@{'1' * 40}", "files": []}
    argv, _ = adapter("sglang").compile(recipe, sources_of(tokenizer=own))
    assert argv[argv.index("--tokenizer-path") + 1] == "{tokenizer}"
    assert argv[argv.index("--tp-size") + 1] == "2"
    assert argv[argv.index("--speculative-algorithm") + 1 :] == words


@pytest.mark.parametrize("place", ["args", "env"])
def test_an_image_of_which_only_the_api_is_known_is_told_its_places_in_args_or_environment(place: str) -> None:
    words = {"args": ["serve", "{weights}", "-p={port}", "{drafter}"], "env": {}}
    if place == "env":
        words = {"args": [], "env": {"MODEL": "{weights}", "SOCKET": "{socket}", "DRAFT": "{drafter}"}}
    argv, env = adapter("openai").compile(recipe_of(engine=OPENAI, gate={}, **words), sources_of())
    assert argv == words["args"]
    assert words["env"].items() <= env.items()
    assert env["HF_HUB_OFFLINE"] == "1"


def test_llamacpp_names_a_drafter_and_the_first_part_of_split_weights() -> None:
    recipe = llamacpp(speculation={"method": "draft_model", "repo": "a/b", "tokens": 4})
    parts = [GGUF | {"path": f"m-0000{n}-of-00002.gguf"} for n in (2, 1)]
    weights = {"ref": f"hf:a/b@{'0' * 40}", "files": parts}
    argv, _ = adapter("llamacpp").compile(recipe, sources_of(weights=weights, drafter=weights | {"files": [GGUF]}))
    assert argv[1] == "{weights}/m-00001-of-00002.gguf"
    assert argv[argv.index("--spec-type") :] == [
        *("--spec-type", "draft-simple", "--model-draft", "{drafter}/a.gguf", "--draft-max", "4")
    ]


HUB = {"ref": f"hf:a/b@{'0' * 40}", "files": [GGUF]}


@pytest.mark.parametrize(
    ("recipe", "sources", "key", "allowed"),
    [
        (recipe_of(speculation=EXAMPLE["speculation"] | {"tokens": 5}), {}, "speculation.tokens", "7 for a DFlash2"),
        (recipe_of(), {"drafter": None}, "sources.drafter", "one commit"),
        (recipe_of(args=["--port=80"]), {}, "args[0]", "the host's own socket"),
        (recipe_of(args=["--max_model_len", "5"]), {}, "args[0]", "serve.max_model_len"),
        (recipe_of(args=["--speculative-config.method", "mtp"]), {}, "args[0]", "speculation"),
        (recipe_of(args=["--api-key", "sk"]), {}, "args[0]", "the front checks keys"),
        (recipe_of(args=["--trust-remote-code"]), {}, "args[0]", "--code-revision=<40 hex commit>"),
        (recipe_of(env={"HF_TOKEN": "hf_x"}), {}, "env.HF_TOKEN", "as a secret"),
        (recipe_of(env={"VLLM_CACHE_ROOT": "/x"}), {}, "env.VLLM_CACHE_ROOT", "every vLLM start"),
        (llamacpp(), {"weights": HUB | {"files": []}}, "sources.weights.files", "exactly one GGUF"),
        (
            llamacpp(),
            {"weights": HUB | {"files": [GGUF, GGUF | {"path": "b.gguf"}]}},
            "sources.weights.files",
            "one GGUF",
        ),
        (llamacpp(serve={"name": "m", "max_model_len": 2000, "max_num_seqs": 1}), {}, "serve.max_model_len", "of 256"),
        (llamacpp(speculation={"method": "mtp", "tokens": 1}), {}, "speculation.method", "ngram or draft_model"),
        (llamacpp(["--spec-ngram-size-n", "12"]), {}, "speculation.tokens", "12 or more"),
        (llamacpp(), {}, "speculation.tokens", "12 or more"),
        (llamacpp(["--spec-ngram-size-n=4"], tokens=3), {}, "speculation.tokens", "4 or more"),
        (llamacpp(["-c", "1"]), {}, "args[0]", "serve.max_model_len"),
        (recipe_of(args=["--speculative-config.model=x"]), {}, "args[0]", "speculation"),
        (
            recipe_of(args=["--speculative-config.prompt_lookup_max=4"], speculation=None, gate={}),
            {},
            "args[0]",
            "speculation",
        ),
        (
            recipe_of(engine=SGLANG, gate={}, speculation=EXAMPLE["speculation"] | {"tokens": 8}),
            {},
            "speculation.tokens",
            "7 for a DFlash2",
        ),
        (recipe_of(engine=SGLANG), {}, "gate.acceptance_floor", "counts no drafted tokens"),
        (recipe_of(engine=SGLANG, gate={}, args=["--port", "1"]), {}, "args[0]", "the host's own port"),
        (recipe_of(engine=SGLANG, gate={}, args=["--trust-remote-code"]), {}, "args[0]", "none for sglang"),
        (recipe_of(engine=SGLANG, gate={}, env={"HF_TOKEN": "x"}), {}, "env.HF_TOKEN", "as a secret"),
        (recipe_of(engine=SGLANG, gate={}), {"drafter": None}, "sources.drafter", "one commit"),
        (
            recipe_of(engine=SGLANG, gate={}, serve=EXAMPLE["serve"] | {"name": "a:b"}),
            {},
            "serve.name",
            "a name without ':'",
        ),
        (recipe_of(engine=OPENAI, gate={}, args=["x"]), {}, "args", "{weights}"),
        (recipe_of(engine=OPENAI, gate={}, args=["{weights}"]), {}, "args", "{port}"),
        (recipe_of(engine=OPENAI, gate={}, args=["{weights}", "{port}"]), {}, "args", "{drafter}"),
        (
            recipe_of(engine=OPENAI, gate={}, args=["{weights}", "{port}", "{drafter}"]),
            {"drafter": None},
            "sources.drafter",
            "commit",
        ),
        (recipe_of(engine=OPENAI, args=["{weights}", "{port}"]), {}, "gate.acceptance_floor", "no counter"),
    ],
)
def test_what_would_break_or_lie_is_refused_by_key(
    recipe: Recipe, sources: dict[str, Any], key: str, allowed: str
) -> None:
    with pytest.raises(RecipeError) as caught:
        adapter(recipe.engine.name).compile(recipe, sources_of(**sources))
    assert any(fault.key == key and allowed in fault.allowed for fault in caught.value.faults)


def test_remote_code_is_taken_with_its_own_commit() -> None:
    args = ["--trust-remote-code", f"--code-revision={'a' * 40}"]
    assert adapter("vllm").compile(recipe_of(args=args), sources_of())[0][-2:] == args


def test_an_engine_without_an_adapter_names_those_that_have_one() -> None:
    with pytest.raises(RecipeError, match="one of: vllm, sglang, llamacpp, openai"):
        adapter("tgi")
