"""Engines: how a locked recipe becomes a command line, and what the host must know to gate and watch the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..faults import Fault, RecipeError

if TYPE_CHECKING:
    from ..model import Recipe, Sources

NAMES = ("vllm", "sglang", "llamacpp", "openai")


@dataclass(frozen=True)
class Adapter:
    """One engine.

    `compile` gives argv and env with placeholders, or raises RecipeError with all faults; `host_facts` plain JSON data.
    `owned` and `owned_env` say of flags and variables what sets them instead of a recipe's `args` and `env`.
    """

    name: str
    compile: Callable[[Recipe, Sources], tuple[list[str], dict[str, str]]]
    host_facts: Callable[[Recipe], dict[str, Any]]
    owned: Mapping[str, str]
    owned_env: Mapping[str, str]


def adapter(name: str) -> Adapter:
    """The adapter of an engine. Raises RecipeError for an engine there is no adapter for."""
    if name not in NAMES:
        raise RecipeError([Fault("engine.name", name, f"one of: {', '.join(NAMES)}", "edit the recipe")])
    found = import_module(f".{name}", __package__)  # only the one that is used is read
    return Adapter(name, found.compile, found.host_facts, found.OWNED, found.OWNED_ENV)


def placeholder_sources(recipe: Recipe) -> Sources:
    """Sources of zeros, so that a recipe's command line can be shown and checked before there is a lock."""
    from ..model import LockFile, SameAs, Source, Sources

    def zeros(name: str) -> Source:
        return Source(ref=f"hf:unknown@{'0' * 40}", files=(LockFile(path=name, bytes=0, sha256="0" * 64),))

    drafter = zeros("DRAFTER.gguf") if recipe.speculation and recipe.speculation.repo else None
    return Sources(weights=zeros("WEIGHTS.gguf"), tokenizer=SameAs(same_as="weights"), drafter=drafter)
