"""An HTTP/1.x answer, cut into status, headers and stamped body bytes as it arrives (RFC 9112)."""

from __future__ import annotations

import re
from array import array

HEAD_LIMIT = 64 * 1024
LINE_LIMIT = 4 * 1024
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_CHUNK = re.compile(rb"([0-9a-fA-F]{1,8})\r\n")
_SIZE = re.compile(rb"[0-9a-fA-F]{1,12}")
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-9]\d\d)(?: |$)")


class BrokenAnswerError(Exception):
    """The peer's bytes are no HTTP/1.x answer this client can read; the text is one sentence for the result's row."""


class Response:
    """One answer. Feed it every read with its stamp; it keeps the body and, per read, where the body then ended.

    `ends[i]` is the body length in bytes after read i and `stamps[i]` the time of that read in seconds. `complete` says
    that the framing is over, `reusable` that the connection may carry another request.
    """

    __slots__ = (
        "_between",
        "_framing",
        "_held",
        "_left",
        "_limit",
        "_step",
        "body",
        "complete",
        "ends",
        "first_byte_at",
        "headers",
        "headers_at",
        "reusable",
        "stamps",
        "status",
    )

    def __init__(self, limit_bytes: int) -> None:
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self.body = bytearray()
        self.ends = array("Q")
        self.stamps = array("d")
        self.first_byte_at: float | None = None
        self.headers_at: float | None = None
        self.complete = False
        self.reusable = False
        self._limit = limit_bytes
        self._held = b""
        self._framing = "head"
        self._left = 0
        self._step = "size"
        self._between = False  # a chunk's size comes next, and nothing of it is there yet

    def feed(self, data: bytes, stamp: float) -> None:
        """Take the next bytes as read at `stamp` seconds. Raises BrokenAnswerError."""
        if self._between and (head := _CHUNK.match(data)):  # nearly every read is one whole chunk: the fast way
            begin = head.end()
            end = begin + int(head[1], 16)
            if begin < end == len(data) - 2 and data[end:] == b"\r\n":
                self._add(data[begin:end], stamp)
                return
        if self.first_byte_at is None:
            self.first_byte_at = stamp
        if self._framing == "head":
            data = self._head(data, stamp)
            if self._framing == "head":
                return
        if self.complete:
            self.reusable = self.reusable and not data
        elif self._framing == "chunked":
            self._add(self._chunks(data), stamp)
            self._between = self._step == "size" and not self._held
        elif self._framing == "length":
            self._add(data[: self._left], stamp)
            self._left -= len(data)
            self.reusable = self.reusable and self._left >= 0  # more than was announced: nothing to build on
            self.complete = self._left <= 0
        else:
            self._add(data, stamp)

    def _add(self, data: bytes, stamp: float) -> None:
        self.body += data
        self.ends.append(len(self.body))
        self.stamps.append(stamp)
        if len(self.body) > self._limit:
            raise BrokenAnswerError(f"the answer is larger than {self._limit / 2**20:.1f} MiB and was cut off there")

    def end(self) -> None:
        """The peer closed, which ends a body framed by the close. Raises BrokenAnswerError when that cuts it off."""
        self.reusable = False
        if self._framing == "close":
            self.complete = True
        elif self._framing == "head":
            raise BrokenAnswerError("the connection was closed before the answer's headers ended")
        elif not self.complete:
            raise BrokenAnswerError("the connection was closed in the middle of the answer")

    def _head(self, data: bytes, stamp: float) -> bytes:
        """Collect the head; returns what follows it. Interim 1xx answers are passed over (RFC 9110, 15.2)."""
        self._held += data
        while found := _HEAD_END.search(self._held):
            lines = re.split(rb"\r?\n", self._held[: found.start()])
            self._held = self._held[found.end() :]
            status = _STATUS.match(lines[0])
            if not status:
                raise BrokenAnswerError(f"not an HTTP/1.x answer: {lines[0][:60]!r}")
            code = int(status[2])
            if 100 <= code < 200 and code != 101:
                continue
            self.status, self.headers_at = code, stamp
            for line in lines[1:]:
                name, _, value = line.decode("latin-1").partition(":")
                self.headers[name.strip().lower()] = value.strip()
            self._choose_framing(old=status[1] == b"0")
            rest, self._held = self._held, b""
            return rest
        if len(self._held) > HEAD_LIMIT:
            raise BrokenAnswerError(f"the answer's headers are larger than {HEAD_LIMIT // 1024} KiB")
        if self._held and not b"HTTP/".startswith(self._held[:5]):
            raise BrokenAnswerError(f"not an HTTP/1.x answer: {self._held[:60]!r}")
        return b""

    def _choose_framing(self, old: bool) -> None:
        connection = self.headers.get("connection", "").lower()
        self.reusable = "keep-alive" in connection if old else "close" not in connection
        coding = self.headers.get("transfer-encoding", "").lower()
        if self.status in (204, 304):
            self._framing, self.complete = "length", True
        elif coding:
            if coding != "chunked":
                raise BrokenAnswerError(f"unknown transfer-encoding {coding!r}")
            self._framing = "chunked"
        elif "content-length" in self.headers:
            if not re.fullmatch(r"\d{1,15}", self.headers["content-length"]):
                raise BrokenAnswerError(f"content-length is {self.headers['content-length'][:40]!r}")
            self._framing, self._left = "length", int(self.headers["content-length"])
            self.complete = self._left == 0
        else:
            self._framing, self.reusable = "close", False

    def _chunks(self, data: bytes) -> bytes:
        """The body bytes in the next bytes of a chunked answer (RFC 9112, 7.1)."""
        buffer, at, found = self._held + data if self._held else data, 0, list[bytes]()
        self._held = b""
        while at < len(buffer):
            if self._step == "data":
                part = buffer[at : at + self._left]
                found.append(part)
                at += len(part)
                self._left -= len(part)
                if self._left:
                    break
                self._step = "end"
            newline = buffer.find(b"\n", at)
            if newline < 0:
                self._held = buffer[at:]
                if len(self._held) > LINE_LIMIT:
                    raise BrokenAnswerError("a chunk's header line does not end")
                break
            line, at = buffer[at:newline].rstrip(b"\r"), newline + 1
            if self._step == "size":
                self._left = self._size(line)
                self._step = "data" if self._left else "trailer"
            elif self._step == "end":
                if line:
                    raise BrokenAnswerError("a chunk is longer than its header says")
                self._step = "size"
            elif not line:  # the blank line after the last chunk and its trailers
                self.complete = True
                self.reusable = self.reusable and at == len(buffer)
                break
        return b"".join(found)

    @staticmethod
    def _size(line: bytes) -> int:
        digits = line.split(b";", 1)[0].strip()
        if not _SIZE.fullmatch(digits):
            raise BrokenAnswerError(f"a chunk's size is {line[:40]!r}")
        return int(digits, 16)
