"""The sections of a stack's config that are maps: `machine`, `cache`, `endpoint`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic_core import ValidationError

from sluicegate.recipes.faults import step

from .config_faults import ConfigFaults

# Both stand in the front's configuration as they are; the Front resource and the host hold them against the same rules.
PATH = r"^/[A-Za-z0-9._~/-]*\*?$"
DOMAIN = r"^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$"
# A data folder stands in the front's configuration too; a shell's ~ is nobody's folder here.
FOLDER = r"^[^~\"`{}\\][^\"`{}\\]*$"

ASKED = ("/v1/chat/completions", "/v1/models")  # by the front's own check, before its url is given out


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("text without control characters")
    return text


Line = Annotated[str, Field(min_length=1, max_length=4096), AfterValidator(_printable)]


def _number(value: Any) -> Any:
    """`pulumi config set --path` makes text of 0.5, and there is no way to make it a number."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


Number = Annotated[float, BeforeValidator(_number)]
Amount = Annotated[Number, Field(gt=0, le=1e6)]
Folder = Annotated[Line, Field(pattern=FOLDER)]


def _answerable(paths: tuple[str, ...]) -> tuple[str, ...]:
    for asked in ASKED:
        if not any(fnmatchcase(asked, path) for path in paths):
            raise ValueError(f"paths that let {' and '.join(ASKED)} through: the front is checked there")
    return paths


Path = Annotated[str, Field(pattern=PATH, max_length=1024)]
Paths = Annotated[tuple[Path, ...], AfterValidator(_answerable)]


class _Section(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True, allow_inf_nan=False
    )


class MachineSettings(_Section):
    """Where to look for a machine and what it may cost; `root` is the data folder on cloud local."""

    regions: tuple[Line, ...] = ()
    markets: tuple[Line, ...] = ()
    max_price: Amount | None = None
    price: Amount | None = None
    disk_gb: Amount | None = None
    replace: Literal["new-first", "one-at-a-time"] = "new-first"
    root: Folder | None = None


class CacheSettings(_Section):
    """The disk for weights, and whether it outlives the stack."""

    size_gb: Amount = 200
    keep: bool = True


class EndpointSettings(_Section):
    """What clients see, and how long they and the gate wait (seconds)."""

    domain: Annotated[str, Field(pattern=DOMAIN, max_length=253)] | None = None
    port: int | None = Field(None, ge=1, le=65535)
    paths: Paths = ("/v1/*",)
    hold_s: int = Field(120, ge=0, le=3600)
    gate_deadline_s: Annotated[Number, Field(ge=1, le=86400)] = 1200
    retry: int = Field(0, ge=0, le=1_000_000)
    key_rotation: Line = "1"
    key_overlap_s: Number = Field(60, ge=0, le=86400)


def read_section(model: type[Any], key: str, values: Mapping[str, Any], faults: ConfigFaults) -> Any:
    """The section as its model, or None when it left a fault."""
    section = values.get(key, {})
    rotation = section.get("keyRotation")
    if model is EndpointSettings and isinstance(rotation, int) and not isinstance(rotation, bool):
        section = {**section, "keyRotation": str(rotation)}  # YAML and `pulumi config set` make a number of "2"
    try:
        # By way of JSON: strict about types there, yet arrays become tuples.
        return model.model_validate_json(json.dumps(section), strict=True)
    except (ValidationError, RecursionError) as error:
        if isinstance(error, RecursionError):
            faults.add(key, None, "shallower nesting", faults.remove(key))
            return None
        for item in error.errors(include_url=False, include_context=False):
            path = key + "".join(f"[{part}]" if isinstance(part, int) else step(part) for part in item["loc"])
            if item["type"] == "extra_forbidden":
                allowed = "one of: " + ", ".join(to_camel(name) for name in model.model_fields)
                faults.add(path, item["input"], allowed, faults.remove(path))
            else:
                first = f"{path}[0]" if item["type"] == "tuple_type" else path
                faults.add(path, item["input"], _allowed(item["msg"]), faults.put(first, "VALUE"))
        return None


def _allowed(message: str) -> str:
    if "pattern" in message:
        if FOLDER in message:
            return "a folder's path without quotes, braces, backslashes or a ~ at its start"
        return "a host name, as llm.example.org" if DOMAIN in message else "a path like /v1/*, no spaces or quotes"
    text = message.removeprefix("Value error, ").removeprefix("Input should be ").removeprefix("a valid ")
    return text[0].lower() + text[1:]
