"""What a stand-in's resource type is, and what it may use while it works."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

import grpc.aio
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc

from tools.plugins.values import Properties


class FailedError(Exception):
    """A step failed; the text is all that the user sees."""


class Run:
    """What a handler may use while it works: the engine's log, the deadline, and word of a cancel."""

    def __init__(self, engine: Engine, urn: str, timeout_s: float) -> None:
        self.engine = engine
        self.urn = urn
        self.timeout_s = timeout_s or None

    async def status(self, text: str) -> None:
        """Shown in the resource's row while it runs."""
        await self.engine.log(text, urn=self.urn, ephemeral=True)


class Handler(Protocol):
    """One resource type. Inputs and outputs are as the engine sends them, secrets wrapped."""

    def check(self, inputs: Properties) -> list[tuple[str, str]]: ...

    def compared(self, inputs: Properties) -> Properties: ...

    def replaces(self, key: str) -> bool: ...

    def preview(self, name: str, inputs: Properties, old: Properties) -> Properties: ...

    async def create(self, name: str, inputs: Properties, run: Run) -> tuple[str, Properties]: ...

    async def update(self, inputs: Properties, old: Properties, run: Run) -> Properties: ...

    async def delete(self, old: Properties, run: Run) -> None: ...


class Engine:
    """The engine's log, and whether it has asked to stop."""

    def __init__(self, address: str | None) -> None:
        self.address = address
        self.cancelled = asyncio.Event()
        self._stub: Any = None

    async def log(self, text: str, *, urn: str = "", ephemeral: bool = False) -> None:
        """An INFO line; nothing is said where no engine listens (a debugger attached by hand)."""
        if not self.address:
            return
        if self._stub is None:
            self._stub = engine_pb2_grpc.EngineStub(grpc.aio.insecure_channel(self.address))
        line = engine_pb2.LogRequest(severity=engine_pb2.INFO, message=text, urn=urn, ephemeral=ephemeral)
        await self._stub.Log(line)
