"""The components under Pulumi's mocks: what a program would register, without engine or plugins.

Mocks prove wiring only: no plugin checks an input, nothing is diffed, no option (`depends_on`, `delete_before_replace`)
is carried out, and hooks, timeouts and secrets in state are not there at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pulumi
from google.protobuf import json_format
from pulumi.runtime import mocks as runtime_mocks
from pulumi.runtime import stack as runtime_stack
from pulumi.runtime.proto import resource_pb2

MADE = {
    "random:index/randomId:RandomId": {"hex": "0badc0de"},
    "random:index/randomPassword:RandomPassword": {"result": "made-by-random"},
    "sluicegate:index:Volume": {"disks": []},
    "sluicegate:index:Machine": {
        "machineId": "local-1", "address": "127.0.0.1", "zone": "local", "attempts": [], "token": "t",
        "host": {"cloud": "local", "root": "/r", "run": "/run", "stack": "sluicegate.dev"},
    },
    "sluicegate:index:Engine": {"lock": "sha256:1", "upstream": "current.sock", "phases": {}, "token": "t"},
    "sluicegate:index:Front": {"url": "http://127.0.0.1:1", "token": "t"},
}  # fmt: skip


@dataclass
class Seen:
    """Everything a program asked for, by `Type name`, and the values of the outputs it returned."""

    requests: dict[str, Any] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)

    def inputs(self, name: str) -> dict[str, Any]:
        """The inputs of one request as plain values; secrets stay wrapped under `{SIG: SECRET}`."""
        return dict(json_format.MessageToDict(self.requests[name].object))

    def needs(self, name: str) -> set[str]:
        """The names of the resources that one depends on, through inputs or by option."""
        return {urn.rpartition("::")[2] for urn in self.requests[name].dependencies}


class _Monitor(runtime_mocks.MockMonitor):
    def __init__(self, seen: Seen) -> None:
        super().__init__(_Mocks())
        self._seen = seen

    def RegisterResource(self, request: resource_pb2.RegisterResourceRequest) -> Any:  # noqa: N802
        if request.type != "pulumi:pulumi:Stack":
            self._seen.requests[f"{request.type.rpartition(':')[2]} {request.name}"] = request
        return super().RegisterResource(request)


class _Mocks(pulumi.runtime.Mocks):
    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str | None, dict[Any, Any]]:
        return f"{args.name}-id", {**args.inputs, **MADE.get(args.typ, {})}

    def call(self, args: pulumi.runtime.MockCallArgs) -> dict[Any, Any]:
        raise AssertionError(args.token)


def run(program: Callable[[], Mapping[str, pulumi.Input[Any]]], *, preview: bool = False) -> Seen:
    """Run a program as stack `dev` of project `sluicegate`, in a loop of its own; it returns outputs to look at."""
    seen = Seen()

    async def _look() -> None:
        seen.outputs = dict(await pulumi.Output.all(**program()).future(with_unknowns=True) or {})

    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        pulumi.runtime.set_mocks(_Mocks(), project="sluicegate", stack="dev", preview=preview, monitor=_Monitor(seen))
        loop.run_until_complete(runtime_stack.run_pulumi_func(_look))
    finally:
        loop.close()
        asyncio.set_event_loop(None)
    return seen
