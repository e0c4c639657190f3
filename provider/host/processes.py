"""Processes by identity: a pid alone may have been given to somebody else since."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Proc:
    """A process as it was when noted: pid, its start in clock ticks since boot, and which boot."""

    pid: int
    start: int
    boot: str

    @classmethod
    def of(cls, pid: int) -> Proc | None:
        """The process that has this pid now; None when there is none or only its corpse (state Z) is left."""
        stat = _stat(pid)
        return cls(pid, stat[1], _boot()) if stat else None

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

    def kill(self, sig: int, group: bool = False) -> None:
        """Signal it if it is still the same process; `group` reaches the children it leads as well."""
        if self.alive():
            with suppress(ProcessLookupError):
                (os.killpg if group else os.kill)(self.pid, sig)


def end(procs: Iterable[Proc], wait_s: float) -> bool:
    """TERM, wait, then KILL what is left, with its children. True when nothing had to be killed."""
    left = [p for p in procs if p.alive()]
    for p in left:
        p.kill(signal.SIGTERM)
    stop = time.monotonic() + wait_s
    while left and time.monotonic() < stop:
        time.sleep(0.02)
        left = [p for p in left if p.alive()]
    for p in left:
        p.kill(signal.SIGKILL, group=True)
    return not left


def _stat(pid: int) -> tuple[str, int] | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, start = fields[0], int(fields[19])
    return None if state in "ZX" else (state, start)


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()[:8]
