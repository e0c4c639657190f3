"""What moves between two locks: pins, arguments and environment, the bytes to fetch, and whether answers may change."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from .pins import pins_of

if TYPE_CHECKING:
    from .model import Lock, Source

ORDER = ("engine", "weights", "tokenizer", "drafter", "draftTokens", "lock")
PLATFORM = "linux/amd64"
# Flags that change what is answered and not only when, by any engine's name for them -> what they are.
ANSWERS = {
    "--quantization": "quantisation", "-q": "quantisation", "--model-format": "quantisation",
    "--quant-policy": "KV type", "--kv-cache-dtype": "KV type", "--cache-type-k": "KV type", "-ctk": "KV type",
    "--cache-type-v": "KV type", "-ctv": "KV type", "--dtype": "number type", "--chat-template": "chat template",
    "--chat-template-kwargs": "chat template", "--default-chat-template-kwargs": "chat template",
    "--jinja": "chat template",
    "--generation-config": "sampling defaults", "--override-generation-config": "sampling defaults",
    "--hf-overrides": "model config", "--json-model-override-args": "model config", "--rope-scaling": "model config",
    "--code-revision": "model code", "--trust-remote-code": "model code", "--tokenizer-mode": "tokenizer",
    "--language-model-only": "model config", "--lora-modules": "adapters", "--lora": "adapters",
}  # fmt: skip


def lines(old: Lock | None, old_pins: Mapping[str, object], new: Lock, digest: str) -> list[str]:
    """What `recipe diff` prints; empty when nothing moves. `old` None: known by its pins alone, or not at all."""
    pins = pins_of(new, digest).as_config()
    out = [line for key in ORDER for line in _moved(key, old_pins.get(key), pins.get(key))]
    if not out:
        return []
    if old is not None:
        out += _list_moved("argv", old.argv, new.argv)
        for name in sorted(old.env.keys() | new.env.keys()):
            out += _moved(f"env {name}", old.env.get(name), new.env.get(name))
        gpus = [f"{lock.gpu.count}x {lock.gpu.type}" for lock in (old, new)]
        out += _moved("gpu", *gpus) + _moved("served name", old.served_name, new.served_name)
    return [*out, _fetch_line(old_pins, new, pins), _answer_line(old, old_pins, new, pins)]


def _moved(key: str, old: object, new: object) -> list[str]:
    if old == new:
        return []
    return [f"  {key:<12}{_shown(old)}", f"  {'':<9}-> {_shown(new)}"]


def _shown(value: object) -> str:
    return "none" if value is None else str(value)


def _list_moved(key: str, old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    """Argument by argument: a flag and its value that moved stand on two lines."""
    for line in difflib.ndiff(
        [json.dumps(a, ensure_ascii=False) for a in old], [json.dumps(a, ensure_ascii=False) for a in new]
    ):
        if line[0] in "+-":
            yield f"  {key:<12}{line[0]} {line[2:]}"


def fetches(old_pins: Mapping[str, object], new: Lock, pins: Mapping[str, object]) -> dict[str, int]:
    """Bytes to fetch by pin, of those that move: the image of one platform as it is compressed, every file of a source.

    Layers that a machine has already are not fetched again, so an image's bytes are the most it can be.
    """
    from .model import SameAs

    platform = new.engine.platforms.get(PLATFORM) or next(iter(new.engine.platforms.values()), None)
    found = {"engine": platform.bytes if platform else 0, "weights": _bytes(new.sources.weights)}
    if not isinstance(new.sources.tokenizer, SameAs):
        found["tokenizer"] = _bytes(new.sources.tokenizer)
    if new.sources.drafter:
        found["drafter"] = _bytes(new.sources.drafter)
    return {key: size for key, size in found.items() if old_pins.get(key) != pins.get(key)}


def _bytes(source: Source) -> int:
    return sum(file.bytes for file in source.files)


def _fetch_line(old_pins: Mapping[str, object], new: Lock, pins: Mapping[str, object]) -> str:
    parts = fetches(old_pins, new, pins)
    if not parts:
        return "to fetch: nothing"
    return (
        f"to fetch: {size(sum(parts.values()))} ({', '.join(f'{key} {size(count)}' for key, count in parts.items())})"
    )


def size(count: int) -> str:
    """Bytes as a person reads them, in steps of 1,000."""
    for unit, step in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= step:
            return f"{count / step:.1f} {unit}"
    return f"{count} bytes"


def answers(old: Lock, new: Lock) -> list[str]:
    """Why the answers may change: what of weights, tokenizer, quantisation, KV type and the like moved."""
    why = []
    if old.sources.weights.ref != new.sources.weights.ref:
        why.append("weights")
    if old.sources.tokenizer_ref() != new.sources.tokenizer_ref():
        why.append("tokenizer")
    if old.shape.get("quantization") != new.shape.get("quantization"):
        why.append("quantisation")
    before, after = _flags(old.argv), _flags(new.argv)
    why += [what for flag, what in ANSWERS.items() if before.get(flag) != after.get(flag)]
    return list(dict.fromkeys(why))


def _flags(argv: Sequence[str]) -> dict[str, list[str]]:
    """Flag -> its values, whether after `=` or as the words that follow."""
    found: dict[str, list[str]] = {}
    flag = ""
    for word in argv:
        if word.startswith("-") and not word.lstrip("-")[:1].isdigit():
            flag, equals, value = word.partition("=")
            flag = flag.replace("_", "-")
            found.setdefault(flag, []).extend([value] if equals else [])
        elif flag:
            found[flag].append(word)
    return found


def _answer_line(old: Lock | None, old_pins: Mapping[str, object], new: Lock, pins: Mapping[str, object]) -> str:
    if not old_pins.get("weights"):
        return "nothing was pinned before: there are no answers to change"
    why = answers(old, new) if old else [key for key in ("weights", "tokenizer") if old_pins.get(key) != pins.get(key)]
    if why:
        return f"the answers may change: {', '.join(why)} moved"
    moved = [key for key in ORDER[:-1] if old_pins.get(key) != pins.get(key)]
    if old is not None and (old.argv, old.env) != (new.argv, new.env):
        moved += [name for name, a, b in (("argv", old.argv, new.argv), ("env", old.env, new.env)) if a != b]
    if moved:
        unsure = "" if old else "; its lock is not here, so its flags were not compared"
        return f"same model; only speed should change ({', '.join(moved)} moved): checked by ladder, not proven{unsure}"
    return "the same bits under another seal: neither answers nor speed change"
