"""Values of an engine's arguments and environment, turned into a recipe's: numbers, the drafter, what is secret."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from ..faults import Faults
from .flags import Lifted
from .sglang import ALGORITHMS
from .speculative import EDIT, to_speculation

_NUMBER = re.compile(r"(\d{1,12})([kKmMgG]?)")
_UNITS = {"": 1, "k": 10**3, "K": 2**10, "m": 10**6, "M": 2**20, "g": 10**9, "G": 2**30}  # as vLLM reads them
_SECRET_PARTS = {"TOKEN", "SECRET", "PASSWORD", "PASSWD", "KEY", "APIKEY", "CREDENTIAL", "CREDENTIALS"}
_SECRET_VALUE = re.compile(r"(hf|sk|ghp|glpat|nvapi)[-_][A-Za-z0-9_-]{8,}")
_GPU_CHOICE = {"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"}
_LLAMACPP = {"draft-simple": "draft_model", "ngram-simple": "ngram"}


def number(text: str | None, flag: str, faults: Faults) -> int:
    """A count of tokens or requests as the engines take it: `32768`, `32K` (x 1024), `32k` (x 1000)."""
    match = _NUMBER.fullmatch(text or "")
    if match and (found := int(match[1]) * _UNITS[match[2]]):
        return found
    faults.add(flag, text, "a whole number: what fits by itself would differ from machine to machine", EDIT)
    return 1


def environment(
    given: Mapping[str, str | None], owned: Mapping[str, str], left_out: list[tuple[str, str]], faults: Faults
) -> dict[str, str]:
    """What of an environment goes into a recipe. What is secret is a fault, whose text does not hold it."""
    found = {}
    for name, value in given.items():
        place = "hfToken" if name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN") else "apiKey" if "API_KEY" in name else None
        if place or _SECRET_PARTS & set(name.upper().split("_")) or _SECRET_VALUE.fullmatch(value or ""):
            mend = f"leave it out, and run `pulumi config set --secret sluicegate:{place or 'NAME'}`"
            allowed = "no secret: everybody reads a recipe, stack config keeps secrets"
            faults.add(f"-e {name}", "(not shown)", allowed, mend)
        elif name in _GPU_CHOICE:
            left_out.append((name, "gpu.count GPUs of the machine are given to the engine"))
        elif name in owned:
            left_out.append((name, owned[name]))
        elif value is None:
            faults.add(f"-e {name}", None, "NAME=VALUE: a recipe knows no caller's environment", EDIT)
        elif value:
            found[name] = value
    return found


def speculation_of(engine: str, found: Lifted, faults: Faults) -> tuple[dict[str, Any] | None, list[str]]:
    """The drafter, and words of `args` for what of it is no field; None where nothing drafts."""
    if not found.spec:
        return None, []
    flag, spec = found.flags["spec"], dict(found.spec)
    if engine == "sglang":
        spec = _sglang(spec, flag, faults)
    if engine == "llamacpp":
        spec["method"] = _LLAMACPP.get(str(spec.get("method")), spec.get("method"))
        if isinstance(spec.get("model"), str):
            spec["model"] = local_file(spec["model"], "--model-draft", faults)
    return to_speculation(spec, found.fields.get("repo"), found.fields.get("revision"), flag, faults)


def _sglang(spec: dict[str, Any], flag: str, faults: Faults) -> dict[str, Any]:
    """SGLang's pieces under vLLM's names; its window has the known token too."""
    window, steps, topk = (spec.pop(key, None) for key in ("window", "steps", "topk"))
    method = str(spec.get("method", "")).upper()
    spec["method"] = {value: key for key, value in ALGORITHMS.items()}.get(method, spec.get("method"))
    if spec["method"] == "eagle" and spec.get("model") is None:
        spec["method"] = "mtp"
    if topk not in (None, 1) or (type(window) is int and type(steps) is int and steps not in (1, window - 1)):
        faults.add(flag, f"{steps} steps, {topk} a step, {window} in all", "one chain: topk 1, steps + 1 in all", EDIT)
    if type(window) is not int and type(steps) is int:
        window = steps + 1
    return spec | {"num_speculative_tokens": window - 1 if type(window) is int else None}


def llamacpp(found: Lifted, faults: Faults) -> None:
    """llama-server's file, and its context, which is that of all requests together."""
    fields = found.fields
    if "file" in fields:
        fields["repo"] = local_file(fields.pop("file"), found.flags["file"], faults)
    fields.setdefault("max_num_seqs", "1")
    if "ctx" in fields:
        total, each = number(fields["ctx"], "--ctx-size", faults), number(fields["max_num_seqs"], "--parallel", faults)
        if total % each:
            faults.add("--ctx-size", total, f"a multiple of --parallel {each}", EDIT)
        fields["max_model_len"] = str(max(1, total // each))


def local_file(path: str, flag: str, faults: Faults) -> str:
    """A file of the project as a recipe names it."""
    if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
        faults.add(flag, path, "a path inside the project, relative to the folder that holds recipes/", EDIT)
    return f"file:{PurePosixPath(path)}"


def same_tokenizer(fields: dict[str, str], faults: Faults) -> None:
    """A tokenizer that is named must be the model's own: a recipe has no other."""
    for key, flag, own in (
        ("tokenizer", "--tokenizer", "repo"),
        ("tokenizer_revision", "--tokenizer-revision", "revision"),
    ):
        if key in fields and fields[key] != fields.get(own):
            faults.add(flag, fields[key], f"the model's own ({fields.get(own) or 'none'}), or nothing", EDIT)
