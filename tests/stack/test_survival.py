"""What a stack lives through: load, deaths, a reboot, others on the same machine, and files that are not as written."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from tests.skips import cannot_here
from tests.stack.faults import faulty
from tests.stack.harness import Project, post, until

SAME = {"Volume": "same", "Machine": "same", "Engine": "same", "Front": "same"}


def expect_no_changes(p: Project) -> int:
    words = ("preview", "--refresh", "--expect-no-changes", "--stack", p.name)
    return p.pulumi(*words, check=False).code


# --- busy and dead ---


def test_busy_is_not_dead(served: Project) -> None:
    """More slow streams than the engine has slots, while the stack is refreshed: nothing is restarted or cut."""
    out, pid, ends = served.outputs(), served.engine_pid(), list[str]()

    def stream() -> None:
        body = {"model": out["model"], "messages": [{"role": "user", "content": "Tell me a long story."}],
                "max_tokens": 400, "stream": True, "ignore_eos": True}  # fmt: skip
        headers = {"Authorization": f"Bearer {out['api_key']}"}
        with requests.post(f"{out['url']}/v1/chat/completions", json=body, headers=headers, stream=True,
                           timeout=240) as answer:  # fmt: skip
            ends.append(list(filter(None, answer.iter_lines()))[-1].decode())

    streams = [threading.Thread(target=stream) for _ in range(6)]
    for thread in streams:
        thread.start()
    until("requests wait", lambda: "2 waiting" in str(served.status()["why"]), 60)
    said = served.up("--refresh")
    assert any(thread.is_alive() for thread in streams), "the streams ended before the refresh: nothing was shown"
    assert "12 unchanged" in said.out
    assert "busy: " in said.text
    for thread in streams:
        thread.join()
    assert ends == ["data: [DONE]"] * 6
    assert served.engine_pid() == pid
    assert served.status()["restarts"] == 0


def test_a_killed_engine_is_back_by_itself_and_the_stack_quiet(served: Project) -> None:
    pid = served.engine_pid()
    os.kill(pid, signal.SIGKILL)
    until("it is back", lambda: served.status()["health"] == "healthy" and served.engine_pid() != pid, 60)
    assert post(served.outputs()).status_code == 200
    assert expect_no_changes(served) == 0
    there = served.status()
    assert there["restarts"] == 1
    assert "exited with -9" in there["events"][-1]["text"]


def test_an_engine_that_is_gone_with_its_supervisor_is_shown_and_repaired(served: Project) -> None:
    served.kill("/releases/")
    seen = served.pulumi("preview", "--refresh", "--stack", served.name)
    assert "nothing serves" in seen.text
    assert expect_no_changes(served) == 7
    served.up("--refresh")
    assert post(served.outputs()).status_code == 200
    assert expect_no_changes(served) == 0


def test_after_a_reboot_a_preview_says_what_is_down_and_up_brings_it_back(served: Project) -> None:
    run = Path(json.loads((served.home / "machine.json").read_text())["run"])
    served.kill("")
    shutil.rmtree(run)
    seen = served.pulumi("preview", "--refresh", "--stack", served.name)
    assert "nothing serves" in seen.text
    assert "the front does not answer" in seen.text
    assert expect_no_changes(served) == 7
    served.up("--refresh")
    assert post(served.outputs()).status_code == 200
    assert "12 unchanged" in served.up("--refresh").out


# --- what stands in the way ---


@contextmanager
def stranger() -> Iterator[int]:
    """Somebody else's listener on loopback; its port."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        yield s.getsockname()[1]


def test_a_port_that_a_stranger_holds_is_named_and_the_front_goes_on(served: Project) -> None:
    before, good = served.outputs(), dict(served.config)
    with stranger() as port:
        served.set(endpoint={"port": port, "keyRotation": "another"})
        for _ in range(2):
            failed = served.up(check=False)
            assert failed.code != 0
            assert f"port {port} cannot be had" in failed.text
            assert served.outputs()["url"] == before["url"]
            assert post(before).status_code == 200
    served.use_config(good)
    assert served.up().code == 0
    assert "12 unchanged" in served.up("--refresh").out


def test_a_first_up_with_a_taken_port_goes_on_once_it_is_free(project: Callable[..., Project]) -> None:
    with stranger() as port:
        p = project(endpoint={"port": port})
        failed = p.up(check=False)
        assert failed.code != 0
        assert f"port {port} cannot be had" in failed.text
        assert p.resource("Front")["initErrors"]
        pid = p.engine_pid()
    p.up()
    assert p.outputs()["url"] == f"http://127.0.0.1:{port}"
    assert post(p.outputs()).status_code == 200
    assert p.engine_pid() == pid


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """A disk of so many MB; asked again, it grows."""
    disk = tmp_path / "disk"
    disk.mkdir()

    def size(megabytes: int) -> Path:
        words = [] if not os.path.ismount(disk) else ["remount,"]
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"{''.join(words)}size={megabytes}m", "none", disk],
                              capture_output=True, check=False)  # fmt: skip
        if made.returncode:
            cannot_here("a disk of its own (mount needs root)")
        return disk

    yield size
    subprocess.run(["umount", "--lazy", disk], check=False, capture_output=True)


def test_a_full_disk_costs_no_outage_and_a_first_up_goes_on_with_a_larger_one(
    project: Callable[..., Project], small_disk: Callable[[int], Path]
) -> None:
    p = project(root=small_disk(60) / "root")
    failed = p.up(check=False)
    assert failed.code != 0
    assert "no space left" in failed.text.lower()
    assert p.resource("Engine")["initErrors"]
    small_disk(330)
    p.up()
    before, good, pid = p.outputs(), dict(p.config), p.engine_pid()
    p.use("smollm2-135m/f16")
    for _ in range(2):  # a full disk speaks against no lock: it is tried again each time
        failed = p.up(check=False)
        assert failed.code != 0
        assert "no space left" in failed.text.lower()
        assert "nothing was stopped" not in failed.text
        assert p.engine_pid() == pid
        assert post(before).status_code == 200
    p.use_config(good)
    assert p.ops() == SAME
    p.destroy()
    assert not p.home.exists()


# --- reverts ---


def test_a_revert_that_fails_too_says_that_nothing_serves_and_the_next_up_heals(
    project: Callable[..., Project], tmp_path: Path
) -> None:
    p, mark = project(endpoint={"gateDeadlineS": 10}), tmp_path / "mark"
    p.use(faulty(p, "dies at its second start", mark=mark))
    p.up()
    good = dict(p.config)
    p.use(faulty(p, "answers 500"))
    failed = p.up(check=False)
    assert failed.code != 0
    assert "nothing serves now" in failed.text
    engine = p.resource("Engine")
    assert engine["initErrors"]
    assert engine["outputs"].get("serving") is None
    assert p.engines() == []
    mark.unlink()
    p.use_config(good)
    assert p.ops()["Engine"] == "update"
    p.up()
    assert p.status()["health"] == "healthy"
    assert not p.resource("Engine").get("initErrors")
    p.destroy()
    until("every process has ended", lambda: not p.processes(), 20)


def test_a_good_lock_after_a_failed_one_works_at_once(served: Project) -> None:
    served.use(faulty(served, "dies at start"))
    assert served.up(check=False).code != 0
    good = served.use("smollm2-135m/f16")
    served.up()
    assert served.outputs()["lock"] == good
    assert post(served.outputs()).status_code == 200


def test_a_log_that_holds_a_token_is_shown_without_it(served: Project) -> None:
    good = dict(served.config)
    served.set(endpoint={"gateDeadlineS": 5})
    served.use(faulty(served, "prints secrets and hangs on completions"))
    failed = served.up(check=False)
    assert failed.code != 0
    assert "HF_TOKEN is [secret], key [secret]" in failed.text
    assert "hf_abc" not in failed.text + served.state()
    served.use_config(good)
    assert "12 unchanged" in served.up().out


# --- others ---


def test_of_two_ups_of_one_stack_the_second_is_refused_and_the_first_goes_on(served: Project) -> None:
    new = served.use(served.vary("smollm2-135m/q4", "slow", {"args": ["--threads", "1", "--batch-size", "300"]}))
    first = served.start_up()
    until("the first is at it", lambda: list((Path(served.folder) / "state").rglob("locks/**/*.json")), 60)
    second = served.up(check=False)
    assert second.code != 0
    assert "locked" in second.text
    said, _ = first.communicate(timeout=120)
    assert first.returncode == 0, said
    assert served.outputs()["lock"] == new


def test_a_stack_whose_change_fails_does_not_touch_its_neighbour(
    served: Project, project: Callable[..., Project]
) -> None:
    other, mine = project(endpoint={"gateDeadlineS": 5}), served.engine_pid()
    other.use(faulty(other, "hangs on completions"))
    assert other.up(check=False).code != 0
    assert served.engine_pid() == mine
    assert post(served.outputs()).status_code == 200
    other.destroy()
    assert served.engine_pid() == mine


@pytest.mark.parametrize("kind", ["Volume", "Machine", "Engine", "Front"])
def test_a_resource_that_is_replaced_by_hand_serves_and_leaves_nothing_behind(kind: str, served: Project) -> None:
    old = served.resource(kind)
    served.up("--replace", old["urn"])
    new = served.resource(kind)
    assert (new["id"] != old["id"]) == (kind != "Volume")  # a claim's id is its name
    assert served.settled()["health"] == "healthy"
    assert len(served.engines()) == 1
    assert post(served.outputs()).status_code == 200
    assert "12 unchanged" in served.up("--refresh").out


@pytest.mark.parametrize("state", ["failed first", "dead", "rebooted", "half swapped"])
def test_destroy_leaves_nothing_in_whatever_state_the_stack_is(state: str, project: Callable[..., Project]) -> None:
    p = project(endpoint={"gateDeadlineS": 10})
    if state == "failed first":
        p.use(faulty(p, "dies at start"))
    p.up(check=state != "failed first")
    if state == "dead":
        p.kill("/releases/")
    if state == "rebooted":
        p.kill("")
    if state == "half swapped":
        p.use(faulty(p, "never ready"))
        up = p.start_up()
        until("the new one is waited for", lambda: p.jobs()[-1].name.endswith("activate") and p.engines(), 60)
        up.kill()
        up.wait()
        p.pulumi("cancel", "--yes", "--stack", p.name)
    p.destroy()
    until("every process has ended", lambda: not p.processes(), 30)
    assert not p.home.exists()


# --- host steps ---


def test_a_host_step_that_prints_a_secret_shows_nothing(project: Callable[..., Project], tmp_path: Path) -> None:
    p = project()
    step = f"echo the-secret-of-a-step | tee {tmp_path}/ran; echo the-secret-of-a-step >&2"
    p.pulumi("config", "set", "--secret", "--path", "sluicegate:hostSetup[0]", step, "--stack", p.name)
    done = p.up()
    shown = p.pulumi("preview", "--diff", "--json", "--stack", p.name).text
    assert (tmp_path / "ran").read_text() == "the-secret-of-a-step\n"
    for place, text in (("up", done.text), ("preview", shown), ("state", p.state())):
        assert "the-secret-of-a-step" not in text, place
    failing = "echo the-secret-of-a-step; exit 3"
    p.pulumi("config", "set", "--secret", "--path", "sluicegate:hostSetup[0]", failing, "--stack", p.name)
    failed = p.up(check=False)
    assert failed.code != 0
    assert "the-secret-of-a-step" not in failed.text + p.state()


# --- files that are not as they were written ---


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _half_a_job(p: Project) -> None:
    for job in p.jobs():
        for note in job.iterdir():
            _cut(note)


def _half_a_release(p: Project) -> None:
    _cut(p.home / "current" / "complete")


def _current_to_nowhere(p: Project) -> None:
    (p.home / "current").unlink()
    (p.home / "current").symlink_to("releases/0123456789ab")


def _cut_notes(p: Project) -> None:
    for note in ("engine-owner.json", "wanted.json", "starts.json"):
        _cut(p.home / note)


def _lock_of_the_dead(p: Project) -> None:
    (p.home / "lock").write_text('{"owner": "job of a dead machine", "process": {"pid": 1, "start": 1, "boot": "x"}}')


def _no_link(p: Project) -> None:
    (Path(json.loads((p.home / "machine.json").read_text())["run"]) / "current.sock").unlink()


DAMAGE = {
    "jobs cut in half": _half_a_job, "a release cut in half": _half_a_release, "current leads nowhere":
    _current_to_nowhere, "notes cut in half": _cut_notes, "a lock of the dead": _lock_of_the_dead,
    "no link to the engine": _no_link,
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_found_and_mended_and_nothing_is_lost(name: str, served: Project) -> None:
    out = served.outputs()
    DAMAGE[name](served)
    served.up("--refresh")
    assert served.settled()["health"] == "healthy"
    assert len(served.engines()) == 1
    after = served.outputs()
    assert (after["lock"], after["url"], after["api_key"]) == (out["lock"], out["url"], out["api_key"])
    assert post(after).status_code == 200
    assert "12 unchanged" in served.up("--refresh").out


def test_a_claim_that_cannot_be_read_is_refused_with_its_name_and_touches_nothing(served: Project) -> None:
    note, pid = served.home / "machine.json", served.engine_pid()
    kept = note.read_text()
    try:
        note.write_text(kept[:40])
        failed = served.up("--refresh", check=False)
        assert failed.code != 0
        assert str(note) in failed.text
        assert served.engine_pid() == pid
    finally:
        note.write_text(kept)
    assert "12 unchanged" in served.up("--refresh").out


def test_a_folder_without_permission_is_named_and_nothing_is_lost(served: Project) -> None:
    if os.geteuid() == 0:
        # Root may write everywhere: what it cannot is a file where a folder has to be.
        jobs, kept = served.home / "jobs", served.home / "jobs.kept"
        jobs.rename(kept)
        jobs.write_text("")
    else:
        jobs, kept = served.home / "jobs", None
        jobs.chmod(0o500)
    good = dict(served.config)
    try:
        served.use(served.vary("smollm2-135m/q4", "denied", {"args": ["--threads", "1", "--batch-size", "301"]}))
        failed = served.up(check=False)
        assert failed.code != 0
        assert "jobs" in failed.text
        assert "fault in sluicegate" not in failed.text
    finally:
        if kept:
            jobs.unlink()
            kept.rename(jobs)
        else:
            jobs.chmod(0o700)
        served.use_config(good)
    assert post(served.outputs()).status_code == 200
    assert "12 unchanged" in served.up("--refresh").out
