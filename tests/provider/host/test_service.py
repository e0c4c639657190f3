"""One long-lived process and its supervisor: real processes, restarted, rotated and ended.

Each behaviour is had of a supervisor that is a detached process, and of one that is a unit of a stand-in for systemd:
see fake_systemctl.py for what that cannot prove.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sluicegate.provider.host.completion import complete
from sluicegate.provider.host.engine_http import Target, Unanswered
from sluicegate.provider.host.processes import Proc
from sluicegate.provider.host.service import KEPT_EVENTS, Service, note_event
from sluicegate.provider.host.supervise import LOG_BYTES
from sluicegate.provider.host.units import Units
from tests.provider.host.kit import DEADLINE_S, FACTS, METRICS, STUB, kill, pids_with, until

SYSTEMCTL = Path(__file__).with_name("fake_systemctl.py")


def units_in(folder: Path) -> Units:
    """Units of the stand-in, which keeps them in this folder."""
    folder.mkdir()
    return Units("p.s", folder, (sys.executable, str(SYSTEMCTL), str(folder)))


@dataclass(frozen=True)
class ThisWay(Service):
    """A service whose supervisor is a unit where there are units, else detached."""

    units: Units | None = None

    def start(self, *given: Any, **more: Any) -> None:
        super().start(*given, **more, units=self.units)


@pytest.fixture(params=["detached", "unit"])
def service(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Service]:
    service = ThisWay(tmp_path / "engine", units_in(tmp_path / "units") if request.param == "unit" else None)
    yield service
    service.stop(0)
    until(lambda: not pids_with(str(tmp_path)), "all processes gone", 10)


def start(service: Service, *flags: Any, stop_s: float = 20) -> Path:
    """The stub with flags; its socket."""
    socket = service.folder.parent / "s"
    argv = [sys.executable, "-P", str(STUB), "--socket", str(socket), *map(str, flags)]
    service.start(argv, {"PATH": os.environ["PATH"]}, stop_s, [socket])
    return socket


@pytest.fixture
def detached(tmp_path: Path) -> Iterator[Service]:
    service = Service(tmp_path / "engine")
    yield service
    service.stop(0)
    until(lambda: not pids_with(str(tmp_path)), "all processes gone", 10)


def child(service: Service) -> Proc:
    proc: Proc = until(service.child, "a child")
    return proc


def test_what_exits_before_it_is_kept_is_not_restarted_and_its_code_is_noted(service: Service) -> None:
    start(service, "--exit-at-start", 3, "--say", "last words")
    until(lambda: not service.supervisor(), "the supervisor's end")
    assert service.exited()
    assert service.exit_code() == 3
    assert service.state["restarts"] == 0
    assert service.log.read_text() == "last words\n"


def test_what_exits_once_it_is_kept_is_restarted_each_time_after_a_longer_pause(
    service: Service, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    start(service, "--exit-when", go)
    first = child(service)
    service.keep()
    go.touch()
    until(lambda: service.state.get("restarts", 0) >= 2, "two restarts")
    go.unlink()
    again = until(service.child, "a child that stays")
    assert again != first
    assert not service.exited()
    log = service.log.read_text()
    assert "exited with 7; restart 1" in log
    assert "exited with 7; restart 2" in log


def test_keeping_what_has_exited_already_is_refused(service: Service) -> None:
    start(service, "--exit-at-start", 4)
    until(service.exited, "the exit")
    with pytest.raises(RuntimeError, match="exited with code 4"):
        service.keep()


def test_a_program_that_is_not_there_is_an_exit_with_its_reason_in_the_log(service: Service) -> None:
    service.start(["/nowhere/engine"], {}, 1, [])
    until(service.exited, "the exit")
    assert service.exit_code() == 127
    assert "cannot start /nowhere/engine: No such file" in service.log.read_text()


def test_a_supervisor_that_cannot_start_says_so(service: Service) -> None:
    with pytest.raises(RuntimeError, match="does not start"):
        service.start([], {}, 1, [])


def test_state_and_files_tell_who_runs(service: Service) -> None:
    socket = start(service)
    until(socket.exists, "the socket")
    proc = child(service)
    assert Path(f"/proc/{proc.pid}/cmdline").read_bytes().split(b"\0")[2] == str(STUB).encode()
    supervisor = service.supervisor()
    assert supervisor
    assert f"PPid:\t{supervisor.pid}\n" in Path(f"/proc/{proc.pid}/status").read_text()
    service.stop()
    assert service.child() is service.supervisor() is None
    assert service.exit_code() == -signal.SIGTERM
    assert not socket.exists()


def test_starting_twice_is_refused_and_harms_nothing(service: Service) -> None:
    start(service)
    proc = child(service)
    with pytest.raises(RuntimeError, match="runs already"):
        start(service)
    assert service.child() == proc


def test_a_socket_that_was_left_behind_is_removed_before_the_start(service: Service, tmp_path: Path) -> None:
    (tmp_path / "s").write_text("in the way")
    assert until(start(service).is_socket, "a new socket")


def test_stopping_ends_children_of_the_child_that_ignore_it(service: Service) -> None:
    socket = start(service, "--child")
    until(lambda: len(pids_with(str(socket))) == 2, "the child's child")
    service.stop()
    assert not pids_with(str(socket))


def test_the_next_start_and_not_the_child_left_behind_gets_the_restart(service: Service, tmp_path: Path) -> None:
    go = tmp_path / "go"
    socket = start(service, "--child", "--exit-when", go)
    until(lambda: len(pids_with(str(socket))) == 2, "the child's child")
    left = [pid for pid in pids_with(str(socket)) if pid != child(service).pid]
    service.keep()
    go.touch()
    until(lambda: service.state.get("restarts", 0) >= 1, "a restart")
    assert left[0] not in pids_with(str(socket))


def test_a_child_that_ignores_term_is_killed_after_its_time(service: Service) -> None:
    until(start(service, "--ignore-term", stop_s=0.5).exists, "the socket")
    service.stop()
    assert service.exit_code() == -signal.SIGKILL


def test_patience_overrides_the_childs_own_time(service: Service) -> None:
    until(start(service, "--ignore-term", stop_s=600).exists, "the socket")
    service.stop(0.2)
    assert service.child() is service.supervisor() is None


def test_a_supervisor_that_is_told_to_end_ends_the_child_first(service: Service) -> None:
    until(start(service).exists, "the socket")
    proc, supervisor = child(service), service.supervisor()
    service.keep()
    assert supervisor
    supervisor.kill(signal.SIGTERM)
    assert supervisor.gone_within(30)
    assert not proc.alive()
    assert service.exit_code() == -signal.SIGTERM


def test_a_supervisor_that_is_killed_takes_the_child_along_and_the_state_is_true(detached: Service) -> None:
    socket = start(detached, "--child")
    until(lambda: len(pids_with(str(socket))) == 2, "the child's child")
    proc, supervisor = child(detached), detached.supervisor()
    detached.keep()
    assert supervisor
    supervisor.kill(signal.SIGKILL)
    assert proc.gone_within(30)
    assert detached.child() is detached.supervisor() is None
    assert detached.exited()
    # The child's own child knows nothing of that: whoever stops or starts the detached next ends it.
    assert pids_with(str(socket))
    start(detached)
    until(lambda: len(pids_with(str(socket))) == 1, "the child's child gone")


def test_a_supervisor_whose_folder_is_swept_away_ends_and_takes_the_child_along(service: Service) -> None:
    start(service)
    proc, owner = child(service), service.supervisor()
    assert owner
    shutil.rmtree(service.folder)
    until(lambda: not proc.alive() and not owner.alive(), "both gone")
    assert not service.folder.exists()


def test_stopping_while_a_restart_is_waited_for_ends_it(service: Service, tmp_path: Path) -> None:
    go = tmp_path / "go"
    start(service, "--exit-when", go)
    service.keep()
    go.touch()
    until(lambda: service.supervisor() and not service.child(), "the pause")
    service.stop()
    assert service.child() is service.supervisor() is None
    assert service.exited()


def test_a_child_that_closes_its_output_is_still_stopped(service: Service) -> None:
    until(start(service, "--close-output").exists, "the socket")
    supervisor = service.supervisor()
    assert supervisor
    supervisor.kill(signal.SIGTERM)
    assert supervisor.gone_within(30)


def test_a_full_log_is_kept_once_more_and_a_new_one_begun(service: Service) -> None:
    until(start(service, "--spam", LOG_BYTES + (1 << 20)).exists, "the socket")
    old = service.log.with_name("log.1")
    until(old.exists, "the rotation")
    assert LOG_BYTES <= old.stat().st_size < LOG_BYTES + (1 << 17)
    until(lambda: old.stat().st_size + service.log.stat().st_size > LOG_BYTES + (1 << 20) - 5, "every line")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"child": 3}', '{"child": {"pid": "x"}}'])
def test_a_state_that_cannot_be_read_is_nobody_running(service: Service, text: str) -> None:
    service.folder.mkdir()
    for name in ("state.json", "supervisor.json"):
        (service.folder / name).write_text(text)
    assert service.child() is service.supervisor() is None
    assert service.exited()


def test_a_pid_that_was_given_to_somebody_else_is_not_touched(service: Service) -> None:
    until(start(service).exists, "the socket")
    proc = child(service)
    other = Proc(proc.pid, proc.start - 1, proc.boot)
    assert not other.alive()
    other.kill(signal.SIGKILL)
    other.kill_session()
    assert proc.alive()


def test_passphrases_and_cloud_keys_of_the_starter_do_not_live_on_in_the_supervisor(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PULUMI_CONFIG_PASSPHRASE", "AWS_SECRET_ACCESS_KEY", "PIP_INDEX_URL"):
        monkeypatch.setenv(name, "the secret")
    start(service)
    supervisor = service.supervisor()
    assert supervisor
    assert b"the secret" not in Path(f"/proc/{supervisor.pid}/environ").read_bytes()


def answers(target: Target) -> bool:
    """Whether it serves: a socket that is there may not be listened to yet."""
    try:
        return complete(target, "stub", "hi", 8, DEADLINE_S).done
    except Unanswered:
        return False


def probed(service: Service, *flags: Any, every_s: float = 0.2) -> Path:
    """The stub, kept, with a stall probe beside its supervisor; its socket."""
    socket = service.folder.parent / "s"
    argv = [sys.executable, "-P", str(STUB), "--socket", str(socket), *map(str, flags)]
    facts = {"socket": str(socket), "model": "stub", "metrics": METRICS, "prompts": FACTS["prompts"]}
    service.start(argv, {"PATH": os.environ["PATH"]}, 5, [socket], facts | {"stall": {"every_s": every_s, "misses": 3}})
    until(socket.is_socket, "the socket")
    service.keep()
    return socket


def test_an_engine_that_computes_nothing_is_started_again_and_the_event_kept(service: Service, tmp_path: Path) -> None:
    hang = tmp_path / "hang"
    socket = probed(service, "--hang-when", hang)
    first = child(service)
    hang.touch()
    with contextlib.suppress(Unanswered):
        complete(Target(socket=socket), "stub", "hi", 8, 0.1)
    again = until(lambda: (now := service.child()) and now != first and now, "another process")
    hang.unlink()
    (event,) = service.events()
    assert event["event"] == "restart"
    assert re.match(
        r"stalled: \d requests running, 0 waiting; 3 completions in a row failed, the last: ", event["text"]
    )
    assert service.state["restarts"] == 1
    until(lambda: answers(Target(socket=socket)), "an answer")
    assert service.child() == again


def test_an_engine_with_slow_streams_or_none_is_left_alone(service: Service, tmp_path: Path) -> None:
    """Looked at thirty times while tokens move slowly, and as often while nothing runs."""
    socket = probed(service, every_s=0.02)
    proc, go = child(service), tmp_path / "go"
    stream = threading.Thread(target=complete, args=(Target(socket=socket), "stub", f"until {go}", 8, DEADLINE_S))
    stream.start()
    time.sleep(0.6)
    go.touch()
    stream.join()
    time.sleep(0.6)
    assert service.child() == proc
    assert service.events() == []


def test_only_the_newest_events_are_kept(service: Service) -> None:
    for number in range(KEPT_EVENTS + 5):
        note_event(service.folder, "restart", str(number))
    assert [event["text"] for event in service.events()] == [str(n) for n in range(5, KEPT_EVENTS + 5)]


def test_a_process_that_went_with_its_supervisor_is_told_from_one_that_exited(service: Service) -> None:
    start(service)
    assert not service.lost()
    kill(service.supervisor())
    until(lambda: service.child() is None, "the child's end")
    assert service.lost()
    start(service, "--exit-at-start", 3)
    until(service.exited, "the exit")
    assert not service.lost()
