"""Speaking to an engine: plain HTTP over a Unix socket or an address, with a budget of seconds a request."""

from __future__ import annotations

import http.client
import json
import math
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


class Unanswered(Exception):
    """No usable answer: the message says what came instead."""


@dataclass(frozen=True)
class Target:
    """Where to ask: a Unix socket, or a URL with a key. An answer that is waited for is given up once `give_up()`."""

    socket: Path | None = None
    url: str = ""
    key: str = field(default="", repr=False)
    give_up: Callable[[], bool] = lambda: False

    def connect(self, budget_s: float) -> http.client.HTTPConnection:
        if self.socket:
            return _UnixConnection(self.socket, budget_s)
        parts = urlsplit(self.url)
        if parts.scheme == "https":
            import ssl  # here: every verb that asks an engine's socket would wait for it

            context = ssl.create_default_context()
            return http.client.HTTPSConnection(parts.netloc, timeout=budget_s, context=context)
        return http.client.HTTPConnection(parts.netloc, timeout=budget_s)

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"} if self.key else {}


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, budget_s: float) -> None:
        super().__init__("engine", timeout=budget_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class Cut(Exception):
    """The exchange broke off; the message says how."""


@contextmanager
def exchange(
    target: Target, method: str, path: str, budget_s: float, body: Any = None
) -> Iterator[http.client.HTTPResponse]:
    """A request and its answer. Raises Cut when it breaks off, or is not read to its end within `budget_s` in all.

    A socket's own timeout would count anew with every byte that drips in, so a thread watches over the whole.
    """
    connection, done, cut = target.connect(budget_s), threading.Event(), threading.Event()
    data, headers, end = None, target.headers(), time.monotonic() + budget_s
    if body is not None:
        data, headers = json.dumps(body).encode(), headers | {"Content-Type": "application/json"}
    try:
        connection.connect()
        connection.sock.settimeout(None)  # from here on the thread alone says when it is enough
        with socket.socket(fileno=os.dup(connection.sock.fileno())) as line:

            def watch() -> None:
                while not done.wait(max(0.0, min(0.1, end - time.monotonic()))):
                    if time.monotonic() >= end or target.give_up():
                        cut.set()
                        with suppress(OSError):
                            line.shutdown(socket.SHUT_RDWR)
                        return

            watcher = threading.Thread(target=watch, daemon=True)
            watcher.start()
            try:
                connection.request(method, path, data, headers)
                yield connection.getresponse()
            finally:
                done.set()
                watcher.join()
    except (OSError, http.client.HTTPException) as e:
        raise Cut(f"no answer in {budget_s:.3g} s" if cut.is_set() else _why(e)) from e
    finally:
        connection.close()
    if cut.is_set():
        raise Cut(f"no whole answer in {budget_s:.3g} s")


def get(target: Target, path: str, budget_s: float) -> tuple[int, bytes]:
    """Status and body. Raises Unanswered when nothing answers within the budget."""
    try:
        with exchange(target, "GET", path, budget_s) as response:
            return response.status, response.read(8 << 20)
    except Cut as e:
        raise Unanswered(f"GET {path}: {e}") from e


def get_json(target: Target, path: str, budget_s: float) -> Any:
    status, body = get(target, path, budget_s)
    if status != 200:
        raise Unanswered(f"GET {path}: HTTP {status} {head(body)}")
    try:
        return json.loads(body)
    except ValueError:
        raise Unanswered(f"GET {path}: not JSON: {head(body)}") from None


def metrics(target: Target, path: str, budget_s: float = 5) -> dict[str, float]:
    """Prometheus samples summed over their labels."""
    status, body = get(target, path, budget_s)
    if status != 200:
        raise Unanswered(f"GET {path}: HTTP {status}")
    return samples(body.decode(errors="replace"))


@dataclass(frozen=True)
class Work:
    """What an engine's counters say: `load` in words, empty without requests, and what `moved` as it computes."""

    load: str
    moved: tuple[float, ...]


def work(target: Target, engine: dict[str, Any], budget_s: float = 5) -> Work:
    """The engine's load now, by the names its facts give. Raises Unanswered, also for an engine without counters."""
    names = engine["metrics"]
    if not names or not names["running"]:
        raise Unanswered("this engine counts no requests")
    seen = metrics(target, names["path"], budget_s)
    running, waiting = (seen.get(names[k] or "", 0) for k in ("running", "waiting"))
    load = f"{running:.0f} requests running, {waiting:.0f} waiting" if running or waiting else ""
    return Work(load, tuple(seen.get(name, 0) for name in names["moving"]))


# name, labels (their quoted values may hold anything), value, and perhaps a timestamp
_SAMPLE = re.compile(r'\s*([a-zA-Z_:][\w:]*)\s*(?:\{(?:[^"}]|"(?:\\.|[^"\\])*")*\})?\s+(\S+)(?:\s+-?\d+)?\s*')


def samples(text: str) -> dict[str, float]:
    """Prometheus' text format, each name summed over its labels; what is no finite number is left out."""
    found: dict[str, float] = {}
    for line in text.split("\n"):
        if match := _SAMPLE.fullmatch(line):
            with suppress(ValueError):
                value = float(match[2])
                if math.isfinite(value):
                    found[match[1]] = found.get(match[1], 0.0) + value
    return found


def _why(e: Exception) -> str:
    return getattr(e, "strerror", None) or str(e) or type(e).__name__


def head(body: bytes) -> str:
    return body[:300].decode(errors="replace").strip()
