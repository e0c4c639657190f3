"""Engines: how a locked recipe becomes a command line, and what the host must know to gate and watch the engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..faults import Fault, RecipeError

if TYPE_CHECKING:
    from ..model import Recipe, Sources

NAMES = ("llamacpp", "vllm")


@dataclass(frozen=True)
class Adapter:
    """One engine.

    `compile` gives argv and env with placeholders, or raises RecipeError with all faults; `host_facts` plain JSON data.
    """

    name: str
    compile: Callable[[Recipe, Sources], tuple[list[str], dict[str, str]]]
    host_facts: Callable[[Recipe], dict[str, Any]]


def adapter(name: str) -> Adapter:
    """The adapter of an engine. Raises RecipeError for an engine there is no adapter for."""
    if name == "llamacpp":
        from . import llamacpp

        return Adapter(name, llamacpp.compile, llamacpp.host_facts)
    if name == "vllm":
        from . import vllm

        return Adapter(name, vllm.compile, vllm.host_facts)
    raise RecipeError([Fault("engine.name", name, f"one of: {', '.join(NAMES)}", "edit the recipe")])
