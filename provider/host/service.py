"""One long-lived process and its owner.

A service is a folder: `service.json` says what to run, `log` holds what it printed, `state.json` who runs it. The
`supervise` process is the parent: it restarts what exits (only once `gated` exists: before that an exit is an answer),
rotates the log, and takes the child with it when it dies, so that the folder always tells the truth.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from io import BufferedWriter
from pathlib import Path
from typing import Any

from .files import read_json, write_json
from .processes import Proc, end
from .self import detach

LOG_BYTES = 8 << 20  # a full log is kept once more as log.1
PR_SET_PDEATHSIG = 1
BACKOFF_S = (0.5, 1, 2, 5, 10, 30)
STEADY_S = 60  # an engine that ran this long starts its back-off anew


@dataclass(frozen=True)
class Service:
    folder: Path

    @property
    def log(self) -> Path:
        return self.folder / "log"

    @property
    def state(self) -> dict[str, Any]:
        return read_json(self.folder / "state.json") or {}

    def supervisor(self) -> Proc | None:
        return _live(self.state.get("supervisor"))

    def child(self) -> Proc | None:
        return _live(self.state.get("child"))

    def start(self, argv: list[str], env: dict[str, str], stop_s: float, sockets: list[Path]) -> None:
        """Write what to run and start its supervisor, detached. Raises RuntimeError when one runs already."""
        if self.supervisor() or self.child():
            raise RuntimeError(f"{self.folder} runs already")
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "gated").unlink(missing_ok=True)
        (self.folder / "state.json").unlink(missing_ok=True)
        spec = {"argv": argv, "env": env, "stop_s": stop_s, "sockets": [str(s) for s in sockets]}
        write_json(self.folder / "service.json", spec)
        process = detach(["supervise", str(self.folder)], self.folder / "supervisor.log")
        while process.poll() is None and not self.state.get("since"):
            time.sleep(0.01)

    def keep(self) -> None:
        """From now on an exit is a fault to be mended by a restart."""
        (self.folder / "gated").touch()

    def exited(self) -> bool:
        return self.child() is None and not (self.supervisor() and (self.folder / "gated").exists())

    def stop(self, patience_s: float | None = None) -> None:
        """End supervisor and child; `patience_s` overrides the time the child gets to finish."""
        spec = read_json(self.folder / "service.json") or {}
        wait_s = float(spec.get("stop_s", 10)) if patience_s is None else patience_s
        (self.folder / "gated").unlink(missing_ok=True)
        child, supervisor = self.child(), self.supervisor()
        end([p for p in (child,) if p], wait_s)
        end([p for p in (supervisor,) if p], 5)
        for socket in spec.get("sockets", []):
            Path(socket).unlink(missing_ok=True)


def supervise(folder: Path, tick: Callable[[], None]) -> int:
    """Run the service in `folder` until it is told to stop, or exits before it was ever gated.

    `tick` is called about ten times a second, for what must happen in the folder while nobody asks.
    """
    spec = read_json(folder / "service.json")
    stopping = False

    def on_stop(*_: object) -> None:
        nonlocal stopping
        stopping = True

    for sig in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sig, on_stop)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    me = Proc.of(os.getpid())
    state: dict[str, Any] = {"supervisor": me.dump() if me else None, "restarts": 0}
    failures = 0
    while True:
        for socket in spec["sockets"]:
            Path(socket).unlink(missing_ok=True)
        began = time.monotonic()
        child = subprocess.Popen(
            spec["argv"],
            env=spec["env"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_die_with_parent,
        )
        proc = Proc.of(child.pid)
        write_json(folder / "state.json", state | {"child": proc.dump() if proc else None, "since": time.time()})
        _pump(child, folder / "log", lambda: stopping, tick)
        if stopping and proc:
            end([proc], float(spec["stop_s"]))
        code = child.wait()
        if proc:
            _kill_group(proc.pid)
        state |= {"exit": code, "child": None}
        write_json(folder / "state.json", state | {"since": time.time()})
        if stopping or not (folder / "gated").exists():
            return 0
        failures = 0 if time.monotonic() - began > STEADY_S else failures + 1
        state["restarts"] += 1
        _note(folder / "log", f"exited with {code}; restart {state['restarts']}")
        pause = time.monotonic() + BACKOFF_S[min(failures, len(BACKOFF_S) - 1)]
        while time.monotonic() < pause and not stopping:
            time.sleep(0.05)
        if stopping:
            return 0


def _live(value: Any) -> Proc | None:
    proc = Proc.read(value)
    return proc if proc and proc.alive() else None


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _kill_group(pgid: int) -> None:
    """Children the engine left behind would keep its memory."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pgid, signal.SIGKILL)


def _pump(child: subprocess.Popen[bytes], path: Path, stop: Callable[[], bool], tick: Callable[[], None]) -> None:
    """Copy what the child prints into its log until it has exited or we are told to stop."""
    assert child.stdout is not None
    log: BufferedWriter = path.open("ab")
    try:
        while not stop():
            tick()
            ready, _, _ = select.select([child.stdout], [], [], 0.1)
            data = os.read(child.stdout.fileno(), 1 << 16) if ready else None
            if data:
                log = _rotated(log, path)
                log.write(data)
                log.flush()
            elif data == b"" or child.poll() is not None:
                return
    finally:
        log.close()


def _rotated(log: BufferedWriter, path: Path) -> BufferedWriter:
    if log.tell() < LOG_BYTES:
        return log
    log.close()
    os.replace(path, path.with_name(path.name + ".1"))
    return path.open("ab")


def _note(path: Path, text: str) -> None:
    with path.open("a") as f:
        f.write(f"[sluicegate] {text}\n")
