"""Entry point of `pulumi-resource-sluicegate`: serve on a free loopback port, print it, end with the engine."""

from __future__ import annotations

import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor

THREADS = 64  # each operation of a stack holds one; the engine itself runs few at a time


def main() -> None:
    """Serve until the engine says so with SIGINT, at the end of each of its runs, or is gone."""
    parent = os.getppid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    import grpc
    from pulumi.runtime.proto import provider_pb2_grpc

    from .serving import Servicer

    address = next((a for a in sys.argv[1:] if not a.startswith("-")), None)
    server, servicer = grpc.server(ThreadPoolExecutor(THREADS)), Servicer(address)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    _close_stderr()
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        while os.getppid() == parent:
            time.sleep(0.5)
    except KeyboardInterrupt:
        # Ignored, it would cost every run of pulumi the 5 s it waits; obeyed at once, it would cut what still runs.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        servicer.cancel()
        while servicer.busy() and os.getppid() == parent:
            time.sleep(0.05)
        server.stop(1).wait()
    os._exit(0)


def _close_stderr() -> None:
    """What a plugin prints there lands in event logs in clear; the engine's log is the way to say something."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    os.close(null)
