"""`sluicegate recipe create`: a recipe file out of an engine's command line."""

from __future__ import annotations

import argparse
import shlex
import sys
from contextlib import suppress
from pathlib import Path

from sluicegate.recipes.command_line import Command, Draft, draft, recipe_text, split, take_apart
from sluicegate.recipes.engines import NAMES
from sluicegate.recipes.faults import RecipeError
from sluicegate.recipes.files import recipe_folders, recipe_names, split_name

from .stack import CliError, find_project

WISHES = {
    "model": "repository of the weights",
    "revision": "its commit, or the beginning of one",
    "served-name": "the name clients ask for (the part of NAME before the /)",
    "max-model-len": "tokens of context a request may use",
    "max-num-seqs": "requests at one time",
    "image": "the engine's image, tag and all",
    "engine-version": "where the image's tag does not say it",
    "precision": "of the weights, as fp8 (read from the model's name)",
    "gpu": "TYPE, or as 2xH100-80GB (H100-80GB)",
}
MOST = 256 * 1024  # characters of a command line
EPILOG = """examples:
  sluicegate recipe create qwen3.8-27b/mine --gpu H100-80GB -- \\
    docker run --gpus all -p 8000:8000 vllm/vllm-openai:v0.32.0 \\
    --model Qwen/Qwen3.8-27B-FP8 --max-model-len 32768 --max-num-seqs 256
  sluicegate recipe create qwen3.8-27b/mine --from run.sh
"""


def arguments(command: argparse.ArgumentParser) -> None:
    """Take every word as it is: `--arg --max-num-seqs=256` and an engine's own flags are none of this parser's."""
    command.prefix_chars = "\0"
    command.add_argument("words", nargs=argparse.REMAINDER)


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        prog="sluicegate recipe create",
        usage="%(prog)s NAME [OPTIONS] [--from FILE | -- COMMAND LINE]",
        description="Write a recipe from the command line that starts the engine: `docker run …`, `vllm serve …`.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    p.add_argument("name", metavar="NAME", help="MODEL/NAME of the recipe")
    p.add_argument("--from", dest="file", metavar="FILE", help="read the command line from a file (- for the input)")
    p.add_argument("--force", action="store_true", help="write over a recipe of this project")
    p.add_argument("--engine", choices=NAMES, help="where no command line says it (vllm)")
    for option, text in WISHES.items():
        p.add_argument(f"--{option}", metavar="X", help=text)
    p.add_argument("--arg", action="append", default=[], metavar="ARG", help="one more argument of the engine; repeat")
    p.add_argument("-e", "--env", action="append", default=[], metavar="NAME=VALUE", help="of the engine; repeat")
    return p


def run(options: argparse.Namespace) -> int:
    """Write the recipe and say what comes next. Raises CliError; then nothing was written."""
    ours, theirs = _parted(options.words)
    asked = parser().parse_args(ours)
    try:
        split_name(asked.name)
        made = _draft(asked, theirs)
    except RecipeError as error:
        raise CliError(f"no recipe was written\n{error}") from error
    project = find_project()
    path = project / "recipes" / f"{asked.name}.yaml"
    if path.exists() and not asked.force:
        raise CliError(f"{_shown(path)} is there already: give another name, or --force to write over it")
    shipped = asked.name in recipe_names(recipe_folders(project)[1:])
    _write(path, recipe_text(made.data))
    for why in dict.fromkeys(why for _, why in made.left_out):
        flags = dict.fromkeys(flag for flag, because in made.left_out if because == why)
        print(f"left out {', '.join(flags)}: {why}")
    for text in made.assumed:
        print(f"assumed {text}")
    if shipped:
        print(f"from now on this project's {asked.name} is used, not the one shipped with sluicegate")
    print(f"wrote {_shown(path)}; next: sluicegate recipe pin {asked.name}")
    return 0


def _parted(words: list[str]) -> tuple[list[str], list[str]]:
    """This command's own words and the engine's; the value of `--arg` may begin with hyphens."""
    at = words.index("--") if "--" in words else len(words)
    ours: list[str] = []
    for word in words[:at]:
        if ours and ours[-1] == "--arg":
            ours[-1] = f"--arg={word}"
        else:
            ours.append(word)
    return ours, words[at + 1 :]


def _draft(asked: argparse.Namespace, theirs: list[str]) -> Draft:
    if asked.file and theirs:
        raise CliError("--from and a command line after --: one of them")
    if asked.file:
        theirs = split(_text(asked.file))
    if theirs[1:3] == ["recipe", "create"]:
        return _published(asked, theirs[3:])
    if not theirs and not asked.model:
        raise CliError("what is to be served? --model, --from FILE, or the engine's command line after --")
    command = take_apart(theirs) if theirs else Command(asked.engine or "vllm")
    if asked.engine:
        command.engine = asked.engine
    command.words += asked.arg
    for pair in asked.env:
        name, equals, value = pair.partition("=")
        command.env[name] = value if equals else None
    wishes = {option: value for option in WISHES if (value := getattr(asked, option.replace("-", "_"))) is not None}
    return draft(asked.name, command, wishes)


def _published(asked: argparse.Namespace, words: list[str]) -> Draft:
    """The draft of a `… recipe create NAME …` that a page has, under the name and with the wishes given here."""
    ours, theirs = _parted(words)
    page = parser().parse_args(ours)
    for option in ("name", "engine", *WISHES):
        key = option.replace("-", "_")
        setattr(page, key, getattr(asked, key) or getattr(page, key))
    page.arg, page.env, page.file = page.arg + asked.arg, page.env + asked.env, None
    return _draft(page, theirs)


def _text(file: str) -> str:
    try:
        with sys.stdin if file == "-" else open(file, encoding="utf-8") as source:
            text = source.read(MOST + 1)
    except (OSError, ValueError) as error:
        raise CliError(f"--from {file}: cannot be read as text: {error}") from error
    if len(text) > MOST:
        raise CliError(f"--from {file}: more than {MOST} characters are no command line")
    return text


def _write(path: Path, text: str) -> None:
    """The whole file or none of it."""
    half = path.with_name(f".{path.name}.half")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        half.write_text(text, encoding="utf-8")
        half.replace(path)
    except OSError as error:
        with suppress(OSError):
            half.unlink()
        raise CliError(f"cannot write {_shown(path)}: {error.strerror}") from error


def _shown(path: Path) -> str:
    """A path as it can be typed: from here where it lies below."""
    here = Path.cwd()
    return shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))
