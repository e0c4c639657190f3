"""The plugin inside the test process, attached to by the real engine: what it does can be seen and stopped here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from pulumi.runtime.proto import provider_pb2_grpc

from sluicegate.provider.serving import Servicer
from tests.stack.harness import Project, post


@pytest.fixture
def port() -> Iterator[int]:
    server = grpc.server(ThreadPoolExecutor(16))
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(Servicer(None), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield port
    server.stop(5).wait()


def test_the_engine_attaches_to_a_plugin_that_runs_already(project: Callable[..., Project], port: int) -> None:
    p = project()
    p.env["PULUMI_DEBUG_PROVIDERS"] = f"sluicegate:{port}"
    p.up()
    assert post(p.outputs()).status_code == 200
    p.set(endpoint={"holdS": 60})
    assert p.ops()["Front"] == "update"
    p.up("--refresh")
    assert post(p.outputs()).status_code == 200
    p.destroy()
    assert not p.home.exists()
