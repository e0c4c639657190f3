"""Property values between Pulumi's protobuf structs and plain Python.

Secrets arrive wrapped and are unwrapped here; a resource names the outputs that leave wrapped again. What is not yet
known is the one object UNKNOWN, equal to nothing but itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from google.protobuf import struct_pb2

SIG = "4dabf18193072939515e22adb298388d"
SECRET = "1b47061264138c4ac30d75fd1eb44270"
OUTPUT = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
UNKNOWN_TEXT = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"


class _Unknown:
    def __repr__(self) -> str:
        return "UNKNOWN"

    def __bool__(self) -> bool:
        raise TypeError("the truth of an unknown value was asked for")


UNKNOWN: Any = _Unknown()


def decode(struct: struct_pb2.Struct) -> dict[str, Any]:
    return {k: _decode(v) for k, v in struct.fields.items()}


def _decode(value: struct_pb2.Value) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        fields = value.struct_value.fields
        if SIG in fields:
            if fields[SIG].string_value == OUTPUT and "value" not in fields:
                return UNKNOWN
            return _decode(fields["value"])
        return decode(value.struct_value)
    if kind == "list_value":
        return [_decode(v) for v in value.list_value.values]
    if kind == "string_value":
        return UNKNOWN if value.string_value == UNKNOWN_TEXT else value.string_value
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() else number
    return value.bool_value if kind == "bool_value" else None


def encode(values: Mapping[str, Any], secrets: Iterable[str] = ()) -> struct_pb2.Struct:
    struct = struct_pb2.Struct()
    for key, value in values.items():
        target = struct.fields[key]
        if key in secrets and value is not None:
            wrapped = target.struct_value.fields
            wrapped[SIG].string_value = SECRET
            target = wrapped["value"]
        _encode(target, value)
    return struct


def _encode(target: struct_pb2.Value, value: Any) -> None:
    if value is UNKNOWN:
        target.string_value = UNKNOWN_TEXT
    elif value is None:
        target.null_value = struct_pb2.NULL_VALUE
    elif isinstance(value, bool):
        target.bool_value = value
    elif isinstance(value, (int, float)):
        target.number_value = value
    elif isinstance(value, str):
        target.string_value = value
    elif isinstance(value, Mapping):
        target.struct_value.CopyFrom(encode(value))
    else:
        target.list_value.SetInParent()
        for item in value:
            _encode(target.list_value.values.add(), item)


def known(value: Any) -> bool:
    """Whether a value holds nothing unknown at any depth."""
    if isinstance(value, dict):
        return all(known(v) for v in value.values())
    if isinstance(value, list):
        return all(known(v) for v in value)
    return value is not UNKNOWN
