"""Supervisors that are units: back after a kill and a reboot without anybody's help, gone with their files at the end.

What is started is real; systemd is a stand-in (fake_systemctl.py), but for the look of `systemd-analyze` at the text.
A reboot is: everything killed, the run folder gone, every note of the boot another one's, each enabled unit started.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.provider.host.engine_http import Target
from sluicegate.provider.host.places import Places, run_folder
from sluicegate.provider.host.processes import Proc
from sluicegate.provider.host.service import Service
from sluicegate.provider.host.unit_text import text_of
from sluicegate.provider.host.units import UnitFailed, Units, usable
from tests.provider.host.fake_systemctl import read_unit, words_of
from tests.provider.host.kit import DEADLINE_S, KEY, Stack, kill, pids_with, until
from tests.provider.host.test_service import STUB, ThisWay, answers, child, start, units_in
from tests.skips import cannot_here

NASTY = 'a b%n$HOME${x}"q"\'\\;é'


@pytest.fixture
def units(tmp_path: Path) -> Units:
    return units_in(tmp_path / "units")


@pytest.fixture
def service(tmp_path: Path, units: Units) -> Iterator[ThisWay]:
    service = ThisWay(tmp_path / "engine", units)
    yield service
    service.stop(0)
    until(lambda: not pids_with(str(tmp_path)), "all processes gone", 10)


def files(units: Units) -> list[str]:
    return [path.name for path in units.folder.rglob("sluicegate-*.service")]


def other(was: Proc | None, now: Callable[[], Proc | None]) -> Proc:
    """The process that has come in the place of another."""
    proc: Proc = until(lambda: (there := now()) and there != was and there, "another process")
    return proc


def _is_gone(service: Service) -> bool:
    return not service.supervisor() and not service.child()


def reboot(units: Units, *services: Service) -> None:
    keepers = [json.loads(path.read_text())["keeper"] for path in units.folder.glob("*.state")]
    gone = [Proc.of(pid) for pid in keepers]
    kill(*filter(None, gone), *filter(None, (s.supervisor() for s in services)))
    for service in services:
        until(partial(_is_gone, service), "all gone")
        for name in ("service.json", "supervisor.json", "state.json"):
            note = json.loads((service.folder / name).read_text())
            for holder in (note, note.get("child") or {}):
                holder |= {"boot": "00000000"} if "boot" in holder else {}
            (service.folder / name).write_text(json.dumps(note))
    for state in units.folder.glob("*.state"):
        state.unlink()
    subprocess.run([*units.systemctl, "boot"], check=True, timeout=DEADLINE_S)


def test_a_supervisor_that_is_killed_and_its_engine_are_back_without_anybodys_help(
    service: ThisWay, units: Units
) -> None:
    socket = start(service, "--child")
    until(lambda: len(pids_with(str(socket))) == 2, "the child's child")
    first, supervisor = child(service), service.supervisor()
    service.keep()
    kill(supervisor)
    again = other(first, service.child)
    new = service.supervisor()
    assert new
    assert new != supervisor
    assert units.main_pid(service.folder) == new.pid
    assert not first.alive()
    assert [event["text"] for event in service.events()] == ["its supervisor was killed; restart 1"]
    assert service.state["restarts"] == 1
    until(lambda: answers(Target(socket=socket)), "an answer")
    service.stop()
    assert not again.alive()
    assert files(units) == []


def test_an_engine_that_was_never_gated_goes_with_its_killed_supervisor_and_stays_gone(
    service: ThisWay, units: Units
) -> None:
    start(service)
    first = child(service)
    kill(service.supervisor())
    until(lambda: units.main_pid(service.folder) is None, "the end of the supervisor that came after it")
    assert not first.alive()
    assert service.lost()
    assert service.exited()


def test_what_is_stopped_while_systemd_is_about_to_restart_it_stays_stopped(service: ThisWay, units: Units) -> None:
    start(service)
    child(service)
    service.keep()
    kill(service.supervisor())
    service.stop()
    assert service.child() is service.supervisor() is None
    assert not pids_with(str(service.folder))
    assert files(units) == []


def test_a_service_whose_unit_waits_to_be_restarted_can_be_started_anew(service: ThisWay) -> None:
    start(service)
    child(service)
    service.keep()
    kill(service.supervisor())
    until(lambda: not service.child(), "the child's end")
    start(service, "--tokens", 9)
    assert len(pids_with(str(service.folder.parent / "s"))) == 1
    assert not (service.folder / "gated").exists()


def test_stopping_works_where_systemd_no_longer_answers(service: ThisWay, units: Units) -> None:
    until(start(service).exists, "the socket")
    service.keep()
    for verb in ("stop", "disable", "daemon-reload"):
        (units.folder / f"refuse-{verb}").write_text("Failed to connect to bus: Host is down")
    service.stop()
    assert service.child() is service.supervisor() is None
    assert files(units) == []


def test_after_a_reboot_a_gated_service_is_back_with_its_socket_folder(service: ThisWay, units: Units) -> None:
    run = service.folder.parent / "private/run"
    run.mkdir(parents=True, mode=0o700)
    argv = [sys.executable, "-P", str(STUB), "--socket", str(run / "s")]
    service.start(argv, {"PATH": os.environ["PATH"]}, 20, [run / "s"])
    until((run / "s").is_socket, "the socket")
    service.keep()
    shutil.rmtree(run.parent)
    reboot(units, service)
    until((run / "s").is_socket, "the socket")
    assert run.stat().st_mode & 0o777 == 0o700
    assert [event["text"] for event in service.events()] == ["the machine was started anew; restart 1"]


def test_after_a_reboot_what_was_never_gated_does_not_run(service: ThisWay, units: Units) -> None:
    start(service)
    child(service)
    reboot(units, service)
    until(lambda: units.main_pid(service.folder) is None, "the end of what the boot started")
    assert service.child() is service.supervisor() is None


def test_a_start_cut_short_by_a_reboot_is_not_gone_on_with(service: ThisWay, units: Units) -> None:
    """Nothing of it is noted but the order: by that alone it would look like the first start."""
    start(service)
    child(service)
    reboot(units, service)
    until(lambda: units.main_pid(service.folder) is None, "the end of what the boot started")
    (service.folder / "supervisor.json").unlink()
    (service.folder / "state.json").unlink()
    subprocess.run([*units.systemctl, "boot"], check=True, timeout=DEADLINE_S)
    until(lambda: units.main_pid(service.folder) is None, "the end of what the boot started")
    assert not (service.folder / "state.json").exists()


def test_a_stack_of_units_survives_kills_and_a_reboot_and_leaves_no_unit_behind(
    new_stack: Callable[[], Stack], units: Units
) -> None:
    stack = new_stack()
    stack.spec["places"]["units"] = units.dump()
    stack.places = Places.of(stack.spec)
    spec = stack.serve()
    front = stack.run("front", stack.front())
    assert front["result"] == "serving", front
    engine, door = Service(stack.places.release(spec["digest"]) / "engine"), Service(stack.places.front)
    assert len(files(units)) == 4  # two units, each with its link
    before = engine.child(), door.child()
    kill(engine.supervisor(), door.supervisor())
    after = other(before[0], engine.child), other(before[1], door.child)
    until(lambda: answers(Target(url=front["url"], key=KEY)), "an answer through the front")
    shutil.rmtree(stack.places.run)
    reboot(units, engine, door)
    other(after[0], engine.child)
    other(after[1], door.child)
    until(lambda: answers(Target(url=front["url"], key=KEY)), "an answer through the front")
    assert stack.status()["health"] == "healthy"
    # One whose folder somebody swept away is noted nowhere else.
    shutil.rmtree(door.folder)
    until(lambda: not pids_with(str(door.folder)), "the front's end")
    assert len(files(units)) == 4
    stack.end()
    assert files(units) == []


@pytest.mark.parametrize("verb", ["daemon-reload", "enable", "start"])
def test_a_systemd_that_refuses_is_a_clear_error_and_no_unit_is_left(service: ThisWay, units: Units, verb: str) -> None:
    (units.folder / f"refuse-{verb}").write_text("Unit is masked.\nmore\n")
    with pytest.raises(UnitFailed, match=rf"{verb}.* failed: Unit is masked.; see `journalctl -u "):
        start(service)
    assert files(units) == []
    assert service.supervisor() is None


def test_errors_end_with_their_mend(tmp_path: Path, units: Units) -> None:
    def said(units: Units, refusal: str = "") -> str:
        (units.folder / "refuse-daemon-reload").write_text(refusal)
        with pytest.raises(UnitFailed) as e:
            units.start(tmp_path / "engine", 5)
        assert files(units) == []
        return str(e.value)

    user = dataclasses.replace(units, systemctl=(*units.systemctl, "--user"), lingering=tmp_path)
    assert "run `loginctl enable-linger " in said(user)
    (tmp_path / said(user).rpartition(" ")[2].rstrip("`")).touch()
    assert "`loginctl enable-linger " in said(user, "Failed to connect to bus: No medium found")
    assert "run it as root" in said(units, "Failed to reload daemon: Interactive authentication required.")
    gone = dataclasses.replace(units, systemctl=(str(tmp_path / "nowhere"),))
    assert "cannot be run (No such file or directory); install systemd's systemctl" in said(gone)


def test_a_systemctl_that_hangs_is_not_waited_for_forever(
    tmp_path: Path, units: Units, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sluicegate.provider.host.units.CALL_S", 0.2)
    hanging = dataclasses.replace(units, systemctl=("sleep", "600", ";"))
    with pytest.raises(UnitFailed):
        hanging.start(tmp_path / "engine", 0)


def test_units_are_used_only_where_systemd_is_pid_1_and_can_be_told(tmp_path: Path) -> None:
    assert usable(tmp_path, "sh")
    assert not usable(tmp_path, "no-such-systemctl")
    assert not usable(tmp_path / "no", "sh")
    assert Units.asked(None, "p.s") is Units.asked(False, "p.s") is None
    assert (Units.asked(True, "p.s") is not None) == usable()


def test_sockets_of_root_lie_where_no_login_takes_them_along() -> None:
    if os.geteuid():
        cannot_here("a test run by root")
    assert run_folder(Path("/data"), "p.s", units=True).parent == Path("/run/sluicegate-0")


@given(st.lists(st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"]), min_size=1), min_size=1))
def test_every_word_of_the_command_arrives_as_it_was(words: list[str]) -> None:
    words = [word for word in words if word.isprintable()]
    text = text_of(Path("/data/engine"), ["/usr/bin/python", *words], {}, 5, "p.s", False)
    (line,) = [line for line in text.splitlines() if line.startswith("ExecStart=")]
    assert [word.replace("$$", "$") for word in words_of(line)] == ["/usr/bin/python", *words]


def test_what_no_unit_file_can_hold_is_refused() -> None:
    with pytest.raises(UnitFailed, match="set another machine"):
        text_of(Path("/data\nExecStart=/bin/false"), ["/usr/bin/python"], {}, 5, "p.s", False)


def test_the_unit_has_no_secret_of_its_starter(tmp_path: Path, units: Units, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "the secret")
    service = ThisWay(tmp_path / "engine", units)
    start(service)
    unit = units.path(service.folder)
    assert "the secret" not in unit.read_text()
    assert read_unit(unit)["Description"] == ["sluicegate: engine of stack p.s"]
    service.stop()


@pytest.mark.parametrize("user", [False, True])
def test_systemd_itself_finds_nothing_wrong_with_the_text(tmp_path: Path, user: bool) -> None:
    if not shutil.which("systemd-analyze"):
        cannot_here("systemd-analyze")
    unit, env = tmp_path / "sluicegate-0.service", {"HOME": NASTY, "LANG": "C.UTF-8"}
    unit.write_text(text_of(tmp_path / NASTY, [sys.executable, NASTY, ";"], env, 5, "p.s", user))
    words = ["systemd-analyze", *(["--user"] if user else []), "verify", str(unit)]
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=DEADLINE_S, check=False,
        env=os.environ | {"XDG_RUNTIME_DIR": str(tmp_path)},
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
