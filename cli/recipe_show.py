"""`sluicegate recipe show`: one recipe, what others claim of it, its locks, and what would be run."""

from __future__ import annotations

import argparse
import json
import shlex
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sluicegate.recipes.engines import adapter, placeholder_sources
from sluicegate.recipes.faults import RecipeError
from sluicegate.recipes.files import all_locks, find_recipe, read_lock, read_recipe, recipe_folders
from sluicegate.recipes.model import Claim, Lock, Recipe

from .recipe_list import WIDTH, drafter, gpus, project_or_here
from .stack import CliError


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="RECIPE", help="as smollm2-135m/q4")
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(options: argparse.Namespace) -> int:
    """Print the recipe. Raises CliError for one that is not there or cannot be read."""
    try:
        data = shown(options.name, recipe_folders(project_or_here()))
    except RecipeError as error:
        raise CliError(str(error)) from error
    if options.json:
        recipe = data["recipe"].model_dump(mode="json", exclude_none=True)
        print(json.dumps(data | {"path": str(data["path"]), "recipe": recipe}, indent=2))
    else:
        print("\n".join(lines(data)))
    return 0


def shown(name: str, folders: Sequence[Path]) -> dict[str, Any]:
    """`name`, `path`, `recipe`, `locks` (lock, recipe_unchanged), `argv` and `env` as they would be run."""
    path = find_recipe(name, folders)
    recipe, sha256 = read_recipe(path)
    locks = [read_lock(lock_path) for lock_path in all_locks(name, folders)]
    current: Lock | None = next((lock for lock, _ in locks if lock.recipe_sha256 == sha256), None)
    sources = current.sources if current else placeholder_sources(recipe)
    argv, env = adapter(recipe.engine.name).compile(recipe, sources)
    told = [{"lock": digest, "recipe_unchanged": lock.recipe_sha256 == sha256} for lock, digest in locks]
    return {"name": name, "path": path, "recipe": recipe, "locks": told, "argv": argv, "env": env}


def lines(data: dict[str, Any]) -> Iterator[str]:
    """The same for people, in 80 columns but for single words that are longer."""
    recipe: Recipe = data["recipe"]
    yield f"{data['name']}  ({_below(data['path'])})"
    yield f"  engine       {recipe.engine.name} {recipe.engine.version}"
    yield f"               {recipe.engine.image or recipe.engine.package}"
    yield from _repo("weights", recipe.model.repo, recipe.model.revision, f", {recipe.model.precision}")
    if speculation := recipe.speculation:
        yield f"  speculation  {drafter(speculation)}"
        if speculation.repo:
            yield from _repo("drafter", speculation.repo, speculation.revision, "")
    serve = recipe.serve
    yield f"  serves       {serve.name}: {serve.max_model_len} tokens, {serve.max_num_seqs} requests at one time"
    yield f"  gpu          {gpus(recipe)}"
    if speculation:
        yield f"  gate         {_gate(recipe)}"
    yield from _claims(recipe.claims)
    yield "locks:" if data["locks"] else f"no lock yet: sluicegate recipe pin {data['name']}"
    for lock in data["locks"]:
        yield f"  {lock['lock']}"
        if not lock["recipe_unchanged"]:
            yield f"    of an older text of the recipe: sluicegate recipe pin {data['name']}"
    yield "what is run, the host's places in {}:"
    yield from _wrapped(_pairs(data["argv"]))
    if data["env"]:
        yield "with the environment:"
        yield from _wrapped([f"{key}={shlex.quote(value)}" for key, value in data["env"].items()])


def _repo(title: str, repo: str, revision: str | None, more: str) -> Iterator[str]:
    yield f"  {title:<12} {repo}{more}"
    if revision:
        yield f"               at {revision}"


def _gate(recipe: Recipe) -> str:
    gate = recipe.gate
    if not adapter(recipe.engine.name).host_facts(recipe)["speculation"]:
        return f"does not judge the drafter: {recipe.engine.name} does not count its drafts"
    share = "one drafted token" if gate.acceptance_floor is None else f"{gate.acceptance_floor:.0%} of drafted tokens"
    return f"{gate.not_helping}s below {share} accepted"


def _claims(claims: Sequence[Claim]) -> Iterator[str]:
    """Claims by date and source, so that nobody takes them for measurements of this tool."""
    if claims:
        yield "claimed by others, not measured here:"
    for date, source in dict.fromkeys((claim.date, claim.source) for claim in claims):
        part = [claim for claim in claims if (claim.date, claim.source) == (date, source)]
        width = max(len(claim.figure) for claim in part)
        yield f"  {date}, {source}"
        for claim in part:
            yield f"    {claim.figure:<{width}}  {claim.value:>7g} {claim.unit:<6} {claim.gpu}"


def _pairs(argv: Sequence[str]) -> list[str]:
    """Each flag with its value, as a shell would take them."""
    found: list[str] = []
    for word in argv:
        quoted = shlex.quote(word)
        if found and not word.startswith("-") and found[-1].startswith("-") and " " not in found[-1]:
            found[-1] += f" {quoted}"
        else:
            found.append(quoted)
    return found


def _wrapped(parts: Sequence[str]) -> list[str]:
    """Parts in lines of at most 80 columns, none cut in two."""
    rows = [""]
    for part in parts:
        if rows[-1] and len(rows[-1]) + len(part) + 3 > WIDTH:
            rows.append("")
        rows[-1] += f" {part}" if rows[-1] else part
    return [textwrap.indent(row, "  ") for row in rows]


def _below(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
