"""Stands in for systemctl and for the systemd behind it: `python fake_systemctl.py FOLDER VERB …`, units in FOLDER.

It reads the unit files that lie there and does what they say with real processes: conditions, quoting, specifiers,
restart on failure, an end as KillMode=mixed has it, orphans taken along. `boot` does what a boot does.
It cannot prove that systemd reads a unit file as it does: a second reading by the same author finds no wrong idea of
the format. For that there is `systemd-analyze verify`, and a machine that systemd has booted.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
WANTED_BY = ("multi-user.target", "default.target")


def words_of(line: str) -> list[str]:
    """What systemd makes of a line of double-quoted words: quotes and escapes first, then specifiers."""
    found = re.findall(r'"((?:[^"\\]|\\.)*)"', line)
    return [re.sub(r"\\(.)", r"\1", word).replace("%%", "%") for word in found]


def read_unit(path: Path) -> dict[str, list[str]]:
    unit: dict[str, list[str]] = {}
    for line in path.read_text().splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            unit.setdefault(key, []).append(value)
    return unit


def descendants() -> list[int]:
    """Every process below this one: what systemd would find in the unit's control group."""
    parents = {}
    for entry in os.listdir("/proc"):
        try:
            parents[int(entry)] = int(Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[1])
        except (ValueError, OSError):
            continue
    found, above = list[int](), {os.getpid()}
    while above:
        above = {pid for pid, parent in parents.items() if parent in above}
        found += above
    return found


class Keeper:
    """What systemd is to one unit, as a process of its own; `<name>.state` says how it stands."""

    def __init__(self, folder: Path, name: str) -> None:
        self.unit, self.state = read_unit(folder / name), folder / f"{name}.state"
        self.stopping, self.main, self.restarts = False, 0, 0

    def note(self, active: str, sub: str) -> None:
        said = {"ActiveState": active, "SubState": sub, "MainPID": self.main, "NRestarts": self.restarts}
        part = self.state.with_suffix(".part")
        part.write_text(json.dumps(said | {"Result": "success", "keeper": os.getpid()}))
        part.replace(self.state)

    def run(self) -> None:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
        signal.signal(signal.SIGTERM, lambda *_: setattr(self, "stopping", True))
        while not self.stopping:
            (condition,) = self.unit["ConditionPathExists"]
            if not Path(condition.replace("%%", "%")).exists():
                break
            failed = self._once()
            if self.stopping or not failed or self.unit["Restart"] != ["on-failure"]:
                break
            self.restarts += 1
            self.note("activating", "auto-restart")
            time.sleep(float(self.unit["RestartSec"][0]))
        self.main = 0
        self.note("inactive", "dead")

    def _once(self) -> bool:
        """Run it to its end; whether that was a failure."""
        path, *rest = words_of(self.unit["ExecStart"][0])
        output = self.unit["StandardError"][0].removeprefix("append:").replace("%%", "%")
        env = dict(words_of(line)[0].split("=", 1) for line in self.unit["Environment"])
        with open(output, "ab") as log:
            argv = [path, *(word.replace("$$", "$") for word in rest)]
            process = subprocess.Popen(
                argv, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self.main = process.pid
        self.note("active", "running")
        told_at = 0.0
        while process.poll() is None:
            if self.stopping and not told_at:
                told_at = time.monotonic()
                process.terminate()
            if told_at and time.monotonic() - told_at > float(self.unit["TimeoutStopSec"][0]):
                process.kill()
            time.sleep(0.01)
        while left := descendants():
            for pid in left:
                os.kill(pid, signal.SIGKILL)
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                pass
            time.sleep(0.01)
        return process.returncode not in (0, -signal.SIGTERM)


def state_of(folder: Path, name: str) -> dict[str, object]:
    try:
        return dict(json.loads((folder / f"{name}.state").read_text()))
    except FileNotFoundError:
        return {"ActiveState": "inactive", "SubState": "dead", "MainPID": 0, "NRestarts": 0, "Result": "success"}


def running(state: dict[str, object]) -> bool:
    if state["ActiveState"] == "inactive":
        return False
    try:
        stat = Path(f"/proc/{state['keeper']}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def start(folder: Path, name: str) -> None:
    if running(state_of(folder, name)):
        return
    (folder / f"{name}.state").unlink(missing_ok=True)
    subprocess.Popen(
        [sys.executable, __file__, str(folder), "keep", name], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=(folder / "keeper.log").open("ab"), start_new_session=True,
    )  # fmt: skip
    while not (folder / f"{name}.state").exists():
        time.sleep(0.01)


def stop(folder: Path, name: str, wait: bool) -> None:
    state = state_of(folder, name)
    if running(state):
        os.kill(int(str(state["keeper"])), signal.SIGTERM)
    while wait and running(state_of(folder, name)):
        time.sleep(0.01)
    if wait:
        (folder / f"{name}.state").unlink(missing_ok=True)


def refuse(text: str) -> int:
    print(text, file=sys.stderr)
    return 1


def links(folder: Path, name: str) -> list[Path]:
    return [folder / f"{target}.wants" / name for target in WANTED_BY]


def main(folder: Path, verb: str, words: list[str]) -> int:
    with (folder / "calls.log").open("a") as calls:
        calls.write(shlex.join([verb, *words]) + "\n")
    refusal = folder / f"refuse-{verb}"
    if refusal.exists():
        return refuse(refusal.read_text())
    name = words[-1] if words else ""
    if verb in ("enable", "start", "reset-failed") and not (folder / name).exists():
        return refuse(f"Failed to {verb} unit: Unit file {name} does not exist.")
    if verb == "keep":
        Keeper(folder, name).run()
    elif verb == "enable":
        (target,) = read_unit(folder / name)["WantedBy"]
        link = folder / f"{target}.wants" / name
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(folder / name)
    elif verb == "start":
        start(folder, name)
    elif verb == "stop":
        stop(folder, name, "--no-block" not in words)
    elif verb == "disable":
        for link in links(folder, name):
            link.unlink(missing_ok=True)
        if "--now" in words:
            stop(folder, name, wait=True)
    elif verb == "show":
        print("\n".join(f"{key}={value}" for key, value in state_of(folder, name).items()))
    elif verb == "boot":
        for link in sorted(folder.glob("*.wants/*")):
            start(folder, link.name)
    elif verb not in ("daemon-reload", "reset-failed"):
        return refuse(f"Unknown command verb {verb}.")
    return 0


if __name__ == "__main__":
    given = [word for word in sys.argv[2:] if word not in ("--user", "--no-ask-password")]
    sys.exit(main(Path(sys.argv[1]), given[0], given[1:]))
