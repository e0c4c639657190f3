"""Property values as the engine sends them: plain Python, secrets still in their wrapper, unknowns as a mark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf import json_format, struct_pb2

# Pulumi's marks on the wire and in state, the same in every SDK.
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET = "1b47061264138c4ac30d75fd1eb44270"

Properties = dict[str, Any]


def from_struct(struct: struct_pb2.Struct) -> Properties:
    """As plain Python; wrappers are kept."""
    return dict(json_format.MessageToDict(struct))


def to_struct(properties: Mapping[str, Any]) -> struct_pb2.Struct:
    """The other way; absent and None are the same to the engine, so None is left out."""
    struct = struct_pb2.Struct()
    struct.update({key: value for key, value in properties.items() if value is not None})
    return struct


def secret(value: Any) -> dict[str, Any]:
    """Wrapped, so that the engine encrypts it in state and hides it on screen."""
    return {SIGNATURE: SECRET, "value": value}


def reveal(value: Any) -> Any:
    """Without wrappers, at any depth."""
    if isinstance(value, dict):
        if value.get(SIGNATURE) == SECRET:
            return reveal(value.get("value"))
        return {key: reveal(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [reveal(inner) for inner in value]
    return value


def has(value: Any, mark: str) -> bool:
    """Whether a value holds a secret (mark SECRET) or something not yet known (mark UNKNOWN), at any depth."""
    if isinstance(value, dict):
        return value.get(SIGNATURE) == mark or any(has(inner, mark) for inner in value.values())
    if isinstance(value, list):
        return any(has(inner, mark) for inner in value)
    return bool(value == mark)


def changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """The keys whose values differ; the engine's own (`__defaults`) and the wrappers do not count."""
    keys = sorted(key for key in {*old, *new} if not key.startswith("__"))
    return [key for key in keys if reveal(old.get(key)) != reveal(new.get(key))]
