"""The owner of one long-lived process, in a process of its own.

It restarts what exits or stalls (only once `gated` exists: before that an exit is an answer), rotates the log, ends
the child with everything in its session, and takes it along when it dies itself, so that the folder tells the truth.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .files import read_json, write_json
from .processes import Proc, die_with_parent
from .service import note_event

LOG_BYTES = 8 << 20  # a full log is kept once more as log.1
BACKOFF_S = (0.5, 1, 2, 5, 10, 30)
STEADY_S = 60  # an engine that ran this long starts its back-off anew
LOOK_S = 0.1


def supervise(folder: Path, tick: Callable[[], None]) -> int:
    """Run the service in `folder` until it is told to stop, or exits before it was ever gated.

    `tick` is called about ten times a second, for what must happen in the folder while nobody asks.
    """
    asked: list[int] = []  # signals that asked for the end
    for sig in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sig, lambda number, _: asked.append(number))
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    mine, spec = _which(folder / "service.json"), read_json(folder / "service.json")
    if mine is None or spec is None:
        return 0  # it was stopped before it began
    restarts = failures = 0
    if spec.get("unit"):
        from .resume import resume  # here: only systemd starts what is not the first

        if (before := resume(folder, spec)) is None:
            return 0
        restarts = before

    def watch() -> None:
        """Without its order, or with another's in its place, it was stopped, or nobody could find it to stop it."""
        if _which(folder / "service.json") != mine:
            asked.append(signal.SIGTERM)
        else:
            tick()

    probe = None
    if facts := spec.get("probe"):
        from .stall import watch_beside  # here: the front's supervisor has no need of it

        probe = watch_beside(facts, (folder / "gated").exists)
    while True:
        began = time.monotonic()
        if probe:
            probe.begin()
        code = _run(folder, spec, restarts, asked, watch, lambda: probe.verdict if probe else None)
        why = (probe.verdict if probe else None) or f"exited with {code}"
        if _which(folder / "service.json") != mine:
            return 0
        # This first, then the look at `gated`: see Service.keep.
        _note_state(folder, child=None, exit=code, restarts=restarts)
        if asked or not (folder / "gated").exists():
            return 0
        failures = 1 if time.monotonic() - began > STEADY_S else failures + 1
        restarts += 1
        _Log(folder / "log").note(f"{why}; restart {restarts}")
        note_event(folder, "restart", f"{why}; restart {restarts}")
        pause = time.monotonic() + BACKOFF_S[min(failures, len(BACKOFF_S)) - 1]
        while time.monotonic() < pause and not asked:
            watch()
            time.sleep(0.05)
        if asked:
            return 0


def _run(
    folder: Path,
    spec: dict[str, Any],
    restarts: int,
    asked: list[int],
    tick: Callable[[], None],
    stalled: Callable[[], str | None],
) -> int:
    """Start the child and stay with it until it and its whole session are gone; its exit code (127: no start)."""
    for socket in spec["sockets"]:
        Path(socket).unlink(missing_ok=True)
    log = _Log(folder / "log")
    try:
        child = subprocess.Popen(
            spec["argv"],
            env=spec["env"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=die_with_parent(),
        )
    except OSError as e:
        log.note(f"cannot start {spec['argv'][0]}: {e.strerror}")
        return 127
    proc = Proc.of(child.pid, corpse=True)
    assert proc is not None
    assert child.stdout is not None
    _note_state(folder, child=proc.dump(), restarts=restarts)
    out: int | None = child.stdout.fileno()
    gone_at = kill_at = None
    while True:
        tick()
        data = _read(out)
        if data:
            log.write(data)
        elif data == b"":
            out = None
        now = time.monotonic()
        if child.poll() is not None:
            gone_at = gone_at or now
            # What is in the pipe is read to its end, unless children that were left behind go on filling it.
            if not data or now - gone_at > 1:
                break
        elif asked and kill_at is None:
            kill_at = now + float(spec["stop_s"])
            child.terminate()
        elif kill_at is None and stalled():
            kill_at = now  # what computes nothing has nothing to finish
        elif kill_at and now > kill_at:
            child.kill()
    proc.kill_session()
    return child.wait()


def _which(path: Path) -> tuple[int, int] | None:
    """What tells a file from the one that takes its name later; None when there is none."""
    with suppress(OSError):
        found = path.stat()
        return found.st_ino, found.st_mtime_ns
    return None


def _read(out: int | None) -> bytes | None:
    """What the child printed; empty once it has closed its output, None when it said nothing for a moment."""
    if out is None:
        time.sleep(LOOK_S / 2)
        return None
    return os.read(out, 1 << 16) if select.select([out], [], [], LOOK_S)[0] else None


def _note_state(folder: Path, **state: Any) -> None:
    write_json(folder / "state.json", state | {"since": time.time()})


@dataclass(frozen=True)
class _Log:
    path: Path

    def write(self, data: bytes) -> None:
        # A full disk costs log lines, never the engine.
        with suppress(OSError):
            if self.path.exists() and self.path.stat().st_size >= LOG_BYTES:
                os.replace(self.path, self.path.with_name(self.path.name + ".1"))
            with self.path.open("ab", buffering=0) as f:
                f.write(data)

    def note(self, text: str) -> None:
        self.write(f"[sluicegate] {text}\n".encode())
