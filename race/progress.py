"""A line on stderr that says how far a run is; on a terminal one line redrawn, elsewhere a line per tenth."""

from __future__ import annotations

import contextlib
import io
import shutil
import sys
import time
from typing import TextIO

from .table import clean, wide


class Progress:
    """Counts up to `total` requests. The time left is that of the average request so far, and left out before one.

    Nothing is said where standard error is closed, or its reader has gone: that is no reason to stop measuring.
    """

    def __init__(self, total: int, stream: TextIO | None = None) -> None:
        self._total, self._stream = total, stream or sys.stderr or io.StringIO()
        self._done, self._begun, self._told = 0, time.monotonic(), 0
        self._live = self._stream.isatty()

    def step(self, text: str, count: int = 1) -> None:
        """One more request is over (or `count` will not be sent); `text` says what it was."""
        self._done = min(self._done + count, self._total)
        tenth = 10 * self._done // max(self._total, 1)
        if self._live:
            self._write("\r" + self._line(text) + "\x1b[K")
        elif tenth > self._told:
            self._told = tenth
            self._write(f"{self._done}/{self._total}  {clean(text)}\n")

    def say(self, text: str) -> None:
        """A line that stays."""
        self._write(("\r\x1b[K" if self._live else "") + clean(text) + "\n")

    def close(self) -> None:
        """Leave the terminal's line clean."""
        if self._live:
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            self._stream.write(text)
            self._stream.flush()

    def _line(self, text: str) -> str:
        share = self._done / max(self._total, 1)
        bar = "#" * int(share * 20)
        left = (time.monotonic() - self._begun) * (1 / share - 1) if self._done else None
        rest = "" if left is None else f"  {int(left) // 60}:{int(left) % 60:02d} left"
        line = f"[{bar:.<20}] {self._done}/{self._total}{rest}  {clean(text)}"
        room = shutil.get_terminal_size().columns - 1
        while wide(line) > room:
            line = line[:-1]
        return line
