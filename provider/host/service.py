"""One long-lived process and its owner, as others see them: started, looked at, ended.

A service is a folder: `service.json` says what to run, `log` holds what it printed, `supervisor.json` who owns it and
`state.json` what its owner knows of it. The owner is a `supervise` process (supervise.py); only it acts on the child.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .files import now, read_json, tail, write_json
from .processes import Proc, commands
from .self import detach

KEPT_EVENTS = 20


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
        return _live(read_json(self.folder / "supervisor.json"))

    def child(self) -> Proc | None:
        return _live(self.state.get("child"))

    def events(self) -> list[dict[str, Any]]:
        """What its supervisor had to do, oldest first: `{"t", "event", "text"}`."""
        return list((read_json(self.folder / "events.json") or {}).get("events", []))

    def start(
        self,
        argv: list[str],
        env: dict[str, str],
        stop_s: float,
        sockets: list[Path],
        probe: dict[str, Any] | None = None,
    ) -> None:
        """Write what to run and start its supervisor, detached. Raises RuntimeError when one runs already.

        `probe` has what its stall probe must know (stall.py); without it nothing but an exit brings a restart.
        """
        if self.supervisor() or self.child():
            raise RuntimeError(f"{self.folder} runs already")
        self._end_leftovers()
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "gated").unlink(missing_ok=True)
        (self.folder / "state.json").unlink(missing_ok=True)
        spec = {"argv": argv, "env": env, "stop_s": stop_s, "sockets": [str(s) for s in sockets], "probe": probe}
        write_json(self.folder / "service.json", spec)
        process = detach(["supervise", str(self.folder)], self.folder / "supervisor.log")
        # Written here and not by the supervisor: whoever stops the service now must not find it without an owner.
        if owner := Proc.of(process.pid):
            write_json(self.folder / "supervisor.json", owner.dump())
        while not self.state:
            if process.poll() is not None:
                said = tail(self.folder / "supervisor.log", 1) or [f"it ended with code {process.returncode}"]
                raise RuntimeError(f"the supervisor of {self.folder} does not start: {said[0]}")
            time.sleep(0.01)

    def keep(self) -> None:
        """From now on an exit is a fault to be mended by a restart. Raises RuntimeError when it has exited already.

        The mark first, then the look: the supervisor notes an exit before it looks for the mark, so one sees the other.
        """
        (self.folder / "gated").touch()
        if self.child() is None:
            raise RuntimeError(f"the process has exited with code {self.exit_code()}")

    def exited(self) -> bool:
        return self.child() is None and not (self.supervisor() and (self.folder / "gated").exists())

    def lost(self) -> bool:
        """Whether the process went because its supervisor was killed: what that says is nothing against the process."""
        return self.child() is None and self.supervisor() is None and self.state.get("child") is not None

    def exit_code(self) -> int | None:
        """The last exit code (negative: the signal); its supervisor is given a moment to note it."""
        end = time.monotonic() + 1
        while self.state.get("exit") is None and self.supervisor() and time.monotonic() < end:
            time.sleep(0.02)
        code = self.state.get("exit")
        return int(code) if code is not None else None

    def stop(self, patience_s: float | None = None) -> None:
        """End supervisor and child; `patience_s` overrides the time the child gets to finish."""
        note = self.folder / "service.json"
        spec = read_json(note) or {}
        (self.folder / "gated").unlink(missing_ok=True)
        for owner in {*supervisors_of(self.folder), *filter(None, [self.supervisor()])}:
            owner.kill(signal.SIGTERM)
            if not owner.gone_within(float(spec.get("stop_s", 10)) if patience_s is None else patience_s):
                self._end_leftovers()
                if not owner.gone_within(5):
                    owner.kill_session()
        self._end_leftovers()
        # A starter that was killed may have one on its way that is noted nowhere: without its order it ends by itself.
        note.unlink(missing_ok=True)
        for socket in spec.get("sockets", []):
            Path(socket).unlink(missing_ok=True)

    def _end_leftovers(self) -> None:
        """What the child left behind when its owner was killed, or would not end: it may hold the GPU's memory."""
        if child := Proc.read(self.state.get("child")):
            child.kill_session()


def supervisors_of(folder: Path) -> list[Proc]:
    """Every supervisor of this folder that runs, noted or not, by its command line."""
    words = [b"supervise", os.fsencode(folder), b""]
    found = (Proc.of(pid) for pid, argv in commands() if argv[-3:] == words)
    return [proc for proc in found if proc]


def note_event(folder: Path, event: str, text: str) -> None:
    """Keep in the service's folder what happened to it; the newest KEPT_EVENTS are kept."""
    kept = Service(folder).events()[1 - KEPT_EVENTS :]
    with suppress(OSError):  # a full disk costs the note, never the engine
        write_json(folder / "events.json", {"events": [*kept, {"t": now(), "event": event, "text": text}]})


def _live(value: Any) -> Proc | None:
    proc = Proc.read(value)
    return proc if proc and proc.alive() else None
