"""A scripted event-stream server, a process of its own, that logs when it really sent what.

`python stage.py CORE` prints its port and serves until its stdin closes. A POST below /SCENARIO/TTFT_MS/TOKENS plays a
stream; GET /log gives and forgets the requests so far. Arrivals are the kernel's receive stamps, so that a
server that accepts late does not make the client look early; `late` says how late it sent, and a run with that high is
no ground truth. All times are seconds of CLOCK_MONOTONIC, which perf_counter is on Linux: one clock for both processes.
"""

from __future__ import annotations

import contextlib
import functools
import heapq
import json
import os
import random
import re
import selectors
import socket
import struct
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

SPEED = 213.0


@dataclass(slots=True)
class Piece:
    at: float  # seconds after the request's arrival
    data: bytes
    tokens: int = 0
    kind: str = "other"


@dataclass(slots=True)
class Seen:
    scenario: str
    mark: str
    arrival: float
    sends: list[tuple[float, int, str]] = field(default_factory=list)
    late: list[float] = field(default_factory=list)


def event(delta: dict[str, object], finish: str | None = None, **more: object) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return f"data: {json.dumps({'id': 'x', 'model': 'm', 'choices': [choice], **more})}\n\n".encode()


@functools.cache
def script(scenario: str, ttft: float, n: int, variant: int) -> list[Piece]:
    """The stream of a scenario: after `ttft` seconds, n tokens at SPEED, in chunks of 1 to 8 (one each in `plain`).

    Variants differ in the chunks and by 0.7 ms in the start: 256 streams in step would make the server late by itself.
    """
    rng, out, told, t = random.Random(n + 1000 * variant), list[Piece](), 0, ttft + 0.0007 * variant
    if scenario in ("earlyrole", "reason"):
        out.append(Piece(0.04, event({"role": "assistant", "content": ""}), 0, "role"))
    if scenario == "comments":
        out += [Piece(0.02 * i, b": PROCESSING\n\n") for i in range(1, int(ttft / 0.02))]
    while told < n:
        size = 1 if scenario == "plain" else 5 if scenario == "firstbig" and not told else rng.randint(1, 8)
        size = min(size, n - told)
        if told:
            t += size / SPEED
        if scenario == "stall" and told < n // 2 <= told + size:
            t += 1.5
        told += size
        thinking = scenario == "reason" and told <= n // 2
        usage = {"completion_tokens": told, "prompt_tokens": 9}
        more = {"usage": usage} if scenario in ("firstbig", "counted") else {}
        more |= {"provider": "Elsewhere"} if scenario == "provider" else {}
        delta: dict[str, object] = {"reasoning" if thinking else "content": "w " * size}
        out.append(Piece(t, event(delta, **more), size, "thought" if thinking else "answer"))
        if scenario == "heart" and told % 3 == 0:
            out += [Piece(t + 0.001, b": heartbeat\n\n"), Piece(t + 0.001, event({"content": ""}))]
        if scenario == "error" and told >= n // 2:
            failed = {"error": {"code": 502, "message": "the engine died"}, "choices": []}
            return [*out, Piece(t, b"data: %s\n\ndata: [DONE]\n\n" % json.dumps(failed).encode()), Piece(t, b"")]
    if scenario == "cut":
        return [*out, Piece(t, b"")]
    out.append(Piece(t, event({}, "stop")))
    if scenario != "nousage":
        usage = {"choices": [], "usage": {"completion_tokens": n, "prompt_tokens": 9, "total_tokens": n + 9}}
        t += 0.15 if scenario == "lateusage" else 0.0
        out.append(Piece(t, f"data: {json.dumps(usage)}\n\n".encode(), 0, "usage"))
    return [*out, Piece(t, b"data: [DONE]\n\n"), Piece(t, b"")]


def clock_offset() -> int:
    """Nanoseconds from perf_counter to the wall clock: the tightest of many looks."""
    looks = [(time.perf_counter_ns(), time.time_ns(), time.perf_counter_ns()) for _ in range(1000)]
    before, wall, after = min(looks, key=lambda look: look[2] - look[0])
    return wall - (before + after) // 2


class Stage:
    def __init__(self) -> None:
        self.server = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.server.setblocking(False)
        self.server.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS, inherited by what is accepted
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.server, selectors.EVENT_READ)
        self.due: list[tuple[float, int, socket.socket, Piece, Seen, Iterator[Piece]]] = []
        self.log: list[Seen] = []
        self.count = 0
        self.offset = clock_offset()

    def run(self) -> None:
        self.selector.register(sys.stdin, selectors.EVENT_READ)
        while True:
            wait = max(self.due[0][0] - time.perf_counter(), 0) if self.due else None
            if wait is not None and 0 < wait < 0.001:  # epoll waits whole milliseconds: too coarse for what is near
                time.sleep(wait)
                wait = 0
            reading = time.perf_counter() + 0.001  # a crowd of requests must not hold up what is due
            for key, _ in self.selector.select(wait if wait is None else int(wait * 1000) / 1000):
                if time.perf_counter() > reading:
                    break
                if key.fileobj is sys.stdin:
                    return
                if key.fileobj is self.server:
                    connection, _ = self.server.accept()
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    self.selector.register(connection, selectors.EVENT_READ, bytearray())
                else:
                    self.read(key)
            served = time.perf_counter() + 0.001  # new requests are looked at every millisecond, however much is due
            while self.due and self.due[0][0] <= time.perf_counter() < served:
                at, _, *what = heapq.heappop(self.due)
                self.send(at, *what)

    def read(self, key: selectors.SelectorKey) -> None:
        connection, held = key.fileobj, key.data
        assert isinstance(connection, socket.socket)
        try:
            data, notes, _, _ = connection.recvmsg(1 << 16, 64)
        except ConnectionError:
            data, notes = b"", []
        if not data:
            self.selector.unregister(connection)
            connection.close()
            return
        held += data
        head, _, body = bytes(held).partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        if b"\r\n\r\n" not in held or len(body) < (int(length[1]) if length else 0):
            return
        held.clear()
        path = head.split(b" ", 2)[1].decode()
        if path == "/log":
            text = json.dumps([(s.scenario, s.mark, s.arrival, s.sends, s.late) for s in self.log]).encode()
            self.log.clear()
            connection.setblocking(True)
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(text), text))
            return
        seconds, nanos = struct.unpack("qq", notes[0][2][:16])
        arrival = (seconds * 1_000_000_000 + nanos - self.offset) / 1e9
        _, scenario, ttft, tokens, *_ = path.split("/")
        seen = Seen(scenario, json.loads(body)["messages"][0]["content"], arrival)
        self.log.append(seen)
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        connection.send(head)
        self.plan(connection, seen, iter(script(scenario, int(ttft) / 1000, int(tokens), len(self.log) % 16)))

    def plan(self, connection: socket.socket, seen: Seen, rest: Iterator[Piece]) -> None:
        """Put the next piece of a stream among what is due."""
        self.count += 1
        if (piece := next(rest, None)) is not None:
            heapq.heappush(self.due, (seen.arrival + piece.at, self.count, connection, piece, seen, rest))

    def send(self, at: float, connection: socket.socket, piece: Piece, seen: Seen, rest: Iterator[Piece]) -> None:
        seen.late.append(time.perf_counter() - at)
        if piece.kind != "other":
            seen.sends.append((time.perf_counter(), piece.tokens, piece.kind))
        with contextlib.suppress(OSError):
            connection.send(b"%x\r\n%s\r\n" % (len(piece.data), piece.data) if piece.data else b"0\r\n\r\n")
        self.plan(connection, seen, rest)


if __name__ == "__main__":
    with_core = {int(sys.argv[1])}
    if with_core <= os.sched_getaffinity(0):
        os.sched_setaffinity(0, with_core)
    with contextlib.suppress(OSError):  # not allowed everywhere; without it a busy machine makes this server late
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    stage = Stage()
    print(stage.server.getsockname()[1], flush=True)
    stage.run()
