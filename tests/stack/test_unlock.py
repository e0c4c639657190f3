"""`pulumi up` killed in the middle: `status` tells it, `unlock` clears it, and the next `up` goes on from what runs."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.stack.harness import Project, post, until

PULUMIS_OWN = "pulumi-language-python"


@pytest.fixture
def killed() -> Iterator[list[int]]:
    """Pids of what killed runs left behind and nobody ends: Pulumi's language hosts."""
    pids: list[int] = []
    yield pids
    for pid in pids:
        if PULUMIS_OWN in command_of(pid):
            os.kill(pid, signal.SIGKILL)


def sluicegate(p: Project, *words: str) -> tuple[int, str]:
    done = subprocess.run(
        ["sluicegate", *words, "--stack", p.name], cwd=p.folder, env=p.env, text=True, capture_output=True, timeout=120,
        stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def children(pid: int) -> list[int]:
    """Each is listed with the thread that started it."""
    lists = (path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children"))
    return [int(child) for found in lists for child in found.split()]


def kill_in_the_swap(p: Project, left: list[int], provider: bool) -> str:
    """Start an `up`, SIGKILL its CLI (and the provider) while the engine is being started; what status says before."""
    before = set(p.home.glob("jobs/*-activate"))
    up = p.start_up()

    def starting() -> bool:
        new = set(p.home.glob("jobs/*-activate/events.jsonl"))
        return any('"load"' in path.read_text() for path in new if path.parent not in before)

    until("the engine is being started", starting)
    os.kill(up.pid, signal.SIGSTOP)  # so that it does not go on while it is looked at
    said = sluicegate(p, "status")[1]
    plugins = [pid for pid in children(up.pid) if "pulumi-resource-sluicegate" in command_of(pid)]
    left += [pid for pid in children(up.pid) if PULUMIS_OWN in command_of(pid)]
    assert plugins
    assert left
    os.kill(up.pid, signal.SIGKILL)
    for pid in plugins if provider else []:
        os.kill(pid, signal.SIGKILL)
    up.communicate()
    until("the provider has ended, as its run has", lambda: not any(command_of(pid) for pid in plugins))
    return said


def assert_one_engine(p: Project) -> None:
    """Nothing of the stack runs but one engine and one front, each under its one supervisor."""
    assert len(p.engines()) == 1
    assert len(p.processes()) == 4, p.processes()
    assert str(p.engine_pid()) in {str(pid) for pid in p.processes()}


@pytest.mark.parametrize("provider", [False, True], ids=["the CLI", "the CLI and the provider"])
def test_a_first_up_that_is_killed_is_told_unlocked_and_gone_on_with(
    project: Callable[..., Project], killed: list[int], provider: bool
) -> None:
    p = project()
    said = kill_in_the_swap(p, killed, provider)
    assert "which still runs" in said

    code, said = sluicegate(p, "status")
    assert code == 1
    assert ", which has ended" in said
    assert "pending  creating serve-0-engine" in said
    assert f"run `sluicegate unlock --stack {p.name}`" in said
    assert "locked by 1 lock(s)" in p.up(check=False).text
    code, said = sluicegate(p, "unlock")
    assert code == 1
    assert f"nobody is there to be asked: run `sluicegate unlock --yes --stack {p.name}`" in said
    assert "locked by 1 lock(s)" in p.up(check=False).text

    p.settled()
    pid = p.engine_pid()
    code, said = sluicegate(p, "unlock", "--yes")
    assert code == 0, said
    assert f"next: pulumi up --refresh --stack {p.name}" in said
    assert "keeps 44fff4b24fbe (smollm2-135m/q4), which serves: no restart" in said
    assert "opens the front" in said
    code, said = sluicegate(p, "unlock")
    assert code == 0
    assert "nothing to unlock" in said

    done = p.up()
    assert "pending" not in done.text
    assert p.engine_pid() == pid
    assert post(p.outputs()).status_code == 200
    code, said = sluicegate(p, "status")
    assert code == 0, said
    assert "pulumi-resource-" not in said
    assert_one_engine(p)


@pytest.mark.parametrize("provider", [False, True], ids=["the CLI", "the CLI and the provider"])
def test_an_update_that_is_killed_is_told_unlocked_and_gone_on_with(
    served: Project, killed: list[int], provider: bool
) -> None:
    good, before = dict(served.config), served.outputs()["lock"]
    try:
        digest = served.use("smollm2-135m/f16")
        kill_in_the_swap(served, killed, provider)
        code, said = sluicegate(served, "status")
        assert code == 1
        assert "pending  updating serve-0-engine" in said
        assert "locked by 1 lock(s)" in served.up(check=False).text
        code, said = sluicegate(served, "unlock", "--yes")
        assert code == 0, said
        done = served.up("--refresh")
        assert "pending" not in done.text
        assert served.outputs()["lock"] == digest != before
        assert post(served.outputs()).status_code == 200
    finally:
        served.config = good
        served.write()
        served.up("--refresh")
    assert served.outputs()["lock"] == before
    assert_one_engine(served)


def test_the_old_pins_put_back_after_a_killed_update_are_not_taken_for_all_is_well(
    served: Project, killed: list[int]
) -> None:
    good, before = dict(served.config), served.outputs()["lock"]
    served.use("smollm2-135m/f16")
    kill_in_the_swap(served, killed, provider=False)
    served.settled()
    served.config = good
    served.write()
    code, said = sluicegate(served, "unlock", "--yes")
    assert code == 0, said
    assert "moves from 66b6f1fcc24f to 44fff4b24fbe (smollm2-135m/q4): one engine restart" in said
    code, said = sluicegate(served, "status")
    assert code == 1
    assert "66b6f1fcc24f serves, the state says 44fff4b24fbe: run `pulumi up --refresh" in said
    served.up("--refresh")
    assert served.outputs()["lock"] == before
    assert sluicegate(served, "status")[0] == 0
    assert_one_engine(served)


def test_while_a_run_really_deploys_unlock_refuses_and_names_it(served: Project) -> None:
    good = dict(served.config)
    try:
        served.use("smollm2-135m/f16")
        before = set(served.home.glob("jobs/*-activate"))
        up = served.start_up()
        until("the swap runs", lambda: set(served.home.glob("jobs/*-activate")) != before)
        os.kill(up.pid, signal.SIGSTOP)  # so that it cannot end while it is looked at
        try:
            code, said = sluicegate(served, "unlock", "--yes")
        finally:
            os.kill(up.pid, signal.SIGCONT)
        out = up.communicate()[0]
        assert code == 1
        assert f"pid {up.pid}) is changing this stack: wait for it" in said
        assert "sluicegate unlock --force" in said
        assert up.returncode == 0, out
    finally:
        served.config = good
        served.write()
        served.up("--refresh")
    assert_one_engine(served)


def test_unlock_on_a_healthy_stack_does_nothing(served: Project) -> None:
    state, running = served.state(), set(served.processes())
    code, said = sluicegate(served, "unlock")
    assert code == 0, said
    assert said.endswith("nothing to unlock\n")
    assert served.state() == state
    assert set(served.processes()) == running
    assert "12 unchanged" in served.up().out
