"""One connection: connect, TLS, send, and every read with the time at which the kernel had it.

Linux stamps each received segment (SO_TIMESTAMPNS, socket(7)); such a stamp stays true when this process is scheduled
late, which is what makes 256 requests on one core measurable. Elsewhere the stamp is taken right after the read.
"""

from __future__ import annotations

import errno
import os
import socket
import ssl
import struct
import sys
import time

from .exchange import Exchange, Origin
from .http1 import Response
from .tunnel import Tunnel

READ_BYTES = 16 * 1024  # a TLS record; larger buffers cost time at every read
CONNECT_PATIENCE_S = 3.0  # for an address that swallows packets, as broken IPv6 does
DONE_MARK = b"\ndata: [DONE]"
KERNEL_STAMPS = sys.platform == "linux"
_SO_TIMESTAMPNS = 35  # Linux's; the socket module has no name for it before Python 3.14
_timespec = struct.Struct("qq").unpack_from


def clock_offset() -> int:
    """Nanoseconds from perf_counter to the wall clock, which the kernel stamps with: the tightest of 10 looks."""
    tightest, offset = 1 << 62, 0
    for _ in range(10):
        before, wall, after = time.perf_counter_ns(), time.time_ns(), time.perf_counter_ns()
        if after - before < tightest:
            tightest, offset = after - before, wall - (before + after) // 2
    return offset


class Link:
    """A connection that carries one exchange at a time. `step` is one of closed, connect, tls, busy, idle.

    `out` is what the socket has not taken yet.
    """

    __slots__ = (
        "_context",
        "_last",
        "_looked",
        "_offset",
        "_tried",
        "_tunnel",
        "exchange",
        "opened",
        "origin",
        "out",
        "sock",
        "step",
    )

    def __init__(self, origin: Origin, context: ssl.SSLContext | None) -> None:
        self.origin, self.step = origin, "closed"
        self.sock: socket.socket | None = None
        self.exchange: Exchange | None = None
        self._context = context
        self._tunnel: Tunnel | None = None
        self.out = b""
        self._tried = 0
        self.opened = 0.0
        self._offset = 0
        self._last = 0.0
        self._looked = 0

    def begin(self, exchange: Exchange) -> None:
        """Take an exchange: connect first on a fresh link, send at once on an idle one. Raises OSError."""
        self.exchange = exchange
        exchange.reused = self.step == "idle"
        if exchange.reused:
            self._send()
        else:
            self._open()

    def alive(self) -> bool:
        """Whether an idle connection is still good: only TLS housekeeping may have come since its last answer."""
        assert self.sock is not None
        try:
            while data := self.sock.recv(READ_BYTES):
                if self._tunnel is None or self._tunnel.unseal(data):
                    return False
        except (BlockingIOError, InterruptedError):
            return True
        except OSError:
            return False
        return False

    def close(self) -> None:
        """Close the socket; an exchange in flight keeps what it had."""
        if self.sock is not None:
            self.sock.close()
        self.step, self.out = "closed", b""

    def writable(self) -> None:
        """The socket can be written. Raises OSError when the last address refused, or TLS failed."""
        assert self.sock is not None
        if self.step != "connect":
            self._flush()
            return
        if code := self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self._next_address(code)
            return
        assert self.exchange is not None
        self.exchange.connected = time.perf_counter()
        if self._context is None:
            self._send()
        else:
            self._tunnel, self.step = Tunnel(self._context, self.origin.host), "tls"
            self._shake(None)

    def readable(self) -> bool:
        """Read once. True = the exchange is over. Raises OSError (TLS faults too) and BrokenAnswerError."""
        assert self.sock is not None
        try:
            data, notes, _, _ = self.sock.recvmsg(READ_BYTES, 64)
        except (BlockingIOError, InterruptedError):
            return False
        stamp, plain = self._stamp(notes), data
        if self._tunnel is not None:
            if self.step == "tls":
                if not data:
                    raise ConnectionError("the connection was closed during the TLS handshake")
                self._shake(data)
                if self.step == "tls":
                    return False
                plain = self._tunnel.unseal_rest()
            else:
                plain = self._tunnel.unseal(data)
        assert self.exchange is not None
        response = self.exchange.response
        assert response is not None
        if plain:
            response.feed(plain, stamp)
        elif not data and not response.complete:
            response.end()
        return response.complete

    def look_for_end(self, now: float) -> None:
        """Note in `done_seen` when the stream's end mark is there, which the transfer's own end should follow soon."""
        exchange = self.exchange
        assert exchange is not None
        if exchange.response is not None and exchange.done_seen is None:
            if exchange.response.body.find(DONE_MARK, self._looked) >= 0:
                exchange.done_seen = now
            self._looked = max(len(exchange.response.body) - len(DONE_MARK), 0)

    @property
    def stuck(self) -> bool:
        """Whether the address in trial has not answered for a while and there is another one."""
        waited = self.step == "connect" and time.perf_counter() - self.opened > CONNECT_PATIENCE_S
        return waited and self._tried + 1 < len(self.origin.addresses)

    def next_address(self) -> None:
        """Give up the address in trial for the next one. Raises OSError."""
        self._next_address(errno.ETIMEDOUT)

    def clock_was_set(self) -> bool:
        """Whether the wall clock moved against the steady one by over a millisecond since the request was sent."""
        return bool(self._offset) and abs(clock_offset() - self._offset) > 1_000_000

    def _open(self) -> None:
        family, address = self.origin.addresses[self._tried]
        self.sock, self.step = socket.socket(family, socket.SOCK_STREAM), "connect"
        self.opened = time.perf_counter()
        self.sock.setblocking(False)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if KERNEL_STAMPS:
            self.sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        code = self.sock.connect_ex(address)
        if code not in (0, errno.EINPROGRESS):
            self._next_address(code)

    def _next_address(self, code: int) -> None:
        assert self.sock is not None
        self._tried += 1
        if self._tried >= len(self.origin.addresses):
            raise OSError(code, os.strerror(code))
        self.sock.close()
        self._open()

    def _shake(self, data: bytes | None) -> None:
        assert self._tunnel is not None
        assert self.exchange is not None
        self.out += self._tunnel.handshake(data)
        if self._tunnel.ready:
            self.exchange.secured = time.perf_counter()
            self._send()
        else:
            self._flush()

    def _send(self) -> None:
        assert self.exchange is not None
        call = self.exchange.call
        self.step, self.exchange.response = "busy", Response(call.limit_bytes)
        self._offset, self._looked = clock_offset(), 0
        self.out += self._tunnel.seal(call.request) if self._tunnel is not None else call.request
        self.exchange.started = self._last = time.perf_counter()
        self._flush()

    def _flush(self) -> None:
        assert self.sock is not None
        assert self.exchange is not None
        try:
            while self.out:
                self.out = self.out[self.sock.send(self.out) :]
        except (BlockingIOError, InterruptedError):
            return
        if self.step == "busy" and self.exchange.sent is None:
            self.exchange.sent = time.perf_counter()

    def _stamp(self, notes: list[tuple[int, int, bytes]]) -> float:
        read = time.perf_counter()
        if notes:  # the kernel's stamp: nothing else is asked for
            seconds, nanos = _timespec(notes[0][2])
            stamp: float = (seconds * 1_000_000_000 + nanos - self._offset) / 1e9
            if self._last <= stamp <= read:
                self._last = stamp
                assert self.exchange is not None
                if read - stamp > self.exchange.lag_s:
                    self.exchange.lag_s = read - stamp
                return stamp
        self._last = read
        return read
