"""What the models of this room are made of: field types, and validation whose errors are faults with dotted keys."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from .faults import Fault, RecipeError
from .sources import ALLOWED_PATH, parse_ref, safe_path


class Plain(BaseModel):
    """Frozen, strict about types, and without a key it does not know."""

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
EngineName = Literal["vllm", "sglang", "llamacpp", "openai"]

M = TypeVar("M", bound=Plain)


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
        if part in ("[key]", "[source]", "[same_as]"):
            # Not a key of the file: the branch of a union, or the word that the key before it is itself wrong.
            value = item["input"] if part == "[key]" else value
            continue
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
