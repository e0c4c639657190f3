"""Making a lock: a recipe and the exact bits that were found for it, compiled through the engine's adapter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .engines import adapter

if TYPE_CHECKING:
    from .model import Lock, Platform, Recipe, Sources


def build_lock(
    recipe_name: str,
    recipe: Recipe,
    recipe_sha256: str,
    engine_source: str,
    platforms: Mapping[str, Platform],
    sources: Sources,
    requires: Mapping[str, str],
    shape: Mapping[str, Any],
    engine_files: tuple[Any, ...] | None = None,
) -> Lock:
    """The lock of a recipe over the given bits; the same arguments give the same bytes.

    `engine_source` is a reference, `requires` what the engine asks of a machine (`{"cuda": ">=13.0"}`), `shape` the
    numbers of the model's config that memory and cost need. Raises RecipeError with every fault.
    """
    from .model import Lock, LockEngine

    argv, env = adapter(recipe.engine.name).compile(recipe, sources)
    engine = LockEngine(
        name=recipe.engine.name,
        version=recipe.engine.version,
        source=engine_source,
        platforms=dict(platforms),
        files=engine_files,
        requires=dict(requires),
    )
    return Lock(
        schema=1,
        recipe=recipe_name,
        recipe_sha256=recipe_sha256,
        engine=engine,
        sources=sources,
        draft_tokens=recipe.speculation.tokens if recipe.speculation else None,
        argv=tuple(argv),
        env=env,
        served_name=recipe.serve.name,
        gpu=recipe.gpu,
        shape=dict(shape),
    )
