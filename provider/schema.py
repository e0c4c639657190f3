"""The form of the resources: Pulumi's schema of the package, and inputs held against it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .resource import Resource, Values
from .values import UNKNOWN

VERSION = "0.1.0"
_PYTHON: dict[str, tuple[type, ...]] = {
    "string": (str,), "number": (int, float), "integer": (int,), "boolean": (bool,), "array": (list,),
    "object": (dict,),
}  # fmt: skip


def form_faults(resource: Resource, inputs: Values) -> list[tuple[str, str]]:
    """(property, reason) for each input that is missing, unknown or of another type; no value is repeated."""
    allowed = {**resource.required, **resource.optional}
    faults = [(name, f"missing; expected a {kind}")
              for name, kind in resource.required.items() if inputs.get(name) is None]  # fmt: skip
    for name, value in inputs.items():
        if name not in allowed:
            faults.append((name, f"unknown; allowed: {', '.join(sorted(allowed))}"))
        elif not (value is None or value is UNKNOWN or _is(value, allowed[name])):
            faults.append((name, f"expected a {allowed[name]}, found a {_kind_of(value)}"))
    return faults


def _is(value: Any, kind: str) -> bool:
    return isinstance(value, _PYTHON[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _kind_of(value: Any) -> str:
    return next(kind for kind in ("string", "boolean", "number", "array", "object") if _is(value, kind))


def schema(resources: Iterable[Resource]) -> dict[str, Any]:
    """Pulumi's schema of the package, for `pulumi package get-schema` and YAML programs."""
    kinds = {"array": {"type": "array", "items": {"$ref": "pulumi.json#/Any"}},
             "object": {"type": "object", "additionalProperties": {"$ref": "pulumi.json#/Any"}}}  # fmt: skip

    def properties(names: Mapping[str, str], secret: tuple[str, ...]) -> dict[str, Any]:
        return {n: kinds.get(t, {"type": t}) | ({"secret": True} if n in secret else {}) for n, t in names.items()}

    described = {}
    for r in resources:
        inputs = {**r.required, **r.optional}
        described[r.token] = {
            "inputProperties": properties(inputs, r.secrets), "requiredInputs": sorted(r.required),
            "properties": properties({**inputs, **r.outputs}, r.secrets),
        }  # fmt: skip
    return {"name": "sluicegate", "version": VERSION, "resources": described}
