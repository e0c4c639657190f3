"""Processes by identity: a pid alone may have been given to somebody else since."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Proc:
    """A process as it was when noted: pid, its start in clock ticks since boot, and which boot."""

    pid: int
    start: int
    boot: str

    @classmethod
    def of(cls, pid: int, corpse: bool = False) -> Proc | None:
        """The process that has this pid now; None when there is none or, without `corpse`, only a zombie is left."""
        stat = _stat(pid)
        return cls(pid, stat.start, boot()) if stat and (corpse or stat.state not in "ZX") else None

    @classmethod
    def read(cls, value: Any) -> Proc | None:
        try:
            return cls(int(value["pid"]), int(value["start"]), str(value["boot"]))
        except (TypeError, KeyError, ValueError):
            return None

    def dump(self) -> dict[str, Any]:
        return asdict(self)

    def alive(self) -> bool:
        return Proc.of(self.pid) == self

    def kill(self, sig: int) -> None:
        """Signal it if it is still the same process."""
        if self.alive():
            with suppress(ProcessLookupError):
                os.kill(self.pid, sig)

    def gone_within(self, wait_s: float) -> bool:
        end = time.monotonic() + wait_s
        while self.alive():
            if time.monotonic() >= end:
                return False
            time.sleep(0.02)
        return True

    def end(self, wait_s: float) -> None:
        """TERM, wait, then KILL, with everything in the session it opened."""
        self.kill(signal.SIGTERM)
        self.gone_within(wait_s)
        self.kill_session()

    def kill_session(self) -> None:
        """KILL what is left of the session it opened; it need not live itself, children it left behind do harm too."""
        there = _stat(self.pid)
        if self.boot != boot() or (there and there.start != self.start):
            return  # the pid is somebody else's by now, and so is the session of that number
        end = time.monotonic() + 5
        while (left := _session(self.pid)) and time.monotonic() < end:
            for pid in left:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)


def die_with_parent() -> Callable[[], None]:
    """For Popen's preexec_fn: the kernel kills the child when we are gone, also when we are before it is armed."""
    parent, libc = os.getpid(), ctypes.CDLL(None)

    def arm() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(127)

    return arm


class _Stat(NamedTuple):
    state: str
    session: int
    start: int


def _stat(pid: int) -> _Stat | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return _Stat(fields[0], int(fields[3]), int(fields[19]))


def commands() -> Iterator[tuple[int, list[bytes]]]:
    """Pid and argument list of every process whose command line can be read; the list ends with an empty one."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError):
                yield int(name), Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")


def _session(leader: int) -> list[int]:
    """Pids of what still runs in the session."""
    stats = ((int(name), _stat(int(name))) for name in os.listdir("/proc") if name.isdigit())
    return [pid for pid, stat in stats if stat and stat.session == leader and stat.state not in "ZX"]


def boot() -> str:
    """Which boot of the machine this is."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()[:8]
