"""Server-sent events out of a finished answer, each with the time of the read that completed it (WHATWG HTML, 9.2)."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from typing import NamedTuple

_LINE_END = re.compile(rb"\r\n|\n|\r")
_NEWLINE = re.compile(rb"\n")  # found several times as fast, and all there is in most streams
_BOM = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One event: when it was complete (seconds, the clock of the stamps), its type (empty = message), its data."""

    at: float
    kind: bytes
    data: bytes


def events(body: bytes, ends: array[int], stamps: array[float]) -> Iterator[Event]:
    """The events of `body`, whose first `ends[i]` bytes had arrived at `stamps[i]`.

    Comments and events without data are passed over. An event that the body's end leaves without its blank line counts
    with what it has: whether the answer was cut is for the caller to tell from its content.
    """
    at = 3 if body.startswith(_BOM) else 0
    read, kind, data = 0, b"", list[bytes]()
    for line_end in (_LINE_END if b"\r" in body else _NEWLINE).finditer(body, at):
        text, at = body[at : line_end.start()], line_end.end()
        if text.startswith(b"data: "):  # nearly every line, so the first branch
            data.append(text[6:])
        elif text:
            kind = _field(text, kind, data)
        else:
            if data:
                while ends[read] < at:
                    read += 1
                yield Event(stamps[read], kind, b"\n".join(data))
            kind, data = b"", []
    if at < len(body):
        kind = _field(body[at:], kind, data)
    if data:
        yield Event(stamps[-1], kind, b"\n".join(data))


def _field(text: bytes, kind: bytes, data: list[bytes]) -> bytes:
    name, _, value = text.partition(b":")
    if name == b"data":
        data.append(value.removeprefix(b" "))
    elif name == b"event":
        return value.removeprefix(b" ")
    return kind
