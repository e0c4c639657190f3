"""A stand-in as a process of the engine's: how it starts, is asked to stop, and notices that it was left behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping

import grpc.aio
from pulumi.runtime.proto import provider_pb2_grpc

from tools.plugins.handling import Engine, Handler
from tools.plugins.serving import StandIn


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
