"""Recipes and sources for the tests of the engines, one of each engine."""

from __future__ import annotations

from typing import Any

from sluicegate.recipes.fields import validate
from sluicegate.recipes.model import Recipe, Sources
from sluicegate.recipes.plain import load_yaml
from tests.recipes.recipe_cases import EXAMPLES, ZEROS, golden

EXAMPLE: Any = load_yaml((EXAMPLES / "recipe.yaml").read_bytes(), "recipe", "")
SGLANG = {"name": "sglang", "version": "0.5.20", "image": "docker.io/lmsysorg/sglang:v0.5.20"}
OPENAI = {"name": "openai", "version": "1", "image": "docker.io/a/b:v1"}
GGUF = {"path": "a.gguf", "bytes": 1, "sha256": ZEROS}


def recipe_of(**changed: Any) -> Recipe:
    return validate(Recipe, EXAMPLE | changed, "", "mend")


def sources_of(**changed: Any) -> Sources:
    return validate(Sources, golden("fp8-dflash2")["sources"] | changed, "sources", "mend")


def llamacpp(args: list[str] | None = None, tokens: int = 7, **changed: Any) -> Recipe:
    base = {
        "engine": {"name": "llamacpp", "version": "1", "package": "xllamacpp"},
        "speculation": {"method": "ngram", "tokens": tokens},
        "serve": {"name": "m", "max_model_len": 2048, "max_num_seqs": 2},
        "args": args or [],
        "env": {},
    }
    return recipe_of(**base | changed)


RECIPES = {
    "vllm": recipe_of(),
    "sglang": recipe_of(engine=SGLANG),
    "llamacpp": llamacpp(),
    "openai": recipe_of(engine=OPENAI),
}
