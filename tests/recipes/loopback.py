"""A server of a test, on loopback until its block ends."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@contextlib.contextmanager
def listening(handler: type[BaseHTTPRequestHandler], **known: Any) -> Iterator[int]:
    """A free port where `handler` answers; what it shall know are attributes of its class."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (handler,), known))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
