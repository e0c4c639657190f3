"""What set-up says: short lines on stdout, and a line at least every ten seconds while a long step runs."""

from __future__ import annotations

import io
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

EVERY_S = 10.0


class SetupError(Exception):
    """A step failed; the text says what, why and the mend."""


def say(text: str) -> None:
    """One line, at once, also when stdout is a file."""
    print(text, flush=True)


def run_with_progress(
    what: str, command: Sequence[str], *, cwd: Path, env: Mapping[str, str], every_s: float = EVERY_S
) -> None:
    """Run a minutes-long command; says every `every_s` how long it has run, how much it printed, and its last line.

    Raises SetupError with the command's last lines when it fails.
    """
    started = time.monotonic()
    lines: queue.Queue[str | None] = queue.Queue()
    process = subprocess.Popen(
        command, cwd=cwd, env=env, encoding="utf-8", errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )  # fmt: skip

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.put(line.rstrip())
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    seen: list[str] = []
    said = started
    try:
        while True:
            try:
                line = lines.get(timeout=max(0.0, said + every_s - time.monotonic()))
            except queue.Empty:
                said = time.monotonic()
                latest = f", at {seen[-1]}" if seen else ""
                say(f"  {what}: {said - started:.0f} s, {len(seen)} steps done{latest}")
                continue
            if line is None:
                break
            seen.append(line)
    except BaseException:
        process.terminate()  # ^C: it may be of a shell that told only us; what it works on is about to be removed
        process.wait()
        raise
    if process.wait() != 0:
        tail = "\n".join(f"  {line}" for line in seen[-12:])
        raise SetupError(f"{what} failed (exit {process.returncode}) after {time.monotonic() - started:.0f} s:\n{tail}")


def start(main: Callable[[list[str]], int | None]) -> NoReturn:
    """Runs a program of this room: neither a character that the terminal's encoding lacks nor ^C ends in a trace."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)


def fail(error: Exception) -> int:
    """Print an error as a person reads it; returns the exit status."""
    print(f"error: {error}", file=sys.stderr, flush=True)
    return 1
