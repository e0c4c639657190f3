"""The provider both stand-ins are: straight on Pulumi's protocol, with a handler object for each resource type."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc.aio
from google.protobuf import empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc

from tools.plugins import stack_config
from tools.plugins.handling import Engine, FailedError, Handler, Run
from tools.plugins.values import UNKNOWN, changed, from_struct, has, to_struct

Kind = provider_pb2.PropertyDiff


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
