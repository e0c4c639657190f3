"""`sluicegate recipe diff A B`, or `diff RECIPE` against a stack's pins: what would move, and what it costs."""

from __future__ import annotations

import subprocess
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.recipes.diff import lines
from sluicegate.recipes.faults import RecipeError
from sluicegate.recipes.files import find_lock, read_lock, recipe_folders
from sluicegate.recipes.pinning import locked, resolved, sealed
from sluicegate.recipes.pins import pins_of
from sluicegate.recipes.resolve import Resolver
from sluicegate.recipes.stackfile import project_name, read_stack, recipe_and_pins, stack_file

from .recipe_pin import TOKEN_HELP, token
from .stack import STACK_HELP, CliError, chosen, find_project

if TYPE_CHECKING:
    from sluicegate.recipes.model import Lock


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("names", nargs="+", metavar="RECIPE|DIGEST", help="two to compare; or one, against the stack")
    parser.add_argument("-s", "--stack", metavar="NAME", help=STACK_HELP)
    parser.add_argument("--token-env", metavar="VAR", help=TOKEN_HELP)


def run(options: Namespace) -> int:
    if len(options.names) > 2:
        raise CliError("two recipes or locks, or one against the stack's pins")
    project = find_project()
    try:
        if len(options.names) == 2:
            if options.stack:
                raise CliError("two recipes are compared without a stack: leave --stack out, or one recipe")
            (_, old, old_digest), (_, new, digest) = (_named(name, project) for name in options.names)
            return _print(options.names[0], old, pins_of(old, old_digest).as_config(), options.names[1], new, digest)
        return _against_stack(options, project)
    except RecipeError as error:
        raise CliError(str(error)) from error
    except subprocess.CalledProcessError as error:
        raise CliError(f"pip could not fetch what {options.names[-1]} names (its words are above)") from error


def _against_stack(options: Namespace, project: Path) -> int:
    stack, name, folders = chosen(project, options.stack), options.names[0], recipe_folders(project)
    prefix = project_name(project)
    _, config = read_stack(project, stack)
    if not stack_file(project, stack).exists():
        raise CliError(
            f"there is no {stack_file(project, stack).name}: run `sluicegate recipe pin {name} --stack {stack}`"
        )
    recipe, pins = recipe_and_pins(config, prefix)
    if "/" in name:
        has_secret = f"{prefix}:hfToken" in (config.get("config") or {})
        resolver = Resolver(project, lambda: token(options.token_env, project, stack, has_secret))
        new, digest, _ = resolved(name, folders, resolver)
    else:
        _, new, digest = sealed(None, name, folders)
    old = _old(recipe, pins, folders)
    code = _print(f"stack {stack}", old, pins, new.recipe, new, digest)
    if digest != pins.get("lock"):
        print(f"to take it: sluicegate recipe pin {name if '/' in name else f'--lock {name}'} --stack {stack}")
    return code


def _old(recipe: object, pins: Mapping[str, object], folders: Sequence[Path]) -> Lock | None:
    """The lock that a stack is pinned to, where its file is still here and whole."""
    try:
        lock, digest = read_lock(find_lock(str(recipe), str(pins.get("lock")), folders))
    except RecipeError:
        return None
    return lock if digest == pins.get("lock") else None


def _named(name: str, project: Path) -> tuple[str, Lock, str]:
    """A recipe's lock of today, or the lock with a digest."""
    folders = recipe_folders(project)
    return locked(name, folders) if "/" in name else sealed(None, name, folders)


def _print(a: str, old: Lock | None, old_pins: Mapping[str, object], b: str, new: Lock, digest: str) -> int:
    """One block of lines, old -> new; exit code 0 whether or not something moves."""
    found = lines(old, old_pins, new, digest)
    print(f"{a} -> {b}" if found else f"nothing moves from {a} to {b}")
    for line in found:
        print(line)
    return 0
