"""Fixtures of the plugin's tests: scripted hosts, an engine that collects log lines, and a channel to the servicer."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest
from google.protobuf import empty_pb2
from google.rpc import status_pb2
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, provider_pb2, provider_pb2_grpc

from sluicegate.provider import engine, front, machine, volume
from sluicegate.provider.serving import Servicer
from tests.provider.fake_host import FakeCloud, FakeHost

# An answer with a whole resource in its details is larger than what a Python client takes by default.
OPTIONS = [("grpc.max_metadata_size", 1 << 22), ("grpc.absolute_max_metadata_size", 1 << 22)]


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> FakeCloud:
    """The machine at root /r, and another at /new."""
    made = FakeCloud({"/r": FakeHost(), "/new": FakeHost()})
    for module in (engine, front, machine, volume):
        monkeypatch.setattr(module, "adapter", lambda _cloud: made)
    return made


@pytest.fixture
def host(cloud: FakeCloud) -> FakeHost:
    return cloud.hosts["/r"]


class FakeEngine(engine_pb2_grpc.EngineServicer):
    """Collects (text, ephemeral, urn), and the texts of warnings."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, bool, str]] = []
        self.warnings: list[str] = []

    def Log(self, request: Any, context: Any) -> Any:  # noqa: ARG002, N802
        self.lines.append((request.message, request.ephemeral, request.urn))
        if request.severity == engine_pb2.WARNING:
            self.warnings.append(request.message)
        return empty_pb2.Empty()


@dataclass
class Plugin:
    """The servicer behind a real channel, attached to a fake engine."""

    stub: Any
    servicer: Servicer
    engine: FakeEngine
    address: str
    stop_engine: Any = field(repr=False)


@pytest.fixture
def plugin() -> Iterator[Plugin]:
    lines = FakeEngine()
    theirs = grpc.server(ThreadPoolExecutor(2))
    engine_pb2_grpc.add_EngineServicer_to_server(lines, theirs)
    address = f"127.0.0.1:{theirs.add_insecure_port('127.0.0.1:0')}"
    theirs.start()
    servicer, ours = Servicer(None), grpc.server(ThreadPoolExecutor(8), options=OPTIONS)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(servicer, ours)
    port = ours.add_insecure_port("127.0.0.1:0")
    ours.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}", options=OPTIONS) as channel:
        stub = provider_pb2_grpc.ResourceProviderStub(channel)
        yield Plugin(stub, servicer, lines, address, lambda: theirs.stop(None).wait())
    ours.stop(None).wait()
    theirs.stop(None).wait()


def init_failed(error: grpc.RpcError) -> Any:
    """The ErrorResourceInitFailed in an answer, as the engine decodes it."""
    (details,) = (v for k, v in error.trailing_metadata() if k == "grpc-status-details-bin")
    status = status_pb2.Status.FromString(details)
    found = provider_pb2.ErrorResourceInitFailed()
    assert status.details[0].Unpack(found)
    return found
