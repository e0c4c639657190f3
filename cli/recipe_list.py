"""`sluicegate recipe list`: every recipe there is, this project's own first, and whether it is locked."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from sluicegate.recipes.faults import RecipeError
from sluicegate.recipes.files import all_locks, find_recipe, read_lock, read_recipe, recipe_folders, recipe_names
from sluicegate.recipes.model import Recipe, Speculation

from .stack import CliError, find_project

WIDTH = 80
TITLES = ("RECIPE", "ENGINE", "WEIGHTS", "SPECULATION", "GPU", "LOCKED")


@dataclass(frozen=True)
class Row:
    """One recipe. `locked`: yes; stale, when it was changed since; no. `own` of the project, not shipped."""

    name: str
    own: bool
    engine: str
    version: str
    precision: str
    speculation: str | None
    gpu: str
    count: int
    locked: str


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="as JSON, one object a recipe")


def run(options: argparse.Namespace) -> int:
    """Print the table; exit code 1 when a recipe could not be read, said after the others."""
    folders = recipe_folders(project_or_here())
    rows, faults = rows_of(folders)
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    else:
        for own, title in ((True, "of this project"), (False, "shipped with sluicegate")):
            if part := [row for row in rows if row.own == own]:
                print(f"{title}:" if len(folders) > 1 else "recipes:")
                print("\n".join(table([cells(row) for row in part])))
        if not rows:
            print("no recipes here: `sluicegate recipe create NAME` writes one")
    for fault in faults:
        print(f"error: {fault}", file=sys.stderr)
    return 1 if faults else 0


def project_or_here() -> Path:
    """The project's folder; without a project what is shipped is there all the same."""
    try:
        return find_project()
    except CliError:
        return Path.cwd()


def rows_of(folders: Sequence[Path]) -> tuple[list[Row], list[RecipeError]]:
    """A row for each recipe that can be read, the project's own first, and the faults of the others."""
    rows, faults = [], []
    for name in recipe_names(folders):
        try:
            path = find_recipe(name, folders)
            recipe, sha256 = read_recipe(path)
            locked = locked_of(name, sha256, folders)
        except RecipeError as error:
            faults.append(error)
            continue
        rows.append(Row(
            name=name, own=path.is_relative_to(folders[0]) and len(folders) > 1, engine=recipe.engine.name,
            version=recipe.engine.version, precision=recipe.model.precision, gpu=recipe.gpu.type,
            speculation=drafter(recipe.speculation), count=recipe.gpu.count, locked=locked,
        ))  # fmt: skip
    return sorted(rows, key=lambda row: not row.own), faults


def locked_of(name: str, sha256: str, folders: Sequence[Path]) -> str:
    """Whether a lock was made of the recipe as it stands. Raises RecipeError for a lock that cannot be read."""
    made_from = {read_lock(path)[0].recipe_sha256 for path in all_locks(name, folders)}
    return "yes" if sha256 in made_from else "stale" if made_from else "no"


def drafter(speculation: Speculation | None) -> str | None:
    return f"{speculation.method} {speculation.tokens}" if speculation else None


def gpus(recipe: Recipe | Row) -> str:
    kind, count = (recipe.gpu, recipe.count) if isinstance(recipe, Row) else (recipe.gpu.type, recipe.gpu.count)
    return kind if count == 1 else f"{count}x {kind}"


def cells(row: Row) -> tuple[str, ...]:
    return row.name, row.engine, row.precision, row.speculation or "-", gpus(row), row.locked


def table(rows: Sequence[tuple[str, ...]], titles: tuple[str, ...] = TITLES) -> list[str]:
    """Lines of at most 80 columns; where names are too long for that, each has a line of its own."""
    first, *others = (max(len(cell) for cell in column) for column in zip(titles, *rows, strict=True))
    rest = sum(others) + 2 * len(others)
    first = min(first, max(WIDTH - rest - 2, len(titles[0])))
    lines = []
    for name, *cells_ in (titles, *rows):
        tail = "  ".join(cell.ljust(width) for cell, width in zip(cells_, others, strict=True)).rstrip()
        if len(name) > first:
            lines.append(f"  {name}")
            name = ""
        lines.append(f"  {name.ljust(first)}  {tail}")
    return lines
