"""One long-lived process and its owner, as others see them: started, looked at, ended.

A service is a folder: `service.json` says what to run, `log` holds what it printed, `supervisor.json` who owns it and
`state.json` what its owner knows of it. The owner is a `supervise` process (supervise.py); only it acts on the child.
It is detached, or a unit of systemd (units.py), which `service.json` says.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .files import now, read_json, tail, write_json
from .processes import Proc, boot, commands
from .self import detach
from .units import Units

KEPT_EVENTS = 20
ASK_S = 0.2  # between two looks at a unit that is to come up


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
        units: Units | None = None,
        links: tuple[Path, Path] | None = None,
    ) -> None:
        """Write what to run and start its supervisor. Raises RuntimeError when one runs already, or does not start.

        `probe` has what its stall probe must know (stall.py); without it nothing but an exit brings a restart. With
        `units` the supervisor is a unit, else a detached process. `links` are the one that names the release which
        serves, and the front's to its socket (the first of `sockets`): that one is made again after a reboot.
        """
        if self.supervisor() or self.child():
            raise RuntimeError(f"{self.folder} runs already")
        self._remove_unit(read_json(self.folder / "service.json") or {})
        self.end_leftovers()
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in ("gated", "state.json", "supervisor.json"):
            (self.folder / name).unlink(missing_ok=True)
        spec = {"argv": argv, "env": env, "stop_s": stop_s, "sockets": [str(s) for s in sockets], "probe": probe}
        spec |= {"unit": units and units.dump(), "links": links and [str(p) for p in links], "boot": boot()}
        write_json(self.folder / "service.json", spec)
        ended = self._begin_unit(units, stop_s) if units else self._detach()
        while not self.state:
            if (why := ended()) and not self.state:
                said = tail(self.folder / "supervisor.log", 1) or [why]
                self._remove_unit(spec)  # systemd would try it again and again
                raise RuntimeError(f"the supervisor of {self.folder} does not start: {said[0]}")
            time.sleep(0.01)

    def _detach(self) -> Callable[[], str | None]:
        """Start the supervisor as a process of its own; what says why it has ended, or None while it runs."""
        process = detach(["supervise", str(self.folder)], self.folder / "supervisor.log")
        # Written here and not by the supervisor: whoever stops the service now must not find it without an owner.
        if owner := Proc.of(process.pid):
            write_json(self.folder / "supervisor.json", owner.dump())
        return lambda: None if process.poll() is None else f"it ended with code {process.returncode}"

    def _begin_unit(self, units: Units, stop_s: float) -> Callable[[], str | None]:
        """The same as a unit. Its owner is systemd from the first moment, so here the supervisor notes itself."""
        units.start(self.folder, stop_s)
        asked = time.monotonic()

        def ended() -> str | None:
            nonlocal asked
            if time.monotonic() - asked < ASK_S:
                return None
            asked = time.monotonic()
            return units.ended(self.folder)

        return ended

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
        if units := Units.read(spec.get("unit")):
            units.begin_stop(self.folder)
        for owner in {*supervisors_of(self.folder), *filter(None, [self.supervisor()])}:
            owner.kill(signal.SIGTERM)
            if not owner.gone_within(float(spec.get("stop_s", 10)) if patience_s is None else patience_s):
                self.end_leftovers()
                if not owner.gone_within(5):
                    owner.kill_session()
        self.end_leftovers()
        self._remove_unit(spec)
        # A starter that was killed may have one on its way that is noted nowhere: without its order it ends by itself.
        note.unlink(missing_ok=True)
        for socket in spec.get("sockets", []):
            Path(socket).unlink(missing_ok=True)

    def _remove_unit(self, spec: dict[str, Any]) -> None:
        if units := Units.read(spec.get("unit")):
            units.remove(self.folder, float(spec["stop_s"]))

    def end_leftovers(self) -> None:
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
