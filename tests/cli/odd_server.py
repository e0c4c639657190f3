"""A loopback server that answers a chat completion in one odd way."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def event(text: str | None = None, **more: Any) -> str:
    choices = [] if text is None else [{"index": 0, "delta": {"content": text}, "finish_reason": None}]
    return "data: " + json.dumps({"choices": choices} | more) + "\n\n"


END = "data: " + json.dumps({"choices": [{"delta": {}, "finish_reason": "stop"}]}) + "\n\n"
DONE = "data: [DONE]\n\n"


@contextmanager
def answering(status: int, body: str, **headers: str) -> Iterator[tuple[str, list[Any]]]:
    """The server's address, and what it was asked (headers and body)."""
    asked: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            asked.append((self.path, dict(self.headers), json.loads(self.rfile.read(length))))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: Any) -> None:
            """Said nowhere."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
