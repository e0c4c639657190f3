"""Any number of requests on one thread: a selector, connections kept alive, deadlines, and the parsing put off.

`drive` asks `pull` for the next request whenever one could start and hands every finished one to `done`. `done` is
called when nothing waits to be read, so that the reading of one answer does not delay the clock of another.
"""

from __future__ import annotations

import contextlib
import gc
import selectors
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable, Iterator

from .exchange import Call, Exchange, Origin
from .http1 import BrokenAnswerError
from .wire import KERNEL_STAMPS, Link

SWEEP_S = 0.1  # how often deadlines are looked at
LONGEST_WAIT_S = 3600.0  # longer ones are taken in parts: a selector's own limit is some weeks
DONE_GRACE_S = 2.0  # how long after the stream's end mark the transfer itself may take to end
CROWD = 32  # requests in flight from which on reads are gathered
GATHER_S = 4e-6
BACKLOG = 64  # finished exchanges that may wait to be read before reading them goes first

Pull = Callable[[int], Call | float | None]
Done = Callable[[Exchange], None]


def drive(pull: Pull, done: Done, context: ssl.SSLContext | None = None) -> None:
    """Send what `pull(in_flight)` gives until it gives None with nothing in flight.

    `pull` returns a Call to start now, a perf_counter time in seconds at which to be asked again, or None:
    nothing until a request has ended. Faults of the network are in Exchange.fault, never raised. An interrupt closes
    every connection and goes on to the caller.
    """
    loop = _Loop(done, context)
    with _no_garbage_pauses(), contextlib.closing(loop):
        while True:
            wake = loop.start_all(pull)
            if wake is None and not loop.busy and not loop.backlog:
                return
            loop.turn(wake)


@contextlib.contextmanager
def _no_garbage_pauses() -> Iterator[None]:
    """A collection stops this thread for milliseconds; nothing here makes cycles, so it can wait."""
    was = gc.isenabled()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if was:
            gc.enable()


class _Loop:
    def __init__(self, done: Done, context: ssl.SSLContext | None) -> None:
        self.busy: set[Link] = set()
        self.backlog: deque[Exchange] = deque()
        self._done = done
        self._context = context
        self._idle: dict[Origin, list[Link]] = {}
        self._selector = selectors.DefaultSelector()
        self._watched: dict[Link, tuple[socket.socket, int]] = {}
        self._swept = 0.0
        self._selected = 0.0

    def start_all(self, pull: Pull) -> float | None:
        while True:
            while self.backlog and not self.busy:  # what comes next may depend on it, and no clock is disturbed
                self._done(self.backlog.popleft())
            given = pull(len(self.busy))
            if not isinstance(given, Call):
                return given
            self._start(Exchange(given, time.perf_counter()))

    def turn(self, wake: float | None) -> None:
        """Wait for the network, for `wake`, or for nothing when finished exchanges are to be read; handle what came."""
        now = time.perf_counter()
        self._gather(now, wake)
        limit = None if wake is None else min(max(wake - now, 0.0), LONGEST_WAIT_S)
        if self.busy:
            limit = min(SWEEP_S, SWEEP_S if limit is None else limit)
        ready = self._selector.select(0 if self.backlog else limit)
        self._selected = time.perf_counter()
        for key, mask in ready:
            self._step(key.data, mask)
        if self.backlog and (not ready or len(self.backlog) > BACKLOG):
            self._done(self.backlog.popleft())
        now = time.perf_counter()
        if now - self._swept >= SWEEP_S:
            self._swept = now
            self._sweep(now)

    def _gather(self, now: float, wake: float | None) -> None:
        """In a crowd let some reads come together: waking for each costs more than reading it.

        Up to 4 us a request in flight, so 1 ms at 256. The kernel's stamps keep the time meanwhile; only two pieces of
        one stream within that time would be taken for one, dated by the second.
        """
        if len(self.busy) < CROWD or self.backlog or not KERNEL_STAMPS:
            return
        until = self._selected + GATHER_S * len(self.busy)
        rest = (until if wake is None else min(until, wake)) - now
        if rest > 0:
            time.sleep(rest)

    def close(self) -> None:
        for link in [*self.busy, *(link for links in self._idle.values() for link in links)]:
            self._unwatch(link)
            link.close()
        self._selector.close()

    def _start(self, exchange: Exchange, fresh: bool = False) -> None:
        origin, link = exchange.call.origin, None
        idle = self._idle.setdefault(origin, [])
        while idle and not fresh and link is None:
            candidate = idle.pop()
            if candidate.alive():
                link = candidate
            else:
                candidate.close()
        link = link or Link(origin, self._tls() if origin.tls else None)
        self.busy.add(link)
        try:
            link.begin(exchange)
            self._watch(link)
        except OSError as error:
            self._failed(link, error)

    def _tls(self) -> ssl.SSLContext:
        self._context = self._context or ssl.create_default_context()
        return self._context

    def _step(self, link: Link, mask: int) -> None:
        try:
            if mask & selectors.EVENT_WRITE:
                link.writable()
            if mask & selectors.EVENT_READ and link.step != "connect" and link.readable():
                self._finish(link)
            elif mask & selectors.EVENT_WRITE or link.step != "busy" or link.out:
                self._watch(link)
        except (OSError, BrokenAnswerError) as error:
            self._failed(link, error)

    def _watch(self, link: Link) -> None:
        assert link.sock is not None
        wants_write = link.step == "connect" or link.out
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if wants_write else 0)
        if self._watched.get(link) == (link.sock, events):
            return
        self._unwatch(link)
        self._selector.register(link.sock, events, link)
        self._watched[link] = (link.sock, events)

    def _unwatch(self, link: Link) -> None:
        if seen := self._watched.pop(link, None):
            with contextlib.suppress(KeyError, ValueError):  # closed and replaced by the next address
                self._selector.unregister(seen[0])

    def _failed(self, link: Link, error: Exception) -> None:
        exchange = link.exchange
        assert exchange is not None
        response = exchange.response
        if exchange.reused and (response is None or response.first_byte_at is None):
            # A kept connection may be closed by the server just as it is used (RFC 9112, 9.3.1): ask once more, anew.
            self._drop(link)
            self._start(Exchange(exchange.call, time.perf_counter()), fresh=True)
            return
        link.look_for_end(time.perf_counter())
        # After the stream's end mark the answer is whole, however its transfer ends.
        exchange.fault = explain(error) if exchange.done_seen is None else None
        self._finish(link)

    def _drop(self, link: Link) -> None:
        self._unwatch(link)
        link.close()
        self.busy.discard(link)

    def _finish(self, link: Link) -> None:
        exchange = link.exchange
        assert exchange is not None
        exchange.ended = time.perf_counter()
        response = exchange.response
        if exchange.fault is None and link.clock_was_set():
            exchange.fault = "the wall clock was set during the request, so its stamps mean nothing"
        if exchange.fault is None and response is not None and response.complete and response.reusable:
            self._unwatch(link)
            self.busy.discard(link)
            link.step, link.exchange = "idle", None
            self._idle[link.origin].append(link)
        else:
            self._drop(link)
        self.backlog.append(exchange)

    def _elsewhere(self, link: Link) -> None:
        try:
            link.next_address()
            self._watch(link)
        except OSError as error:
            self._failed(link, error)

    def _sweep(self, now: float) -> None:
        for link in list(self.busy):
            exchange = link.exchange
            assert exchange is not None
            link.look_for_end(now)
            if exchange.done_seen is not None and now - exchange.done_seen > DONE_GRACE_S:
                self._finish(link)
            elif link.stuck:
                self._elsewhere(link)
            elif now - exchange.begun > exchange.call.timeout_s:
                exchange.fault = f"no complete answer within {exchange.call.timeout_s:g} s"
                self._finish(link)


def explain(error: Exception) -> str:
    """One sentence on a fault of the network, without the library's own error numbers."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"TLS: certificate refused: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS: {(error.reason or str(error)).replace('_', ' ').lower()}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[:1].lower() + error.strerror[1:]
    return str(error)
