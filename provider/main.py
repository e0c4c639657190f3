"""Entry point of `pulumi-resource-sluicegate`: serve on a free loopback port, print it, end with the engine."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

THREADS = 64  # each operation of a stack holds one; the engine itself runs few at a time


def main() -> None:
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    import grpc
    from pulumi.runtime.proto import provider_pb2_grpc

    from .serving import Servicer

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ^C reaches us as Cancel; the terminal's own signal must not end us
    address = next((a for a in sys.argv[1:] if not a.startswith("-")), None)
    server = grpc.server(ThreadPoolExecutor(THREADS))
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(Servicer(address), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    _close_stderr()
    threading.Thread(target=_end_when_orphaned, daemon=True).start()
    server.wait_for_termination()


def _close_stderr() -> None:
    """What a plugin prints there lands in event logs in clear; the engine's log is the way to say something."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    os.close(null)


def _end_when_orphaned() -> None:
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(0)
