"""Bytes into an HTTP answer. Proves the framing; cannot prove what real servers send."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.race.http1 import BrokenAnswerError, Response

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


def fed(*parts: bytes, limit: int = 1 << 20) -> Response:
    response = Response(limit)
    for number, part in enumerate(parts):
        response.feed(part, float(number))
    return response


@pytest.mark.parametrize(
    ("wire", "body", "reusable"),
    [
        (CHUNKED + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", b"abcde", True),
        (CHUNKED + b"3;name=value\r\nabc\r\n0\r\nX-Trailer: y\r\n\r\n", b"abc", True),
        (CHUNKED + b"00003\nabc\n0\n\n", b"abc", True),
        (HEAD + b"Content-Length: 5\r\n\r\nabcde", b"abcde", True),
        (HEAD + b"Content-Length: 0\r\n\r\n", b"", True),
        (HEAD + b"Content-Length: 3\r\n\r\nabcde", b"abc", False),
        (HEAD + b"Content-Length: 0\r\n\r\nabcde", b"", False),
        (CHUNKED + b"0\r\n\r\nabcde", b"", False),
        (HEAD + b"Connection: close\r\nContent-Length: 2\r\n\r\nab", b"ab", False),
        (
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\n"
            + HEAD
            + b"Content-Length: 1\r\n\r\na",
            b"a",
            True,
        ),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b"", True),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", b"a", False),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\na", b"a", True),
        (b"HTTP/1.1 200\nContent-Length: 1\n\na", b"a", True),
    ],
)
def test_an_answer_is_the_same_however_the_network_cuts_it(wire: bytes, body: bytes, reusable: bool) -> None:
    for parts in ([wire], [wire[i : i + 1] for i in range(len(wire))]):
        response = fed(*parts)
        assert response.complete
        assert bytes(response.body) == body
        assert response.reusable is reusable


@given(st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=8), st.data())
def test_chunks_cut_anywhere_give_the_body_and_its_stamps(chunks: list[bytes], data: st.DataObject) -> None:
    wire = CHUNKED + b"".join(b"%x\r\n%s\r\n" % (len(c), c) for c in chunks) + b"0\r\n\r\n"
    cuts = sorted(data.draw(st.sets(st.integers(1, len(wire) - 1), max_size=12)))
    response = fed(*(wire[a:b] for a, b in itertools.pairwise([0, *cuts, len(wire)])))
    assert response.complete
    assert bytes(response.body) == b"".join(chunks)
    assert list(response.ends) == sorted(response.ends)
    assert response.ends[-1] == len(response.body)
    assert len(response.ends) == len(response.stamps)


@pytest.mark.parametrize(
    ("wire", "why"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", "not an HTTP"),
        (b"HTTP/2 200 OK\r\n\r\n", "not an HTTP"),
        (b"\x15\x03\x03\x00\x02", "not an HTTP"),
        (CHUNKED + b"xyz\r\n", "size"),
        (CHUNKED + b"-3\r\nabc\r\n", "size"),
        (CHUNKED + b"\r\n", "size"),
        (CHUNKED + b"fffffffffffffffff\r\n", "size"),
        (CHUNKED + b"2\r\nabcd\r\n", "longer"),
        (CHUNKED + b"1" * 5000, "does not end"),
        (HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n", "transfer-encoding"),
        (HEAD + b"Content-Length: many\r\n\r\n", "content-length"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000, "headers"),
    ],
)
def test_what_is_no_answer_is_said_to_be_none(wire: bytes, why: str) -> None:
    with pytest.raises(BrokenAnswerError, match=why):
        fed(wire)


def test_an_answer_over_its_limit_is_cut_off() -> None:
    with pytest.raises(BrokenAnswerError, match="larger"):
        fed(CHUNKED, b"100\r\n" + b"x" * 256, limit=200)


@pytest.mark.parametrize(
    "wire", [b"", HEAD, CHUNKED + b"5\r\nab", CHUNKED + b"2\r\nab\r\n", HEAD + b"Content-Length: 3\r\n\r\nab"]
)
def test_a_close_in_the_middle_is_a_cut(wire: bytes) -> None:
    response = fed(wire) if wire else Response(100)
    with pytest.raises(BrokenAnswerError, match="closed"):
        response.end()


def test_a_body_framed_by_the_close_ends_with_it() -> None:
    response = fed(HEAD + b"\r\n", b"abc")
    assert not response.complete
    response.end()
    assert response.complete
    assert not response.reusable
