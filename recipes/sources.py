"""Source references: the four ways to name exact bits.

- `hf:REPO@<40 hex commit>`: a Hugging Face repository at one commit
- `oci:REGISTRY/REPO@sha256:<64 hex>`: a container image by digest
- `pypi:NAME==VERSION#sha256:<64 hex>`: a wheel, with the hash of the wheel file
- `file:PATH#sha256:<64 hex>`: a file of the project, PATH relative to the folder that holds `recipes/`
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .faults import Fault, RecipeError

SHA256 = re.compile(r"sha256:[0-9a-f]{64}")
HUB_REPO = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
_HEX64 = r"sha256:(?P<sha256>[0-9a-f]{64})"
_HUB = re.compile(r"hf:(?P<repo>(?:[A-Za-z0-9][\w.-]*/)?[A-Za-z0-9][\w.-]*)@(?P<commit>[0-9a-f]{40})", re.ASCII)
_IMAGE = re.compile(
    r"oci:(?P<name>(?:localhost|[a-z0-9][a-z0-9-]*(?:\.[a-z0-9-]+)+|[a-z0-9-]+(?=:\d))(?::\d{1,5})?"
    rf"(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)+)@{_HEX64}"
)
_WHEEL = re.compile(
    rf"pypi:(?P<name>[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)==(?P<version>[A-Za-z0-9][\w.!+-]*)#{_HEX64}", re.ASCII
)
_FILE = re.compile(rf"file:(?P<path>.+)#{_HEX64}", re.DOTALL)

ALLOWED_REF = (
    "hf:REPO@<40 hex commit>, oci:REGISTRY/REPO@sha256:<64 hex>, pypi:NAME==VERSION#sha256:<64 hex> "
    "or file:PATH#sha256:<64 hex>; never a tag, a branch or a short commit"
)
ALLOWED_PATH = "a relative path of plain names: no '..', no leading '/', no backslash, no control character"


@dataclass(frozen=True)
class HubRef:
    """A repository of the hub at one full commit."""

    repo: str
    commit: str

    def __str__(self) -> str:
        return f"hf:{self.repo}@{self.commit}"


@dataclass(frozen=True)
class ImageRef:
    """A container image by digest; `name` is registry and repository."""

    name: str
    sha256: str

    def __str__(self) -> str:
        return f"oci:{self.name}@sha256:{self.sha256}"


@dataclass(frozen=True)
class WheelRef:
    """A wheel of a Python package index, by the hash of the wheel file itself."""

    name: str
    version: str
    sha256: str

    def __str__(self) -> str:
        return f"pypi:{self.name}=={self.version}#sha256:{self.sha256}"


@dataclass(frozen=True)
class FileRef:
    """A file of the project, by path (relative to the folder that holds `recipes/`) and content."""

    path: str
    sha256: str

    def __str__(self) -> str:
        return f"file:{self.path}#sha256:{self.sha256}"


Ref = HubRef | ImageRef | WheelRef | FileRef


def safe_path(path: str) -> bool:
    """Whether a path stays inside the folder it is joined to, on every system."""
    parts = path.split("/")
    return bool(path) and path.isprintable() and "\\" not in path and not {"", ".", ".."} & set(parts)


def parse_ref(text: object, key: str = "ref", mend: str = "name the exact bits") -> Ref:
    """A reference from its text. Raises RecipeError, one fault under `key`, for what names no exact bits."""
    if isinstance(text, str):
        if match := _HUB.fullmatch(text):
            return HubRef(match["repo"], match["commit"])
        if match := _IMAGE.fullmatch(text):
            return ImageRef(match["name"], match["sha256"])
        if match := _WHEEL.fullmatch(text):
            return WheelRef(match["name"], match["version"], match["sha256"])
        if (match := _FILE.fullmatch(text)) and safe_path(match["path"]):
            return FileRef(match["path"], match["sha256"])
    allowed = f"file: with {ALLOWED_PATH}" if isinstance(text, str) and _FILE.fullmatch(text) else ALLOWED_REF
    raise RecipeError([Fault(key, text, allowed, mend)])


def pin_text(ref: str) -> str:
    """How a reference reads in the pins: images go without `oci:`, as every container tool writes them."""
    return ref.removeprefix("oci:")


def parse_pin(text: object, key: str, mend: str) -> Ref:
    """A pin back to its reference; the reverse of `pin_text`. Raises RecipeError as `parse_ref` does."""
    if isinstance(text, str) and not text.startswith(("hf:", "oci:", "pypi:", "file:")):
        try:
            return parse_ref(f"oci:{text}")
        except RecipeError:
            raise RecipeError([Fault(key, text, ALLOWED_REF, mend)]) from None
    return parse_ref(text, key, mend)
