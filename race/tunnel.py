"""TLS without a socket: bytes in, bytes out, so that the reads stay ours to stamp."""

from __future__ import annotations

import ssl

PART_BYTES = 64 * 1024


class Tunnel:
    """The client's end of one TLS connection to `host`, certificate checked by `context`."""

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        self.ready = False
        self._inward, self._outward = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._inward, self._outward, server_hostname=host)

    def handshake(self, data: bytes | None) -> bytes:
        """Go on with the handshake after `data` arrived (None = begin). Returns what to send. Raises ssl.SSLError."""
        if data is not None:
            self._take(data)
        try:
            self._tls.do_handshake()
            self.ready = True
        except ssl.SSLWantReadError:
            pass
        return self._outward.read()

    def seal(self, plain: bytes) -> bytes:
        """The records that carry `plain`."""
        self._tls.write(plain)
        return self._outward.read()

    def unseal(self, data: bytes) -> bytes:
        """What the records completed by `data` carry; empty data = the peer closed. Raises ssl.SSLError."""
        self._take(data)
        return self.unseal_rest()

    def unseal_rest(self) -> bytes:
        """What came in the same read as the end of the handshake, or is still unread."""
        parts = []
        try:
            while part := self._tls.read(PART_BYTES):
                parts.append(part)
        except (ssl.SSLWantReadError, ssl.SSLEOFError, ssl.SSLZeroReturnError):
            pass
        return b"".join(parts)

    def _take(self, data: bytes) -> None:
        if data:
            self._inward.write(data)
        else:
            self._inward.write_eof()
