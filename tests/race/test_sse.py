"""Event streams out of bytes, after the standard's own rules."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.race.sse import Event, events


def read(*reads: bytes) -> list[Event]:
    ends, total = array("Q"), 0
    for data in reads:
        total += len(data)
        ends.append(total)
    return list(events(b"".join(reads), ends, array("d", range(len(reads)))))


@pytest.mark.parametrize(
    ("body", "data"),
    [
        (b"data: a\n\ndata:b\n\n", [b"a", b"b"]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
        (b"data: a\r\rdata: b\r\r", [b"a", b"b"]),
        (b": PROCESSING\n\ndata: a\n\n: beat\n", [b"a"]),
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        (b"id: 4\nretry: 10\ndata: a\n\n", [b"a"]),
        (b"data\n\n", [b""]),
        (b"event: ping\n\n", []),
        (b"data: a\n\ndata: [DONE]", [b"a", b"[DONE]"]),
        (b"", []),
        (b"\n\n\n", []),
    ],
)
def test_events_are_read_as_the_standard_says(body: bytes, data: list[bytes]) -> None:
    assert [event.data for event in read(body)] == data


def test_an_event_is_dated_by_the_read_that_completed_it() -> None:
    assert [e.at for e in read(b"data: a", b"\n", b"\ndata: b\n\ndata: c\n\n", b": x\n\n", b"data: d\n\n")] == [
        2,
        2,
        2,
        4,
    ]


def test_the_type_of_an_event_is_kept_and_ends_with_it() -> None:
    assert [e.kind for e in read(b"event: error\ndata: a\n\ndata: b\n\n")] == [b"error", b""]


@given(st.lists(st.binary(min_size=1, max_size=30), min_size=1, max_size=20))
def test_no_bytes_break_the_reader_and_time_never_runs_back(reads: list[bytes]) -> None:
    times = [event.at for event in read(*reads)]
    assert times == sorted(times)
