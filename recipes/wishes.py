"""What can be said of a recipe alone, before anything was asked of a hub or a registry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .engines import adapter
from .faults import Fault, Faults, RecipeError
from .sources import HUB_REPO

if TYPE_CHECKING:
    from .model import Recipe, Sources


def recipe_faults(recipe: Recipe) -> list[Fault]:
    """What is wrong with a recipe by itself, beyond the form of its file: each with the edit that mends it."""
    from .images import parse_image

    faults, mend = Faults(), "edit the recipe, then pin it again"
    wishes: dict[str, str | None] = {"model": recipe.model.repo}
    wishes["tokenizer"] = recipe.tokenizer.repo if recipe.tokenizer else None
    wishes["speculation"] = recipe.speculation.repo if recipe.speculation else None
    for key, repo in wishes.items():
        if repo and not repo.startswith(("pypi:", "file:")):
            if repo == recipe.serve.name:
                allowed = "a repository, ORG/NAME: this is the name it is served as"
                faults.add(f"{key}.repo", repo, allowed, f"{mend}; give serve.name a name of its own")
            elif not HUB_REPO.fullmatch(repo):
                faults.add(f"{key}.repo", repo, "ORG/NAME of a hub, pypi:NAME or file:PATH", mend)
    if recipe.engine.image is not None:
        try:
            parse_image(recipe.engine.image, "engine.image", mend)
        except RecipeError as error:
            faults.extend(error)
    try:
        adapter(recipe.engine.name).compile(recipe, _imagined(recipe))
    except RecipeError as error:
        faults.found += [fault for fault in error.faults if fault not in faults.found]
    return faults.found


def _imagined(recipe: Recipe) -> Sources:
    """Sources in the form the real ones will have, for what can be said of a command line before there are any."""
    from .model import LockFile, SameAs, Source, Sources

    name = "model.gguf" if recipe.engine.name == "llamacpp" else "model.safetensors"
    one = Source(ref=f"hf:none/none@{'0' * 40}", files=(LockFile(path=name, bytes=1, sha256="0" * 64),))
    drafter = one if recipe.speculation and recipe.speculation.repo else None
    return Sources(weights=one, tokenizer=one if recipe.tokenizer else SameAs(same_as="weights"), drafter=drafter)
