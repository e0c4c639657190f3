"""A supervisor as a unit of systemd: written, started, asked after, removed. systemd itself is the supervisor's owner.

The unit brings the supervisor back when it is killed and after a reboot. What the supervisor runs, and whether that is
still wanted, stays its own matter (resume.py): the unit only says that `service.json` must be there.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .files import write_atomic
from .self import command
from .unit_text import MARGIN_S, UnitFailed, percent, target, text_of

CALL_S = 30  # what systemctl may take for anything but a stop


def usable(booted: Path = Path("/run/systemd/system"), program: str = "systemctl") -> bool:
    """Whether systemd is PID 1 here, by its own mark for that, and can be spoken to."""
    return booted.is_dir() and shutil.which(program) is not None


@dataclass(frozen=True)
class Units:
    """The units of one stack: where their files lie, and the program (with its first words) that systemd is told by."""

    stack: str
    folder: Path
    systemctl: tuple[str, ...]
    lingering: Path = Path("/var/lib/systemd/linger")  # has a file for each user whose manager stays without a login

    @classmethod
    def asked(cls, value: Any, stack: str) -> Units | None:
        """From `places.units`: true is the machine's own systemd where that is PID 1, an object names another."""
        if isinstance(value, dict):
            return cls(stack, Path(value["folder"]), tuple(value["systemctl"]))
        if not value or not usable():
            return None
        if os.geteuid() == 0:
            return cls(stack, Path("/etc/systemd/system"), ("systemctl",))
        config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
        return cls(stack, config / "systemd/user", ("systemctl", "--user"))

    @classmethod
    def read(cls, value: Any) -> Units | None:
        return cls.asked(value, value["stack"]) if isinstance(value, dict) else None

    def dump(self) -> dict[str, Any]:
        return {"stack": self.stack, "folder": str(self.folder), "systemctl": list(self.systemctl)}

    @property
    def user(self) -> bool:
        return "--user" in self.systemctl

    def path(self, service: Path) -> Path:
        """The unit file of the service in this folder."""
        return self.folder / f"sluicegate-{hashlib.sha256(os.fsencode(service)).hexdigest()[:12]}.service"

    def start(self, service: Path, stop_s: float) -> None:
        """Write the unit, have it started now and at every boot. Raises UnitFailed, and leaves no unit then."""
        me = pwd.getpwuid(os.geteuid()).pw_name
        if self.user and not (self.lingering / me).exists():
            raise UnitFailed(f"what {me} runs would end with {me}'s last login here; run `loginctl enable-linger {me}`")
        unit = self.path(service)
        text = text_of(service, command(["supervise", str(service)]), os.environ, stop_s, self.stack, self.user)
        write_atomic(unit, text, 0o644)
        try:
            self._call("daemon-reload")
            self._call("enable", unit.name)
            self._call("start", unit.name)
        except UnitFailed:
            self.remove(service, 0)
            raise

    def ended(self, service: Path) -> str | None:
        """Why the unit that was just started does not run, or None while it does."""
        seen = self._show(service)
        if seen.get("ActiveState") in ("active", "activating", "reloading") and seen.get("NRestarts", "0") == "0":
            return None if seen.get("SubState") != "auto-restart" else "it fails"
        return f"systemd says {seen.get('ActiveState')} ({seen.get('Result')})"

    def main_pid(self, service: Path) -> int | None:
        return int(self._show(service).get("MainPID") or 0) or None

    def begin_stop(self, service: Path) -> None:
        """Ask for the end, and do not wait: from now on nothing that happens to the supervisor brings it back.

        A systemd that cannot be asked brings nothing back either once the unit is removed.
        """
        with suppress(UnitFailed):
            self._call("stop", "--no-block", self.path(service).name)

    def remove(self, service: Path, stop_s: float) -> None:
        """End the unit and take it away; what systemd does not do of that is done by hand."""
        self._remove(self.path(service), stop_s)

    def sweep(self, below: Path) -> None:
        """Remove every unit of a service in or below the folder, also one whose own folder is gone."""
        for unit in sorted(self.folder.glob("sluicegate-*.service")):
            if f"\nConditionPathExists={percent(below)}/" in unit.read_text(errors="replace"):
                self._remove(unit, 0)

    def _remove(self, unit: Path, stop_s: float) -> None:
        with suppress(UnitFailed):
            self._call("disable", "--now", unit.name, patience_s=stop_s + MARGIN_S + CALL_S)
        with suppress(UnitFailed):  # it says so where nothing had failed
            self._call("reset-failed", unit.name)
        unit.unlink(missing_ok=True)
        (self.folder / f"{target(self.user)}.wants" / unit.name).unlink(missing_ok=True)
        with suppress(UnitFailed):
            self._call("daemon-reload")

    def _show(self, service: Path) -> dict[str, str]:
        wanted = "--property=ActiveState,SubState,Result,NRestarts,MainPID"
        lines = self._call("show", wanted, self.path(service).name).splitlines()
        return {key: value for key, _, value in (line.partition("=") for line in lines)}

    def _call(self, *words: str, patience_s: float = CALL_S) -> str:
        """What systemctl prints. Raises UnitFailed."""
        env, said = os.environ | {"LC_ALL": "C"}, f"`{' '.join([*self.systemctl[-1:], *words])}`"
        if self.user:  # a login over SSH may lack what leads to the user's own manager
            env.setdefault("XDG_RUNTIME_DIR", f"/run/user/{os.geteuid()}")
        try:
            done = subprocess.run(
                [*self.systemctl, "--no-ask-password", *words],
                env=env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=patience_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise UnitFailed(f"{said} had not answered after {patience_s:g} s; see `systemctl list-jobs`") from None
        except OSError as e:
            raise UnitFailed(f"{said} cannot be run ({e.strerror}); install systemd's systemctl") from e
        if done.returncode:
            told = done.stderr.strip() or f"exit code {done.returncode}"
            raise UnitFailed(f"{said} failed: {told.splitlines()[0][:300]}; {self._mend(told, words[-1])}")
        return done.stdout

    def _mend(self, told: str, unit: str) -> str:
        if "connect to" in told and self.user:  # "Failed to connect to bus", in the words of several versions
            me = pwd.getpwuid(os.geteuid()).pw_name
            return f"the user's manager does not run: `loginctl enable-linger {me}`, then again"
        if "uthentication required" in told or "ccess denied" in told or "ermission denied" in told:
            return "run it as root"
        return f"see `journalctl {'--user ' if self.user else ''}-u {unit}`"
