"""Runs one command of a local Command: its streams, its deadline, and word of a cancel."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

DEFAULT_INTERPRETER = ("/bin/sh", "-c")
KILL_AFTER_S = 5.0

Log = Callable[[str], Awaitable[None]]


@dataclass(kw_only=True)
class Streams:
    """What came out, apart and together."""

    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)
    both: bytearray = field(default_factory=bytearray)


@dataclass(frozen=True, kw_only=True)
class Finished:
    """How it ended: an exit status (negative for a signal), or why it was stopped."""

    status: int | None
    stopped: str | None
    streams: Streams

    def failure(self) -> str | None:
        """As the official plugin words it, without the command."""
        if self.stopped:
            return self.stopped
        if self.status and self.status < 0:
            return f"signal: {signal.Signals(-self.status).name}"
        return f"exit status {self.status}" if self.status else None


def arguments(inputs: Mapping[str, Any], command: str) -> list[str]:
    """The interpreter and the command."""
    return [*(inputs.get("interpreter") or DEFAULT_INTERPRETER), command]


def environment(inputs: Mapping[str, Any], previous: Mapping[str, Any], base: Mapping[str, str]) -> dict[str, str]:
    """The plugin's own, the given one, and the previous run's output unless that is switched off."""
    env = {**base, **(inputs.get("environment") or {})}
    if inputs.get("addPreviousOutputInEnv") is not False:
        for name in ("stdout", "stderr"):
            if previous.get(name):
                env[f"PULUMI_COMMAND_{name.upper()}"] = previous[name]
    return env


async def run(
    command: list[str],
    *,
    env: Mapping[str, str],
    folder: str | None,
    stdin: str | None,
    timeout_s: float | None,
    cancelled: asyncio.Event,
    log: Mapping[str, Log],
) -> Finished:
    """Run to the end, or until the deadline or a cancel stops all of it. Raises OSError if it can't start."""
    process = await asyncio.create_subprocess_exec(
        *command,
        env=env,
        cwd=folder,
        stdin=asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    streams = Streams()
    work = asyncio.ensure_future(_communicate(process, streams, stdin, log))
    cancel = asyncio.ensure_future(cancelled.wait())
    done, _ = await asyncio.wait((work, cancel), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    stopped = None
    if work not in done:
        stopped = "cancelled" if cancel in done else f"not done within the custom timeout of {timeout_s:g} s"
        await _stop(process, work)
    cancel.cancel()
    return Finished(status=process.returncode, stopped=stopped, streams=streams)


async def _communicate(
    process: asyncio.subprocess.Process, streams: Streams, stdin: str | None, log: Mapping[str, Log]
) -> None:
    assert process.stdout is not None
    assert process.stderr is not None
    readers = [
        _read(process.stdout, streams.stdout, streams.both, log.get("stdout")),
        _read(process.stderr, streams.stderr, streams.both, log.get("stderr")),
    ]
    if process.stdin is not None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            process.stdin.write((stdin or "").encode())
            await process.stdin.drain()
        process.stdin.close()
    await asyncio.gather(*readers)
    await process.wait()


async def _read(stream: asyncio.StreamReader, own: bytearray, both: bytearray, log: Log | None) -> None:
    line = b""
    while chunk := await stream.read(65536):
        own += chunk
        both += chunk
        if log is None:
            continue
        # By \r too: a progress bar writes no other line end.
        *whole, line = (line + chunk).replace(b"\r", b"\n").split(b"\n")
        for text in whole:
            await log(text.decode(errors="replace"))
    if log is not None and line:
        await log(line.decode(errors="replace"))


async def _stop(process: asyncio.subprocess.Process, work: asyncio.Future[None]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        done, _ = await asyncio.wait((work,), timeout=KILL_AFTER_S)
        if done:
            return
    work.cancel()
