"""What one request is (a Call), where it goes (an Origin) and what happened to it (an Exchange). Times in seconds."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass

from .http1 import Response


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a server is. `addresses` are getaddrinfo's answers, resolved once so that no lookup falls into a run."""

    host: str
    port: int
    tls: bool
    addresses: tuple[tuple[int, tuple[object, ...]], ...]
    dns_ms: float


@dataclass(slots=True)
class Call:
    """One request to send: where, its bytes, how many bytes and seconds its answer may take, the caller's own tag."""

    origin: Origin
    request: bytes
    limit_bytes: int
    timeout_s: float
    tag: object = None
    due: float | None = None  # when an open loop had planned it


@dataclass(slots=True)
class Exchange:
    """What happened to a Call. Every time is in seconds of `time.perf_counter`; None = that did not happen."""

    call: Call
    begun: float
    reused: bool = False
    connected: float | None = None
    secured: float | None = None
    started: float | None = None  # just before the first byte of the request was handed to the kernel
    sent: float | None = None
    response: Response | None = None
    ended: float | None = None
    fault: str | None = None
    lag_s: float = 0.0  # the longest time between the kernel's stamp of a read and this process reading it
    done_seen: float | None = None  # when the end mark of the event stream was noticed


def resolve(host: str, port: int, tls: bool) -> Origin:
    """Look a host up. Raises OSError (socket.gaierror) with the resolver's own words."""
    begin = time.perf_counter()
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return Origin(host, port, tls, tuple((int(f), a) for f, _, _, _, a in found), (time.perf_counter() - begin) * 1000)
