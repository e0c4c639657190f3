"""What a command line does not say and a recipe must: version and image, precision, GPU. Each guess is told."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise

from ..faults import Faults
from .speculative import EDIT

# The release of each engine that this project's facts were read from.
DEFAULTS = {
    "vllm": ("0.32.0", "docker.io/vllm/vllm-openai:v0.32.0"),
    "sglang": ("0.5.20", "docker.io/lmsysorg/sglang:v0.5.20-cu130"),
    "llamacpp": ("2026.10.11549", None),
}
GPU = "H100-80GB"
_VERSION = re.compile(r"v?(\d+\.\d+(?:\.\d+)?(?:\.?(?:post|rc|dev)\d+)?)(?![\d.])")
_GPU = re.compile(r"(?:(\d+)x)?([A-Za-z][A-Za-z0-9._-]*?)(?:x(\d+))?")
_PRECISIONS = (
    (r"nvfp4|mxfp4|fp4", "fp4"), (r"int4|w4a16|awq|gptq|4bit|q4_?\w*", "int4"), (r"int8|w8a8|8bit|q8_0", "int8"),
    (r"fp8", "fp8"), (r"fp16|f16|float16|half", "f16"), (r"bf16|bfloat16", "bf16"),
)  # fmt: skip


def image_of(text: str) -> str:
    """An image by its whole name, as `docker pull` completes it."""
    first, slash, _ = text.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return text
    return f"docker.io/{text}" if slash else f"docker.io/library/{text}"


def carrier_of(
    engine: str, image: str | None, version: str | None, faults: Faults, assumed: list[str]
) -> tuple[dict[str, str], str]:
    """The image or package that carries the engine, and its version: said, read in the tag, or the one known here."""
    known, known_image = DEFAULTS.get(engine, ("", None))
    if image is None:
        if engine == "openai":
            faults.add("--image", None, "the image: nothing is known of this engine", EDIT)
        if version is None:
            assumed.append(f"engine.version: {known}, the {engine} that this release knows (--engine-version)")
        found = version or known
        if engine == "llamacpp":
            return {"package": "xllamacpp"}, found
        return {"image": (known_image or "").replace(known, found)}, found
    name = image.partition("@")[0]
    tag = name.rpartition(":")[2] if ":" in name.rpartition("/")[2] else ""
    match = _VERSION.match(tag)
    if version is None and not match:
        allowed = "an image whose tag begins with a release, as :v0.32.0, or --engine-version too"
        faults.add("--image", image, f"{allowed}; a tag like {tag or 'latest'!r} says nothing", EDIT)
    return {"image": image_of(image)}, version or (match[1] if match else "0")


def precision_of(repo: str, args: list[str], assumed: list[str]) -> str:
    """The precision of the weights, by --quantization or --dtype, else by the repository's name, else bf16."""
    words = [part for arg in args for part in arg.split("=", 1)]
    said = [b for a, b in pairwise(words) if a in ("--quantization", "-q", "--dtype")]
    if named := re.search(r"[^a-z0-9](q\d(?:_[a-z0-9]+)+)(?=\.|$)", repo.lower()):
        return named[1]  # a GGUF file says its own
    for source in (*said, repo.rpartition("/")[2]):
        for pattern, precision in _PRECISIONS:
            if re.search(rf"(?:^|[^a-z0-9])(?:{pattern})(?:[^a-z0-9]|$)", source.lower()):
                return precision
    assumed.append("model.precision: bf16, as the name says no other (--precision)")
    return "bf16"


def gpu_of(engine: str, count: str | None, said: str | None, faults: Faults, assumed: list[str]) -> dict[str, object]:
    """GPU type and count; the engine's own parallel size must agree with a count that is said."""
    if count is not None and not re.fullmatch(r"[1-9]\d?", count):
        faults.add("--tensor-parallel-size", count, "a whole number from 1", EDIT)
    match = _GPU.fullmatch(said or ("cpu" if engine == "llamacpp" else GPU))
    if match is None:
        faults.add("--gpu", said, f"TYPE, or as 2x{GPU}", EDIT)
        return {}
    if said is None and engine != "llamacpp":
        assumed.append(f"gpu.type: {GPU} (--gpu)")
    own = match[1] or match[3]
    if own and count and own != count:
        faults.add("--gpu", said, f"{count} of them, as --tensor-parallel-size says", EDIT)
    return {"type": match[2], "count": int(own or count or 1) if (own or count or "1").isdecimal() else 1}


def with_places(words: list[str], repo: str | None) -> list[str]:
    """An unknown image's words, with places for its model and its port."""
    found: list[str] = []
    for word in words:
        flag, equals, _ = word.partition("=")
        before = found[-1] if found else ""
        if flag in ("--port", "--server-port") and equals:
            word = f"{flag}={{port}}"
        elif before in ("--port", "--server-port"):
            word = "{port}"
        elif before in ("--host", "--server-name") and word == "0.0.0.0":
            word = "127.0.0.1"
        elif repo and (word == repo or word.endswith(f"={repo}")):
            word = word.removesuffix(repo) + "{weights}"
        found.append(word)
    return found


def wished(fields: dict[str, str], flags: Mapping[str, str], wishes: Mapping[str, str], faults: Faults) -> None:
    """Adds what was said beside the command line; both may say a thing, if they say the same."""
    for option, key in (
        ("model", "repo"), ("revision", "revision"), ("served-name", "name"), ("max-model-len", "max_model_len"),
        ("max-num-seqs", "max_num_seqs"),
    ):  # fmt: skip
        if option in wishes and fields.setdefault(key, wishes[option]) != wishes[option]:
            allowed = f"what {flags.get(key, 'the command line')} says: {fields[key]}"
            faults.add(f"--{option}", wishes[option], allowed, EDIT)
