"""From an engine's command line, as it stands in a page or a script, to a recipe as data and as YAML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .engines import adapter, placeholder_sources
from .engines.flags import lift
from .engines.guesses import carrier_of, gpu_of, precision_of, wished, with_places
from .engines.settings import environment, llamacpp, number, same_tokenizer, speculation_of
from .engines.speculative import EDIT
from .engines.words import Command, split, take_apart
from .faults import Faults
from .files import split_name

if TYPE_CHECKING:
    from .model import Recipe

__all__ = ["Command", "Draft", "draft", "recipe_text", "split", "take_apart"]

FLOOR = 0.2  # share of drafted tokens; a drafter below it costs more than it gives
_COUNTED = ("vllm", "llamacpp")  # engines whose drafts the gate can count


@dataclass
class Draft:
    """A recipe that was read from a command line; `assumed` and `left_out` (flag, why) are for whoever wrote that."""

    data: dict[str, Any]
    recipe: Recipe
    assumed: list[str] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)


def draft(name: str, command: Command, wishes: Mapping[str, str]) -> Draft:
    """The recipe `name` of a command line. Raises RecipeError with every fault, each under its flag.

    `wishes` say what the command line does not, by the name of an option without its dashes: model, revision,
    served-name, max-model-len, max-num-seqs, image, engine-version, precision, gpu.
    """
    from .fields import validate
    from .model import Recipe

    model_name, _ = split_name(name)
    engine, faults, assumed = command.engine or "vllm", Faults(), list[str]()
    found = lift(engine, command.words, faults)
    fields, flags = found.fields, found.flags
    wished(fields, flags, wishes, faults)
    if engine == "llamacpp":
        llamacpp(found, faults)
    if "repo" not in fields:
        faults.add("--model", None, "a model: right after `serve`, or by --model", EDIT)
    same_tokenizer(fields, faults)
    speculation, more = speculation_of(engine, found, faults)
    image = wishes.get("image") or command.image
    carrier, version = carrier_of(engine, image, wishes.get("engine-version"), faults, assumed)
    gpu = gpu_of(engine, fields.get("count"), wishes.get("gpu"), faults, assumed)
    repo = fields.get("repo", "")
    serve: dict[str, Any] = {"name": fields.get("name") or model_name}
    for key, flag in (("max_model_len", "--max-model-len"), ("max_num_seqs", "--max-num-seqs")):
        serve[key] = number(fields.get(key), flags.get(key, flag), faults)
    env = environment(command.env, adapter(engine).owned_env, found.left_out, faults)
    faults.raise_any()
    model = {"repo": repo, "revision": fields.get("revision")}
    model["precision"] = wishes.get("precision") or precision_of(repo, found.args, assumed)
    data = {
        "engine": {"name": engine, "version": version, **carrier},
        "model": {key: value for key, value in model.items() if value is not None},
        "speculation": speculation,
        "serve": serve,
        "args": more + (with_places(found.args, repo) if engine == "openai" else found.args),
        "env": env,
        "gpu": gpu,
        "gate": {"acceptance_floor": FLOOR, "not_helping": "fail"} if speculation and engine in _COUNTED else None,
    }
    data = {key: value for key, value in data.items() if value is not None}
    for key, text in _texts(data):
        if not text.isprintable():  # bytes that no locale could read among them
            faults.add(key, text, "text without control characters", EDIT)
    faults.raise_any()
    recipe = validate(Recipe, data, "", EDIT)
    adapter(engine).compile(recipe, placeholder_sources(recipe))
    return Draft(data, recipe, assumed, command.left_out + found.left_out)


def _texts(value: object, key: str = "") -> Iterator[tuple[str, str]]:
    """Every string of plain data, with its dotted key."""
    if isinstance(value, str):
        yield key, value
    for name, part in value.items() if isinstance(value, dict) else ():
        yield from _texts(part, f"{key}.{name}" if key else name)
    for index, part in enumerate(value) if isinstance(value, list) else ():
        yield from _texts(part, f"{key}[{index}]")


def recipe_text(data: Mapping[str, Any]) -> str:
    """A recipe as its file: a line for each key, as the shipped ones are written."""
    import yaml

    def flow(value: object) -> str:
        return str(yaml.safe_dump(value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=1 << 20))

    return "".join(f"{key}: {flow(value).strip()}\n" for key, value in data.items())
