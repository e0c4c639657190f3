"""What both stand-ins share: a provider straight on Pulumi's protocol, a handler object for each resource type."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import grpc.aio
from google.protobuf import empty_pb2
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, plugin_pb2, provider_pb2, provider_pb2_grpc

from tools.plugins import stack_config
from tools.plugins.values import UNKNOWN, Properties, changed, from_struct, has, to_struct

Kind = provider_pb2.PropertyDiff


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


class StandIn(provider_pb2_grpc.ResourceProviderServicer):
    """The provider. Method names are the protocol's own."""

    def __init__(self, name: str, version: str, handlers: Mapping[str, Handler], engine: Engine) -> None:
        self.name = name
        self.version = version
        self.handlers = handlers
        self.engine = engine
        self._said = False

    async def Handshake(self, request: Any, _context: Any) -> Any:  # noqa: N802
        self.engine.address = request.engine_address or self.engine.address
        return provider_pb2.ProviderHandshakeResponse(accept_secrets=True)

    async def Attach(self, request: Any, _context: Any) -> Any:  # noqa: N802
        self.engine.address = request.address
        return empty_pb2.Empty()

    async def GetPluginInfo(self, _request: Any, _context: Any) -> Any:  # noqa: N802
        return plugin_pb2.PluginInfo(version=self.version)

    async def GetSchema(self, _request: Any, _context: Any) -> Any:  # noqa: N802
        described = "A stand-in for the official plugin, for stacks whose cloud is local."
        resources: dict[str, Any] = {token: {} for token in self.handlers}
        schema = {"name": self.name, "version": self.version, "description": described, "resources": resources}
        return provider_pb2.GetSchemaResponse(schema=json.dumps(schema))

    async def CheckConfig(self, request: Any, _context: Any) -> Any:  # noqa: N802
        return provider_pb2.CheckResponse(inputs=request.news)

    async def DiffConfig(self, _request: Any, _context: Any) -> Any:  # noqa: N802
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)

    async def Configure(self, _request: Any, _context: Any) -> Any:  # noqa: N802
        return provider_pb2.ConfigureResponse(acceptSecrets=True, supportsPreview=True)

    async def Cancel(self, _request: Any, _context: Any) -> Any:  # noqa: N802
        self.engine.cancelled.set()
        return empty_pb2.Empty()

    async def Check(self, request: Any, _context: Any) -> Any:  # noqa: N802
        await self._say_once()
        inputs = from_struct(request.news)
        refused = stack_config.refusal(request.urn, Path.cwd(), self.name, self.version)
        if refused:
            faults = [("", refused)]
        elif _token(request.urn) not in self.handlers:
            known = ", ".join(self.handlers)
            mend = "run make official where Pulumi's downloads are reachable, to fetch the real plugin"
            faults = [
                ("", f"the stand-in for pulumi-{self.name} does not serve {_token(request.urn)}, only {known}: {mend}")
            ]
        else:
            faults = self.handlers[_token(request.urn)].check(inputs)
        failures = [provider_pb2.CheckFailure(property=key, reason=reason) for key, reason in faults]
        return provider_pb2.CheckResponse(inputs=request.news, failures=failures)

    async def Diff(self, request: Any, _context: Any) -> Any:  # noqa: N802
        handler = self.handlers[_token(request.urn)]
        old, new = (handler.compared(from_struct(struct)) for struct in (request.old_inputs, request.news))
        keys = [key for key in changed(old, new) if key not in request.ignoreChanges]
        detailed, replaces = {}, []
        for key in keys:
            # What is not known yet is a change, never a reason to replace.
            replace = handler.replaces(key) and not has(new.get(key), UNKNOWN)
            replaces += [key] if replace else []
            detailed[key] = Kind(kind=_kind(key in old, key in new, replace), inputDiff=True)
        changes = provider_pb2.DiffResponse.DIFF_SOME if keys else provider_pb2.DiffResponse.DIFF_NONE
        return provider_pb2.DiffResponse(
            changes=changes, diffs=keys, replaces=replaces, detailedDiff=detailed, hasDetailedDiff=True
        )

    async def Create(self, request: Any, context: Any) -> Any:  # noqa: N802
        handler, inputs = self.handlers[_token(request.urn)], from_struct(request.properties)
        name = request.urn.rsplit("::", 1)[-1]
        if request.preview:
            return provider_pb2.CreateResponse(properties=to_struct(handler.preview(name, inputs, {})))
        try:
            made, outputs = await handler.create(name, inputs, Run(self.engine, request.urn, request.timeout))
        except FailedError as error:
            return await context.abort(grpc.StatusCode.UNKNOWN, str(error))
        return provider_pb2.CreateResponse(id=made, properties=to_struct(outputs))

    async def Update(self, request: Any, context: Any) -> Any:  # noqa: N802
        handler, old, inputs = self.handlers[_token(request.urn)], from_struct(request.olds), from_struct(request.news)
        if request.preview:
            return provider_pb2.UpdateResponse(properties=to_struct(handler.preview("", inputs, old)))
        try:
            outputs = await handler.update(inputs, old, Run(self.engine, request.urn, request.timeout))
        except FailedError as error:
            return await context.abort(grpc.StatusCode.UNKNOWN, str(error))
        return provider_pb2.UpdateResponse(properties=to_struct(outputs))

    async def Read(self, request: Any, _context: Any) -> Any:  # noqa: N802
        return provider_pb2.ReadResponse(id=request.id, properties=request.properties, inputs=request.inputs)

    async def Delete(self, request: Any, context: Any) -> Any:  # noqa: N802
        run = Run(self.engine, request.urn, request.timeout)
        try:
            await self.handlers[_token(request.urn)].delete(from_struct(request.properties), run)
        except FailedError as error:
            return await context.abort(grpc.StatusCode.UNKNOWN, str(error))
        return empty_pb2.Empty()

    async def _say_once(self) -> None:
        if not self._said:
            self._said = True
            await self.engine.log(
                f"pulumi-{self.name} {self.version}: a stand-in, not the official plugin (make official)"
            )


def _token(urn: str) -> str:
    # A resource in a component has its parents' types before its own, with a $ between.
    return urn.split("::")[2].rsplit("$", 1)[-1]


def _kind(was: bool, is_now: bool, replace: bool) -> Any:
    if was and is_now:
        return Kind.UPDATE_REPLACE if replace else Kind.UPDATE
    if is_now:
        return Kind.ADD_REPLACE if replace else Kind.ADD
    return Kind.DELETE_REPLACE if replace else Kind.DELETE


def serve(name: str, version: str, handlers: Mapping[str, Handler]) -> None:
    """Run until the engine goes. Prints the port on stdout, as the engine expects, and nothing else anywhere."""
    asyncio.run(_serve(name, version, handlers))


async def _serve(name: str, version: str, handlers: Mapping[str, Handler]) -> None:
    parent = os.getppid()
    addresses = [argument for argument in sys.argv[3:] if not argument.startswith("-")]
    engine = Engine(addresses[0] if addresses else None)
    server = grpc.aio.server()
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(StandIn(name, version, handlers, engine), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(port, flush=True)
    # Whatever a plugin writes there the engine prints and keeps, secrets and all; a failed start was still shown.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    stop = asyncio.Event()
    # The engine ends every run with SIGINT: what still works is told, may answer, and is waited for.
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop.set)
    # An engine that was killed leaves its plugins behind.
    while os.getppid() == parent and not stop.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), 1)
    engine.cancelled.set()
    await server.stop(grace=5)
