"""The plugin process: Pulumi's protobuf servicer over the four resources, and nothing else.

Each call runs in a thread of its own; Cancel sets the tokens of the calls that run. What is printed goes nowhere:
progress reaches the user through the engine's log.
"""

from __future__ import annotations

import json
import threading
import traceback
from collections.abc import Callable
from typing import Any

import grpc
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime.proto import engine_pb2_grpc, plugin_pb2, provider_pb2, provider_pb2_grpc

from .answers import Log, abort_partly, diff_response
from .engine import Engine
from .engine_text import one_line
from .front import Front
from .machine import Machine
from .resource import FailedError, InitFailedError, Resource, Run
from .schema import VERSION, form_faults, schema
from .values import decode, encode, secret_names, secret_texts
from .volume import Volume

RESOURCES: dict[str, Resource] = {r.token: r for r in (Volume(), Machine(), Engine(), Front())}


class Servicer(provider_pb2_grpc.ResourceProviderServicer):
    def __init__(self, engine_address: str | None) -> None:
        self._engine: Any = None
        self._lock = threading.Lock()
        self._cancels: list[threading.Event] = []
        self._cancelled = False
        if engine_address:
            self._connect(engine_address)

    def _connect(self, address: str) -> None:
        """A run of an engine begins: what the one before cancelled is over."""
        with self._lock:
            self._engine = engine_pb2_grpc.EngineStub(grpc.insecure_channel(address))
            self._cancelled = False

    def busy(self) -> bool:
        """Whether an operation runs."""
        return bool(self._cancels)

    def cancel(self) -> None:
        """Ask what runs, and what is still on its way here, to give up."""
        with self._lock:
            self._cancelled = True
            for cancel in self._cancels:
                cancel.set()

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
        return provider_pb2.GetSchemaResponse(schema=json.dumps(schema(RESOURCES.values())))

    def CheckConfig(self, request: Any, context: Any) -> Any:  # noqa: N802
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: Any, context: Any) -> Any:  # noqa: N802
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)

    def Configure(self, request: Any, context: Any) -> Any:  # noqa: N802
        return provider_pb2.ConfigureResponse(
            acceptSecrets=True, supportsPreview=True, acceptResources=False, acceptOutputs=False
        )

    def Cancel(self, request: Any, context: Any) -> Any:  # noqa: N802
        self.cancel()
        return empty_pb2.Empty()

    # --- resources ---

    def Check(self, request: Any, context: Any) -> Any:  # noqa: N802
        def work(resource: Resource, _run: Run) -> Any:
            inputs = decode(request.news)
            faults = form_faults(resource, inputs) or resource.check(inputs)
            failures = [provider_pb2.CheckFailure(property=name, reason=reason) for name, reason in faults]
            return provider_pb2.CheckResponse(inputs=request.news, failures=failures)

        return self._run(request, context, work, request.news)

    def Diff(self, request: Any, context: Any) -> Any:  # noqa: N802
        def work(resource: Resource, _run: Run) -> Any:
            changes = resource.diff(decode(request.old_inputs), decode(request.olds), decode(request.news))
            return diff_response(changes, request.ignoreChanges)

        return self._run(request, context, work, request.olds, request.news)

    def Create(self, request: Any, context: Any) -> Any:  # noqa: N802
        def work(resource: Resource, run: Run) -> Any:
            inputs = decode(request.properties)
            if request.preview:
                id, outputs = "", resource.preview(run, None, inputs)
            else:
                id, outputs = resource.create(run, inputs)
            return provider_pb2.CreateResponse(id=id, properties=encode(outputs, run.secret_names))

        return self._run(request, context, work, request.properties)

    def Update(self, request: Any, context: Any) -> Any:  # noqa: N802
        def work(resource: Resource, run: Run) -> Any:
            old, new = decode(request.olds), decode(request.news)
            outputs = resource.preview(run, old, new) if request.preview else resource.update(run, request.id, old, new)
            return provider_pb2.UpdateResponse(properties=encode(outputs, run.secret_names))

        return self._run(request, context, work, request.olds, request.news)

    def Read(self, request: Any, context: Any) -> Any:  # noqa: N802
        def work(resource: Resource, run: Run) -> Any:
            if not request.properties.fields:
                context.abort(grpc.StatusCode.UNIMPLEMENTED, f"{resource.token} cannot be imported: deploy it instead")
            found = resource.read(run, request.id, decode(request.inputs), decode(request.properties))
            if found is None:
                return provider_pb2.ReadResponse(id="")
            properties = encode(found, run.secret_names)
            return provider_pb2.ReadResponse(id=request.id, properties=properties, inputs=request.inputs)

        return self._run(request, context, work, request.inputs, request.properties)

    def Delete(self, request: Any, context: Any) -> Any:  # noqa: N802
        def work(resource: Resource, run: Run) -> Any:
            resource.delete(run, request.id, decode(request.properties))
            return empty_pb2.Empty()

        return self._run(request, context, work, request.properties)

    def _run(self, request: Any, context: Any, work: Callable[[Resource, Run], Any], *values: struct_pb2.Struct) -> Any:
        """Do the work, and turn each way to fail into the answer the engine knows it by.

        What arrived as a secret in `values` is in no text, and leaves as a secret whatever the resource made of it.
        """
        token = request.urn.split("::")[2].rpartition("$")[2]
        if token not in RESOURCES:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"no resource {token}; allowed: {', '.join(RESOURCES)}")
        resource = RESOURCES[token]
        named = [v for struct in values for n in resource.secrets if isinstance(v := decode(struct).get(n), str)]
        run = Run(request.urn, getattr(request, "timeout", 0.0), log=Log(self._engine, request.urn))
        run.secrets = (*named, *secret_texts(*values))
        run.secret_names = {*resource.secrets, *secret_names(*values)}
        with self._lock:
            self._cancels.append(run.cancel)
            if self._cancelled:
                run.cancel.set()
        try:
            return work(resource, run)
        except InitFailedError as e:
            abort_partly(context, run.mask(str(e)), e.id, encode(e.outputs, run.secret_names))
        except FailedError as e:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, run.mask(str(e)))
        except Exception as e:
            if context.code() is not None:
                raise  # an answer was given already
            frame = traceback.extract_tb(e.__traceback__)[-1]
            place = f"{frame.filename.rpartition('/')[2]}:{frame.lineno}"
            text = one_line(f"a fault in sluicegate itself ({type(e).__name__} at {place}): {e}")
            context.abort(grpc.StatusCode.INTERNAL, run.mask(text))
        finally:
            with self._lock:
                self._cancels.remove(run.cancel)
