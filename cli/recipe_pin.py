"""`sluicegate recipe pin NAME`: make a recipe's lock where it has none, and write its pins into the stack's config."""

from __future__ import annotations

import subprocess
import tempfile
from argparse import ArgumentParser, Namespace
from pathlib import Path

from sluicegate.recipes.faults import RecipeError
from sluicegate.recipes.files import find_recipe, locks_of, read_lock, read_recipe, recipe_folders
from sluicegate.recipes.model import Recipe
from sluicegate.recipes.pins import pins_of
from sluicegate.recipes.relock import relock

from .stack import STACK_HELP, CliError, chosen, find_project, pulumi

PACKAGES = ("pypi:", "file:")  # what this version resolves; `hf:` and `oci:` need their hub and registry


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="RECIPE", help="as smollm2-135m/q4")
    parser.add_argument("-s", "--stack", metavar="NAME", help=STACK_HELP)


def run(options: Namespace) -> int:
    project = find_project()
    stack = chosen(project, options.stack)
    try:
        path = lock_of(options.name, project)
        pins = pins_of(*read_lock(path)).as_config()
    except RecipeError as error:
        raise CliError(str(error)) from error
    old = old_pins(project, stack)
    sets = [f"recipe={options.name}", *(f"pins.{key}={value}" for key, value in pins.items())]
    words = [word for pair in sets for word in ("--plaintext", pair)]
    pulumi(project, "config", "set-all", "--path", "--stack", stack, *words)
    for stale in sorted(set(old) - set(pins)):
        pulumi(project, "config", "rm", "--path", f"pins.{stale}", "--stack", stack)
    for key in sorted({*old, *pins}):
        if str(old.get(key)) != str(pins.get(key)):
            print(f"  {key:<12}{old.get(key, 'none')}\n  {'':<9}-> {pins.get(key, 'none')}")
    print(f"stack {stack} is pinned to {options.name}; next: pulumi preview --diff --stack {stack}")
    return 0


def lock_of(name: str, project: Path) -> Path:
    """The lock made of the recipe as it stands; made now when there is none yet."""
    folders = recipe_folders(project)
    recipe_path = find_recipe(name, folders)
    recipe, sha256 = read_recipe(recipe_path)
    for path in locks_of(recipe_path):
        if read_lock(path)[0].recipe_sha256 == sha256:
            return path
    _refuse_unresolvable(name, recipe)
    if recipe_path.parent.parent.resolve() != (project / "recipes").resolve():
        raise CliError(f"{name} has no lock and is not of this project: copy {recipe_path} to recipes/ and pin that")
    print(f"locking {name}: hashing the packages it names")
    with tempfile.TemporaryDirectory() as wheels:
        try:
            return relock(name, Path(wheels), recipe_path.parent.parent)
        except subprocess.CalledProcessError as error:
            raise CliError(f"pip could not fetch what {name} names (its words are above)") from error
        except OSError as error:
            raise CliError(f"cannot lock {name}: {error}") from error


def _refuse_unresolvable(name: str, recipe: Recipe) -> None:
    wishes = [recipe.model.repo, recipe.speculation.repo if recipe.speculation else None]
    foreign = [w for w in wishes if w and not w.startswith(PACKAGES)]
    if recipe.engine.package is None or foreign:
        what = ", ".join(foreign) or str(recipe.engine.image)
        raise CliError(
            f"this version cannot pin {name}: it names {what}; it pins Python packages and project files only"
        )


def old_pins(project: Path, stack: str) -> dict[str, object]:
    """The pins in the stack's config before, without asking Pulumi for secrets."""
    import yaml

    path = project / f"Pulumi.{stack.rpartition('/')[2]}.yaml"
    config = (yaml.safe_load(path.read_bytes()) or {}).get("config") or {} if path.exists() else {}
    found = [v for k, v in config.items() if k.endswith(":pins") and isinstance(v, dict)]
    return dict(found[0]) if found else {}
