"""Property values between Pulumi's protobuf structs and plain Python.

Secrets arrive wrapped and are unwrapped here; a resource names the outputs that leave wrapped again. What is not yet
known is the one object UNKNOWN, equal to nothing but itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from google.protobuf import struct_pb2

SIG = "4dabf18193072939515e22adb298388d"
SECRET = "1b47061264138c4ac30d75fd1eb44270"
OUTPUT = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
UNKNOWN_TEXT = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
# How the engine writes an unknown value whose type it knows: boolean, number, string, array, object.
UNKNOWN_TEXTS = {
    "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7", "3eeb2bf0-c639-47a8-9e75-3b44932eb421", UNKNOWN_TEXT,
    "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2", "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
}  # fmt: skip


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
            if "value" in fields:
                return _decode(fields["value"])
            return UNKNOWN if fields[SIG].string_value == OUTPUT else None
        return decode(value.struct_value)
    if kind == "list_value":
        return [_decode(v) for v in value.list_value.values]
    if kind == "string_value":
        return UNKNOWN if value.string_value in UNKNOWN_TEXTS else value.string_value
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


def secret_names(*structs: struct_pb2.Struct) -> set[str]:
    """The top-level names under which something secret arrived, at any depth."""
    return {name for struct in structs for name, value in struct.fields.items() if any(_secret_values(value))}


def secret_texts(*structs: struct_pb2.Struct) -> set[str]:
    """Every text that arrived as a secret, or inside of one."""
    values = (value for struct in structs for value in struct.fields.values())
    return {text for value in values for secret in _secret_values(value) for text in _texts(_decode(secret))}


def _secret_values(value: struct_pb2.Value) -> Iterator[struct_pb2.Value]:
    fields = value.struct_value.fields
    # Looked up with `in` first: a map of messages makes what is asked for.
    if SIG in fields and (fields[SIG].string_value == SECRET or ("secret" in fields and fields["secret"].bool_value)):
        yield value
        return
    for inner in [*fields.values(), *value.list_value.values]:
        yield from _secret_values(inner)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)
