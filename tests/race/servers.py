"""Loopback servers that answer with whatever bytes a test wants, and a fake OpenRouter. Threads of this process."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

SSE = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"


@dataclass
class Asked:
    """One request as the server got it."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    connection: int


Handler = Callable[[Asked], Iterable[bytes | float | None]]  # bytes to send, seconds to wait, None = close now


@dataclass
class Server:
    port: int
    tls: bool
    asked: list[Asked] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}/v1"


@contextlib.contextmanager
def serving(handler: Handler, context: ssl.SSLContext | None = None) -> Iterator[Server]:
    """A server on a free loopback port that answers each request with what `handler` gives."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    server = Server(listener.getsockname()[1], context is not None)
    stopping = threading.Event()
    threads: list[threading.Thread] = []

    def one(connection: socket.socket, number: int) -> None:
        with contextlib.suppress(OSError, ValueError):
            if context is not None:
                connection = context.wrap_socket(connection, server_side=True)
            with connection, connection.makefile("rb") as reader:
                while not stopping.is_set() and (asked := _read(reader, number)):
                    server.asked.append(asked)
                    for piece in handler(asked):
                        if piece is None or stopping.is_set():
                            return
                        if isinstance(piece, bytes):
                            connection.sendall(piece)
                        else:
                            stopping.wait(piece)

    def accept() -> None:
        number = 0
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            number += 1
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threads.append(threading.Thread(target=one, args=(connection, number), daemon=True))
            threads[-1].start()

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield server
    finally:
        stopping.set()
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        accepting.join(5)


def _read(reader: Any, number: int) -> Asked | None:
    line = reader.readline().decode()
    if not line:
        return None
    method, path, _ = line.split()
    headers: dict[str, str] = {}
    while (line := reader.readline().decode().strip()) != "":
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    raw = reader.read(int(headers.get("content-length", 0)))
    return Asked(method, path, headers, json.loads(raw) if raw else None, number)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def events(*, n: int = 4, usage: bool = True, end: bool = True, **more: Any) -> list[bytes]:
    """A good answer's events: n chunks of one token, the finish, usage, the end mark."""
    out = [_event({"content": f"w{i} "}, None, more) for i in range(n)] + [_event({}, "stop", more)]
    if usage:
        out.append(_data({"choices": [], "usage": {"completion_tokens": n, "prompt_tokens": 7}} | more))
    return [*out, b"data: [DONE]\n\n"] if end else out


def _event(delta: dict[str, Any], finish: str | None, more: dict[str, Any]) -> bytes:
    return _data({"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]} | more)


def _data(event: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(event).encode() + b"\n\n"


def stream(*parts: bytes | float | None, pause: float = 0.002) -> Iterator[bytes | float | None]:
    """A chunked event stream of the parts, a little apart so that they are read apart."""
    yield SSE + b"transfer-encoding: chunked\r\n\r\n"
    for part in parts:
        if isinstance(part, bytes):
            yield chunk(part)
            yield pause
        else:
            yield part
    yield b"0\r\n\r\n"


def refuse(status: str, text: Any, *headers: str) -> list[bytes]:
    body = json.dumps({"error": text}).encode()
    head = "".join(f"{line}\r\n" for line in (f"HTTP/1.1 {status}", f"content-length: {len(body)}", *headers))
    return [head.encode() + b"content-type: application/json\r\n\r\n" + body]


@dataclass
class Router:
    """A fake OpenRouter: an endpoint list and pinned routing, each provider with its own manners."""

    endpoints: list[dict[str, Any]]
    manners: dict[str, Callable[[int], Iterable[bytes | float | None]]]
    counts: dict[str, int] = field(default_factory=dict)
    waits: list[float] = field(default_factory=list)

    def __call__(self, asked: Asked) -> Iterable[bytes | float | None]:
        self.waits.append(time.monotonic())
        if asked.headers.get("authorization") != "Bearer right-key":
            return refuse("401 Unauthorized", {"code": 401, "message": f"bad key {asked.headers.get('authorization')}"})
        if asked.method == "GET":
            if not asked.path.endswith("/models/maker/model/endpoints"):
                return refuse("404 Not Found", {"code": 404, "message": "no such model"})
            body = json.dumps({"data": {"id": "maker/model", "endpoints": self.endpoints}}).encode()
            return [
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n",
                b"content-length: %d\r\n\r\n" % len(body),
                body,
            ]
        route = asked.body["provider"]
        assert route["allow_fallbacks"] is False
        assert route["require_parameters"] is True
        assert route["only"] == route["order"]
        (tag,) = route["only"]
        self.counts[tag] = self.counts.get(tag, 0) + 1
        return self.manners[tag](self.counts[tag])
