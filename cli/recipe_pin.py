"""`sluicegate recipe pin RECIPE`: lock a recipe as the world is now, and write its pins into the stack's config.

`--lock DIGEST` takes a lock that is there and asks nobody: how what was tried on one stack goes to another.
"""

from __future__ import annotations

import os
import subprocess
from argparse import ArgumentParser, Namespace
from pathlib import Path

from sluicegate.recipes.faults import RecipeError
from sluicegate.recipes.files import find_recipe, recipe_folders, write_lock
from sluicegate.recipes.pinning import promoted, resolved
from sluicegate.recipes.pins import pins_of
from sluicegate.recipes.resolve import Resolver
from sluicegate.recipes.stackfile import edited, project_name, read_stack, recipe_and_pins, stack_file, write_whole

from .stack import STACK_HELP, CliError, chosen, find_project, pulumi

TOKEN_HELP = "the variable with the hub's token; else the stack's secret hfToken, HF_TOKEN, or that of `hf auth login`"


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="RECIPE", help="as smollm2-135m/q4; may be left out with --lock")
    parser.add_argument("-s", "--stack", metavar="NAME", help=STACK_HELP)
    parser.add_argument("--lock", metavar="DIGEST", help="take this lock (its digest, or 12 hex) and ask nobody")
    parser.add_argument("--token-env", metavar="VAR", help=TOKEN_HELP)


def run(options: Namespace) -> int:
    if not options.name and not options.lock:
        raise CliError("which recipe? `sluicegate recipe list` names them")
    project = find_project()
    stack = chosen(project, options.stack)
    try:
        return _pin(options, project, stack)
    except RecipeError as error:
        count = len(error.faults)
        raise CliError(str(error) if count == 1 else f"nothing was pinned, {count} faults\n{error}") from error
    except subprocess.CalledProcessError as error:
        raise CliError(f"pip could not fetch what {options.name} names (its words are above)") from error
    except OSError as error:
        raise CliError(f"cannot pin: {error.filename or stack_file(project, stack)}: {error.strerror}") from error


def _pin(options: Namespace, project: Path, stack: str) -> int:
    """Everything that can fail comes before the first write; a lock whose pins cannot be written goes again."""
    prefix, file, folders = project_name(project), stack_file(project, stack), recipe_folders(project)
    data, config = read_stack(project, stack)
    if not file.exists():
        pulumi(project, "config", "--stack", stack)  # a stack that has no config yet, or a mistyped name
    if options.lock:
        recipe, lock, digest = promoted(options.name, options.lock, folders)
        new = False
    else:
        recipe = options.name
        _own_files(recipe, project)
        has_secret = f"{prefix}:hfToken" in (config.get("config") or {})
        resolver = Resolver(project, lambda: token(options.token_env, project, stack, has_secret))
        lock, digest, new = resolved(recipe, folders, resolver)
    pins = pins_of(lock, digest).as_config()
    after = edited(data, file.name, prefix, recipe, pins)
    written = write_lock(project / "recipes", lock) if new else None
    try:
        if after != data:
            write_whole(file, after)
    except BaseException:
        if written:
            written.unlink(missing_ok=True)
        raise
    if written:
        print(f"locked {recipe}: {written.relative_to(project)}")
    show(recipe_and_pins(config, prefix)[1], pins)
    state = "is pinned" if after != data else "was pinned already"
    print(f"stack {stack} {state} to {recipe}; next: pulumi preview --diff --stack {stack}")
    return 0


def show(old: dict[str, object], new: dict[str, object]) -> None:
    """Each pin that moves, old -> new."""
    for key in sorted({*old, *new}):
        if str(old.get(key)) != str(new.get(key)):
            print(f"  {key:<12}{old.get(key, 'none')}\n  {'':<9}-> {new.get(key, 'none')}")


def token(variable: str | None, project: Path, stack: str, has_secret: bool) -> str | None:
    """The token that the machine will use, where the stack has one: whether its licence holds is seen now.

    None leaves it to the hub's client, which knows HF_TOKEN and `hf auth login`.
    """
    if variable:
        if not (value := os.environ.get(variable, "").strip()):
            raise CliError(f"--token-env {variable}: there is nothing in that variable")
        return value
    return pulumi(project, "config", "get", "hfToken", "--stack", stack).strip() if has_secret else None


def _own_files(recipe: str, project: Path) -> None:
    """A recipe of the library that names files of its project is of no use in another."""
    path = find_recipe(recipe, recipe_folders(project))
    foreign = path.parent.parent.resolve() != (project / "recipes").resolve()
    if foreign and "file:" in path.read_text(encoding="utf-8", errors="replace"):
        raise CliError(f"{recipe} names files and is not of this project: copy {path} to recipes/ and pin that")
