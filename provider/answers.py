"""What goes back to the engine: diffs, a resource that is there but does not work, and lines of progress."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, NoReturn

import grpc
from google.protobuf import struct_pb2
from google.rpc import status_pb2
from pulumi.runtime.proto import engine_pb2, provider_pb2

from .resource import Change

_KIND = provider_pb2.PropertyDiff
_KINDS = {
    ("add", False): _KIND.ADD, ("add", True): _KIND.ADD_REPLACE,
    ("update", False): _KIND.UPDATE, ("update", True): _KIND.UPDATE_REPLACE,
    ("delete", False): _KIND.DELETE, ("delete", True): _KIND.DELETE_REPLACE,
}  # fmt: skip


def diff_response(changes: list[Change], ignored: Iterable[str] = ()) -> Any:
    """Changes as the engine takes them; what lies at or under a path in `ignored` is none."""
    changes = [c for c in changes if not any(_under(c.path, path) for path in ignored)]
    kinds = provider_pb2.DiffResponse
    return kinds(
        changes=kinds.DIFF_SOME if changes else kinds.DIFF_NONE,
        diffs=sorted({_top(c.path) for c in changes}),
        replaces=sorted({_top(c.path) for c in changes if c.replace}),
        detailedDiff={c.path: _KIND(kind=_KINDS[c.kind, c.replace], inputDiff=True) for c in changes},
        hasDetailedDiff=True,
    )


def _top(path: str) -> str:
    return path.split(".")[0].split("[")[0]


def _under(path: str, ignored: str) -> bool:
    return path == ignored or path.startswith((f"{ignored}.", f"{ignored}["))


def abort_partly(context: Any, reason: str, id: str, properties: struct_pb2.Struct) -> NoReturn:
    """End the call so that the engine records the resource as made, with `reason` as why it does not work."""
    detail = provider_pb2.ErrorResourceInitFailed(id=id, properties=properties, reasons=[reason])
    status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=reason)
    status.details.add().Pack(detail)
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(grpc.StatusCode.UNKNOWN, reason)
    raise AssertionError("abort returned")


class Log:
    """Lines to the engine. The status column takes a few a second; a line that stays is never dropped."""

    def __init__(self, engine: Any, urn: str) -> None:
        self._engine, self._urn, self._last = engine, urn, float("-inf")

    def __call__(self, text: str, how: str) -> None:
        """`how`: column (the status column), line, or warning."""
        ephemeral = how == "column"
        if self._engine is None or (ephemeral and time.monotonic() - self._last < 0.2):
            return
        self._last = time.monotonic()
        severity = engine_pb2.WARNING if how == "warning" else engine_pb2.INFO
        request = engine_pb2.LogRequest(severity=severity, message=text, urn=self._urn, ephemeral=ephemeral)
        try:
            self._engine.Log(request, timeout=5)
        except (grpc.RpcError, ValueError):  # ValueError: its channel was closed
            self._engine = None  # the engine is gone; the work goes on
