"""The client against servers with odd manners, over loopback. Proves what each gives; no figure is judged by time."""

from __future__ import annotations

import contextlib
import gzip
import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from sluicegate.race.exchange import Exchange
from sluicegate.race.loop import drive
from sluicegate.race.measure import measure
from sluicegate.race.targets import Target
from tests.race.asking import SETTINGS, ask
from tests.race.servers import SSE, Asked, chunk, events, refuse, serving, stream

GOOD = events()
Wire = Iterable[bytes | float | None]


def closing(*parts: bytes) -> list[bytes | float | None]:
    return [*parts, None]


@pytest.mark.parametrize(
    "wire",
    [
        list(stream(*GOOD)),
        list(stream(b"".join(GOOD))),
        list(stream(*[bytes([b]) for b in b"".join(GOOD)], pause=0.0)),
        [SSE, b"content-length: %d\r\n\r\n" % len(b"".join(GOOD)), *GOOD],
        closing(SSE + b"\r\n", *GOOD),
        closing(b"HTTP/1.0 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n\r\n", *GOOD),
        closing(SSE + b"transfer-encoding: chunked\r\n\r\n", *map(chunk, GOOD)),  # ends without its last chunk
        [SSE + b"transfer-encoding: chunked\r\n\r\n", *map(chunk, GOOD), b"0;x=y\r\nTrailer: 1\r\n\r\n"],
        list(stream(*[part.replace(b"\n", b"\r\n") for part in GOOD])),
        list(stream(*[part.replace(b"data: ", b"data:  \t").replace(b"  \t[", b"[") for part in GOOD])),
        list(stream(b": PROCESSING\n\n", b": PROCESSING\n\n", *GOOD)),
        list(stream(*GOOD, b": after the end\n\n")),
    ],
)
def test_every_framing_of_a_good_answer_is_read(wire: Wire) -> None:
    with serving(lambda _: wire) as server:
        (row,) = ask(server.url)
    assert row.error is None
    assert (row.completion_tokens, row.chunks, row.finish_reason) == (4, row.chunks, "stop")
    assert row.ttft_ms is not None


@pytest.mark.parametrize(
    "end", [[GOOD[-1], 30.0], [GOOD[-1][:9], 0.3, GOOD[-1][9:], 30.0], [GOOD[-1], *[b": heartbeat\n\n", 0.02] * 400]]
)
def test_a_transfer_that_never_ends_after_the_end_mark_is_ended_here(end: list[bytes | float]) -> None:
    after = [chunk(part) if isinstance(part, bytes) else part for part in end]
    wire = [SSE + b"transfer-encoding: chunked\r\n\r\n", *map(chunk, GOOD[:-1]), *after]
    with serving(lambda _: wire) as server:
        (row,) = ask(server.url)
    assert row.error is None
    assert row.end_ms is not None
    assert row.end_ms < 7000


REFUSALS = [
    (refuse("401 Unauthorized", {"message": "Incorrect API key"}), "HTTP 401: Incorrect API key"),
    (refuse("404 Not Found", {"message": "The model `m` does not exist.", "code": 404}), "does not exist"),
    (refuse("500 Oops", "plain"), "HTTP 500: plain"),
    (closing(b"HTTP/1.1 502 Bad Gateway\r\n\r\n<html>bad\ngateway</html>"), "HTTP 502: <html>bad gateway"),
    (
        [b"HTTP/1.1 307 Moved\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n"],
        "redirects to http://127.0.0.1:9/",
    ),
    ([b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"], "not an event stream"),
    ([b"HTTP/1.1 204 No Content\r\n\r\n"], "HTTP 204"),
    (stream(*GOOD[:3]), r"without its end mark \[DONE\]"),
    (stream(*GOOD[:4], GOOD[-1]), "without a reason"),
    (stream(*GOOD[:2], b'data: {"error": {"code": 502, "message": "engine died"}}\n\n', GOOD[-1]), "engine died"),
    (stream(*GOOD[:2], b'event: error\ndata: {"detail": "gone"}\n\n', GOOD[-1]), "gone"),
    (stream(b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\n', GOOD[-1]), "no text"),
    (stream(*GOOD[:2], b"data: {\xff\xfe}\n\n", *GOOD[2:]), "not UTF-8"),
    (stream(*GOOD[:2], b"data: {oops\n\n", *GOOD[2:]), "not whole JSON"),
    (stream(*GOOD[:2], b"data: {} {}\n\n", *GOOD[2:]), "not whole JSON"),
    (stream(b"data: [1, 2]\n\n", *GOOD), "no object"),
    (stream(b"data: " + b"[" * 100_000 + b"\n\n", *GOOD), "not whole JSON"),
    (stream(b"data: " + b"x" * 5_000_000 + b"\n\n"), "larger than 3.0 MiB"),
    (closing(SSE + b"transfer-encoding: chunked\r\n\r\n", chunk(GOOD[0]), b"5\r\nab"), "closed in the middle"),
    (closing(SSE + b"transfer-encoding: chunked\r\n\r\n", b"zz\r\n"), "chunk's size"),
    (closing(b"HTTP/1.1 200 OK\r\ncontent-le"), "closed before"),
    (closing(b"220 mail.example.org ESMTP\r\n"), "not an HTTP"),
    (closing(), "closed before"),
]


@pytest.mark.parametrize(("wire", "why"), REFUSALS)
def test_what_is_no_whole_answer_is_a_failure_that_says_why(wire: Wire, why: str) -> None:
    with serving(lambda _, wire=list(wire): wire) as server:
        (row,) = ask(server.url)
    assert row.error is not None
    assert re.search(why, row.error), row.error


def test_a_compressed_answer_is_refused() -> None:
    body = gzip.compress(b"".join(GOOD))
    with serving(lambda _: [SSE + b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(body), body]) as server:
        (row,) = ask(server.url)
        assert server.asked[0].headers["accept-encoding"] == "identity"
    assert row.error is not None
    assert "compressed (gzip)" in row.error


def test_an_endless_stream_ends_at_the_deadline_with_what_came() -> None:
    def endless(_: Asked) -> Wire:
        yield SSE + b"transfer-encoding: chunked\r\n\r\n"
        while True:
            yield chunk(GOOD[0])
            yield 0.01

    with serving(endless) as server:
        (row,) = ask(server.url, timeout_s=0.5)
    assert row.error == "no complete answer within 0.5 s"
    assert row.ttft_ms is not None
    assert row.output_speed is None


def test_connections_are_kept_and_a_closed_one_is_replaced_once() -> None:
    with serving(lambda _: stream(*GOOD)) as server:
        rows = ask(server.url, 3)
        assert [asked.connection for asked in server.asked] == [1, 1, 1]
    assert [row.reused_connection for row in rows] == [False, True, True]
    assert [row.connect_ms is None for row in rows] == [False, True, True]

    def third_closes(_: Asked) -> Wire:
        return [None] if len(server.asked) == 3 else stream(*GOOD)

    with serving(third_closes) as server:
        rows = ask(server.url, 3)
        assert [asked.connection for asked in server.asked] == [1, 1, 1, 2]
    assert [row.error for row in rows] == [None] * 3


def test_nobody_there_is_a_failure_of_that_request() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (row,) = ask(f"http://127.0.0.1:{port}/v1")
    assert row.error == "connection refused"


def test_the_next_address_is_tried_when_the_first_refuses() -> None:
    with serving(lambda _: stream(*GOOD)) as server:
        target = Target("it", server.url, "m")
        origin = target.resolve()
        with socket.create_server(("127.0.0.1", 0)) as free:
            dead = (int(socket.AF_INET), ("127.0.0.1", free.getsockname()[1]))
        twice = type(origin)(origin.host, origin.port, False, (dead, *origin.addresses), 0.0)
        calls, seen = [target.call(twice, "hello", SETTINGS)], list[Exchange]()
        drive(lambda _: calls.pop() if calls else None, seen.append)
    assert measure(seen[0]).error is None


def test_an_address_that_swallows_packets_is_given_up_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluicegate.race.wire.CONNECT_PATIENCE_S", 0.1)
    with contextlib.ExitStack() as held, serving(lambda _: stream(*GOOD)) as server:
        full = held.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):  # a full queue of connections answers no more
            waiting = held.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        target = Target("it", server.url, "m")
        origin = target.resolve()
        addresses = ((int(socket.AF_INET), full.getsockname()), *origin.addresses)
        twice = type(origin)(origin.host, origin.port, False, addresses, 0.0)
        calls, seen = [target.call(twice, "hello", SETTINGS)], list[Exchange]()
        drive(lambda _: calls.pop() if calls else None, seen.append)
    row = measure(seen[0])
    assert row.error is None
    assert row.connect_ms is not None
    assert row.connect_ms > 50


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_tls_is_spoken_and_its_time_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    make = f"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout {key} -out {certificate}"
    subject = "-days 2 -subj /CN=loopback -addext subjectAltName=IP:127.0.0.1"
    subprocess.run([*make.split(), *subject.split()], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with serving(lambda _: stream(*GOOD), context) as server:
        (row,) = ask(server.url)
        assert row.error == "TLS: certificate refused: self-signed certificate"
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        rows = ask(server.url, 3)
    assert [row.error for row in rows] == [None] * 3
    assert rows[0].tls_ms is not None
    assert rows[0].connect_ms is not None
    assert [row.reused_connection for row in rows] == [False, True, True]


def test_a_server_that_speaks_no_tls_is_a_tls_fault() -> None:
    with serving(lambda _: stream(*GOOD)) as server:
        (row,) = ask(server.url.replace("http:", "https:"))
    assert row.error is not None
    assert row.error.startswith("TLS: ") or "closed" in row.error


def test_a_request_larger_than_the_socket_s_buffer_is_sent_whole() -> None:
    with serving(lambda _: stream(*GOOD)) as server:
        target = Target("it", server.url, "m")
        calls, seen = [target.call(target.resolve(), "x" * 8_000_000, SETTINGS)], list[Exchange]()
        drive(lambda _: calls.pop() if calls else None, seen.append)
        assert len(server.asked[0].body["messages"][0]["content"]) == 8_000_000
    assert measure(seen[0]).error is None
