"""Which arguments of an engine are fields of a recipe, which are left out, and which are kept as they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..faults import Faults
from . import adapter
from .speculative import EDIT, read_object, scalar

_KEY, _TOKEN = "apiKey", "hfToken"
_SECRET = {"--api-key": _KEY, "--admin-api-key": _KEY, "--api-key-file": _KEY, "--hf-token": _TOKEN, "-hft": _TOKEN}
_SWITCHES = {"--disable-log-stats", "--enable-metrics", "--metrics"}  # owned, and without a value
_MANY = {"--served-model-name"}
_FIELDS = {
    "vllm": {
        "--model": "repo", "--revision": "revision", "--tokenizer": "tokenizer",
        "--tokenizer-revision": "tokenizer_revision", "--served-model-name": "name",
        "--max-model-len": "max_model_len", "--max-num-seqs": "max_num_seqs",
        "--tensor-parallel-size": "count", "-tp": "count", "--speculative-config": "spec", "-sc": "spec",
        "--spec-method": "spec.method", "--spec-model": "spec.model", "--spec-tokens": "spec.num_speculative_tokens",
    },
    "sglang": {
        "--model-path": "repo", "--model": "repo", "--revision": "revision", "--tokenizer-path": "tokenizer",
        "--served-model-name": "name", "--context-length": "max_model_len",
        "--max-running-requests": "max_num_seqs", "--tp": "count", "--tp-size": "count",
        "--tensor-parallel-size": "count", "--speculative-algorithm": "spec.method",
        "--speculative-draft-model-path": "spec.model", "--speculative-draft-model": "spec.model",
        "--speculative-draft-model-revision": "spec.revision", "--speculative-num-steps": "spec.steps",
        "--speculative-eagle-topk": "spec.topk", "--speculative-num-draft-tokens": "spec.window",
        "--speculative-dflash-block-size": "spec.window",
    },
    "llamacpp": {
        "--model": "file", "-m": "file", "--hf-repo": "repo", "-hf": "repo", "-hfr": "repo", "--alias": "name",
        "-a": "name", "--ctx-size": "ctx", "-c": "ctx", "--parallel": "max_num_seqs", "-np": "max_num_seqs",
        "--spec-type": "spec.method", "--model-draft": "spec.model", "-md": "spec.model",
        "--draft-max": "spec.num_speculative_tokens", "--draft": "spec.num_speculative_tokens",
    },
    "openai": {},
}  # fmt: skip


@dataclass
class Lifted:
    """An engine's arguments as what a recipe has fields for, the drafter's settings, and the rest in its order."""

    fields: dict[str, str] = field(default_factory=dict)
    spec: dict[str, Any] = field(default_factory=dict)
    flags: dict[str, str] = field(default_factory=dict)  # field -> the flag that said it
    args: list[str] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)


def lift(engine: str, words: list[str], faults: Faults) -> Lifted:
    """Takes an engine's arguments apart; every fault names its flag."""
    known, owned, found = _FIELDS[engine], adapter(engine).owned, Lifted()
    at = 0
    if engine in ("vllm", "sglang") and words and not words[0].startswith("-"):
        found.fields["repo"], found.flags["repo"], at = words[0], "the model", 1
    while at < len(words):
        word, at = words[at], at + 1
        said, equals, value = word.partition("=")
        flag, dot, key = said.replace("_", "-").partition(".")
        target = known.get(flag)
        if dot and target == "spec":
            target = f"spec.{key.replace('-', '_')}"
        elif dot:
            target = None
        if target is None and (flag not in owned or dot) and flag not in _SECRET:
            found.args.append(word)
            continue
        if flag in _SWITCHES:
            found.left_out.append((flag, owned[flag]))
            continue
        if not equals:
            if at == len(words) or words[at].startswith("--"):
                faults.add(said, None, "a value", EDIT)
                continue
            value, at = words[at], at + 1
            if at < len(words) and not words[at].startswith("-"):
                faults.add(said, words[at], "one name" if flag in _MANY else "one value", EDIT)
                at += 1
        if flag in _SECRET:
            mend = f"leave it out, and run `pulumi config set --secret sluicegate:{_SECRET[flag]}`"
            faults.add(said, "(not shown)", "no secret: everybody reads a recipe, stack config keeps secrets", mend)
        elif target is None:
            _leave_out(found, flag, value, owned, faults)
        else:
            _take(found, target, said, value, faults)
    return found


def _leave_out(found: Lifted, flag: str, value: str, owned: Mapping[str, str], faults: Faults) -> None:
    if flag == "--config":
        faults.add(flag, value, "its settings as arguments", EDIT)
    else:
        found.left_out.append((flag, owned[flag]))


def _take(found: Lifted, target: str, flag: str, value: str, faults: Faults) -> None:
    """One value into its field; the drafter's settings may come as one object, in pieces, or both."""
    where, _, key = target.partition(".")
    if where != "spec":
        if target in found.fields:
            faults.add(flag, value, f"said once; {found.flags[target]} said {found.fields[target]!r}", EDIT)
        found.fields[target], found.flags[target] = value, flag
        return
    found.flags.setdefault("spec", flag.partition(".")[0] if "." in flag or not key else flag)
    given = {key: value if key in ("model", "revision", "method") else scalar(value)} if key else read_object(value)
    if given is None:
        from .speculative import ALLOWED

        faults.add(flag, value, ALLOWED, EDIT)
        return
    for name, setting in given.items():
        name = name.replace("-", "_")
        if name in found.spec:
            faults.add(f"{flag} {name}", setting, f"said once; it was {found.spec[name]!r}", EDIT)
        found.spec[name] = setting
