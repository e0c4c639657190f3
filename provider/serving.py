"""The plugin process: Pulumi's protobuf servicer over the four resources, and nothing else.

Each call runs in a thread of its own; Cancel sets the tokens of the calls that run. What is printed goes nowhere:
progress reaches the user through the engine's log.
"""

from __future__ import annotations

import json
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

import grpc
from google.protobuf import empty_pb2, struct_pb2
from google.rpc import status_pb2
from pulumi.runtime.proto import (
    engine_pb2,
    engine_pb2_grpc,
    plugin_pb2,
    provider_pb2,
    provider_pb2_grpc,
)

from .engine import Engine
from .front import Front
from .machine import Machine
from .resource import Change, FailedError, InitFailedError, Resource, Run, Values
from .values import decode, encode, known
from .volume import Volume

VERSION = "0.1.0"
RESOURCES: dict[str, Resource] = {r.token: r for r in (Volume(), Machine(), Engine(), Front())}
_KIND = provider_pb2.PropertyDiff
_KINDS = {
    ("add", False): _KIND.ADD, ("add", True): _KIND.ADD_REPLACE,
    ("update", False): _KIND.UPDATE, ("update", True): _KIND.UPDATE_REPLACE,
    ("delete", False): _KIND.DELETE, ("delete", True): _KIND.DELETE_REPLACE,
}  # fmt: skip


class Servicer(provider_pb2_grpc.ResourceProviderServicer):
    def __init__(self, engine_address: str | None) -> None:
        self._engine: Any = None
        self._cancels: set[threading.Event] = set()
        if engine_address:
            self._connect(engine_address)

    def _connect(self, address: str) -> None:
        self._engine = engine_pb2_grpc.EngineStub(grpc.insecure_channel(address))

    # --- the plugin itself ---

    def Handshake(self, request: Any, context: Any) -> Any:  # noqa: N802 - the protocol's names, here and below
        self._connect(request.engine_address)
        return provider_pb2.ProviderHandshakeResponse(accept_secrets=True, accept_resources=False, accept_outputs=False)

    def Attach(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._connect(request.address)
        return empty_pb2.Empty()

    def GetPluginInfo(self, request: Any, context: Any) -> Any:  # noqa: N802
        return plugin_pb2.PluginInfo(version=VERSION)

    def GetSchema(self, request: Any, context: Any) -> Any:  # noqa: N802
        return provider_pb2.GetSchemaResponse(schema=json.dumps(schema()))

    def CheckConfig(self, request: Any, context: Any) -> Any:  # noqa: N802
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: Any, context: Any) -> Any:  # noqa: N802
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)

    def Configure(self, request: Any, context: Any) -> Any:  # noqa: N802
        return provider_pb2.ConfigureResponse(
            acceptSecrets=True, supportsPreview=True, acceptResources=False, acceptOutputs=False
        )

    def Cancel(self, request: Any, context: Any) -> Any:  # noqa: N802
        for cancel in list(self._cancels):
            cancel.set()
        return empty_pb2.Empty()

    # --- resources ---

    def Check(self, request: Any, context: Any) -> Any:  # noqa: N802
        resource = self._resource(request, context)
        inputs = decode(request.news)
        faults = [(name, f"missing; expected a {resource.required[name]}")
                  for name in resource.required if inputs.get(name) is None]  # fmt: skip
        allowed = {**resource.required, **resource.optional}
        faults += [(name, f"unknown; allowed: {', '.join(sorted(allowed))}") for name in inputs if name not in allowed]
        if not faults:
            faults = resource.check(inputs)
        failures = [provider_pb2.CheckFailure(property=name, reason=reason) for name, reason in faults]
        return provider_pb2.CheckResponse(inputs=request.news, failures=failures)

    def Diff(self, request: Any, context: Any) -> Any:  # noqa: N802
        resource = self._resource(request, context)
        changes = resource.diff(decode(request.old_inputs), decode(request.olds), decode(request.news))
        ignored = tuple(request.ignoreChanges)
        return diff_response([c for c in changes if not c.path.startswith(ignored or ("\0",))])

    def Create(self, request: Any, context: Any) -> Any:  # noqa: N802
        resource, inputs = self._resource(request, context), decode(request.properties)

        def work(run: Run) -> Any:
            if request.preview:
                outputs = resource.preview(run, None, inputs)
                return provider_pb2.CreateResponse(id="", properties=encode(outputs, resource.secrets))
            id, outputs = resource.create(run, inputs)
            return provider_pb2.CreateResponse(id=id, properties=encode(outputs, resource.secrets))

        return self._run(request, context, resource, inputs, work)

    def Update(self, request: Any, context: Any) -> Any:  # noqa: N802
        resource, new, old = self._resource(request, context), decode(request.news), decode(request.olds)

        def work(run: Run) -> Any:
            outputs = resource.preview(run, old, new) if request.preview else resource.update(run, request.id, old, new)
            return provider_pb2.UpdateResponse(properties=encode(outputs, resource.secrets))

        return self._run(request, context, resource, new, work)

    def Read(self, request: Any, context: Any) -> Any:  # noqa: N802
        resource, outputs, inputs = self._resource(request, context), decode(request.properties), decode(request.inputs)
        if not outputs:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, f"{resource.token} cannot be imported: deploy it instead")

        def work(run: Run) -> Any:
            found = resource.read(run, request.id, inputs, outputs)
            if found is None:
                return provider_pb2.ReadResponse(id="")
            properties = encode(found, resource.secrets)
            return provider_pb2.ReadResponse(id=request.id, properties=properties, inputs=request.inputs)

        return self._run(request, context, resource, outputs, work)

    def Delete(self, request: Any, context: Any) -> Any:  # noqa: N802
        resource, outputs = self._resource(request, context), decode(request.properties)

        def work(run: Run) -> Any:
            resource.delete(run, request.id, outputs)
            return empty_pb2.Empty()

        return self._run(request, context, resource, outputs, work)

    # --- between the two ---

    def _resource(self, request: Any, context: Any) -> Resource:
        token = request.urn.split("::")[2].rpartition("$")[2]
        if token not in RESOURCES:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"no resource {token}; allowed: {', '.join(RESOURCES)}")
        return RESOURCES[token]

    def _run(self, request: Any, context: Any, resource: Resource, values: Values, work: Callable[[Run], Any]) -> Any:
        """Do the work, and turn each way to fail into the answer the engine knows it by."""
        secrets = tuple(str(values[n]) for n in resource.secrets if known(values.get(n)) and values.get(n))
        log = _Log(self._engine, request.urn)
        run = Run(request.urn, getattr(request, "timeout", 0.0), log=log, secrets=secrets)
        self._cancels.add(run.cancel)
        try:
            return work(run)
        except InitFailedError as e:
            _abort_partly(context, run.mask(str(e)), e.id, encode(e.outputs, resource.secrets))
        except FailedError as e:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, run.mask(str(e)))
        except grpc.RpcError:
            raise
        except Exception as e:  # noqa: BLE001 - a fault of ours is said in one line with its place, never a traceback
            frame = traceback.extract_tb(e.__traceback__)[-1]
            place = f"{frame.filename.rpartition('/')[2]}:{frame.lineno}"
            text = f"a fault in sluicegate itself ({type(e).__name__} at {place}): {e}"
            context.abort(grpc.StatusCode.INTERNAL, run.mask(text))
        finally:
            self._cancels.discard(run.cancel)


class _Log:
    """Lines to the engine. The status column takes a few a second; a line that stays is never dropped."""

    def __init__(self, engine: Any, urn: str) -> None:
        self._engine, self._urn, self._last = engine, urn, 0.0

    def __call__(self, text: str, ephemeral: bool) -> None:
        if self._engine is None or (ephemeral and time.monotonic() - self._last < 0.2):
            return
        self._last = time.monotonic()
        request = engine_pb2.LogRequest(severity=engine_pb2.INFO, message=text, urn=self._urn, ephemeral=ephemeral)
        try:
            self._engine.Log(request, timeout=5)
        except grpc.RpcError:
            self._engine = None  # the engine is gone; the work goes on


def _abort_partly(context: Any, reason: str, id: str, properties: struct_pb2.Struct) -> NoReturn:
    detail = provider_pb2.ErrorResourceInitFailed(id=id, properties=properties, reasons=[reason])
    status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=reason)
    status.details.add().Pack(detail)
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(grpc.StatusCode.UNKNOWN, reason)
    raise AssertionError("abort returned")


def diff_response(changes: list[Change]) -> Any:
    kinds = provider_pb2.DiffResponse
    return kinds(
        changes=kinds.DIFF_SOME if changes else kinds.DIFF_NONE,
        diffs=sorted({c.path.split(".")[0].split("[")[0] for c in changes}),
        replaces=sorted({c.path.split(".")[0].split("[")[0] for c in changes if c.replace}),
        detailedDiff={c.path: _KIND(kind=_KINDS[c.kind, c.replace], inputDiff=True) for c in changes},
        hasDetailedDiff=True,
    )


def schema() -> dict[str, Any]:
    """Pulumi's schema of the package, for `pulumi package get-schema` and YAML programs."""
    kinds = {"array": {"type": "array", "items": {"$ref": "pulumi.json#/Any"}},
             "object": {"type": "object", "additionalProperties": {"$ref": "pulumi.json#/Any"}}}  # fmt: skip

    def properties(names: Any, secret: tuple[str, ...]) -> dict[str, Any]:
        return {n: kinds.get(t, {"type": t}) | ({"secret": True} if n in secret else {}) for n, t in names.items()}

    resources = {}
    for token, r in RESOURCES.items():
        inputs = {**r.required, **r.optional}
        resources[token] = {
            "inputProperties": properties(inputs, r.secrets), "requiredInputs": sorted(r.required),
            "properties": properties({**inputs, **r.outputs}, r.secrets),
        }  # fmt: skip
    return {"name": "sluicegate", "version": VERSION, "resources": resources}
