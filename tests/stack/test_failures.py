"""A change that does not come up: the old one serves again, the state stays true, and the text says why."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable

from sluicegate.provider.engine_text import short
from tests.stack.harness import Project, Trickle, post, until


def unhelpful(p: Project) -> str:
    """A recipe whose engine comes up healthy, and whose drafter helps less than the recipe asks for."""
    return p.vary("smollm2-135m/q4-ngram", "unhelpful", {"gate.acceptance_floor": 0.99})


def test_a_gate_that_fails_gives_the_old_release_back_and_state_stays_true(served: Project) -> None:
    before, good = served.outputs(), dict(served.config)
    bad = served.use(unhelpful(served))
    with Trickle(before) as trickle:
        failed = served.up(check=False)
    assert failed.code != 0
    assert trickle.failed == []
    assert "the drafter is not helping: 75 of 95" in failed.text or "the drafter is not helping" in failed.text
    assert "serves now" in failed.text
    assert "next: put the old pins back (0 operations)" in failed.text
    assert post(before).status_code == 200
    engine = served.resource("Engine")
    assert engine["outputs"]["lock"] == before["lock"] != bad
    assert engine["inputs"]["pins"] == before["pins"]
    assert served.preview()["Engine"]["op"] == "update"

    # The second try knows: nothing is stopped to find out again.
    pid = served.engine_pid()
    again = served.up(check=False)
    assert again.code != 0
    assert "nothing was stopped" in again.text
    assert "endpoint.retry 1" in again.text
    assert served.engine_pid() == pid

    # Raised, it is tried once more.
    served.set(endpoint={"retry": 1})
    assert served.up(check=False).code != 0
    assert served.engine_pid() != pid

    served.config = good
    served.write()
    assert set(served.ops().values()) == {"same"}
    assert "12 unchanged" in served.up().out


def test_a_command_line_the_engine_refuses_costs_no_outage(served: Project) -> None:
    good, pid = dict(served.config), served.engine_pid()
    served.use(served.vary("smollm2-135m/q4", "mistyped", {"args": ["--thread-count", "1"]}))
    failed = served.up(check=False)
    assert failed.code != 0
    assert "unrecognized arguments: --thread-count" in failed.text
    assert served.engine_pid() == pid
    served.config = good
    served.write()
    assert set(served.ops().values()) == {"same"}


def test_a_first_up_that_fails_is_in_the_state_and_the_next_up_goes_on(project: Callable[..., Project]) -> None:
    p = project()
    good = dict(p.config)
    p.use(unhelpful(p))
    failed = p.up(check=False)
    assert failed.code != 0
    assert "nothing serves now" in failed.text
    engine = p.resource("Engine")
    assert engine["initErrors"]
    assert engine["outputs"].get("serving") is None
    assert not list(p.home.glob("releases/*/engine/gated"))
    p.config = good
    p.write()
    p.up()
    assert post(p.outputs()).status_code == 200
    assert p.resource("Engine")["id"] == engine["id"]


def test_a_dead_engine_is_seen_by_refresh_and_healed_by_up(served: Project) -> None:
    supervisor = json.loads((served.home / "current" / "engine" / "supervisor.json").read_text())
    child = served.engine_pid()
    os.kill(supervisor["pid"], signal.SIGKILL)
    until("the engine has gone with its supervisor", lambda: not os.path.exists(f"/proc/{child}"), 20)
    seen = served.pulumi("preview", "--refresh", "--stack", served.name)
    assert "nothing serves" in seen.text
    assert served.pulumi("preview", "--refresh", "--expect-no-changes", "--stack", served.name, check=False).code != 0
    served.up("--refresh")
    assert post(served.outputs()).status_code == 200
    assert "12 unchanged" in served.up("--refresh").out


def test_a_host_job_that_is_killed_in_a_swap_is_told_as_an_outage_and_up_mends_it(served: Project) -> None:
    good, before = dict(served.config), served.outputs()
    digest = served.use("smollm2-135m/f16")
    running = served.start_up()
    until("the old engine is being replaced", lambda: f"starting {short(digest)}" in _events(served))
    job = sorted((served.home / "jobs").glob("*-activate"))[-1]
    os.kill(json.loads((job / "job.json").read_text())["process"]["pid"], signal.SIGKILL)
    out, _ = running.communicate(timeout=120)
    assert running.returncode != 0
    assert "nothing serves now" in out
    assert "fault in sluicegate" not in out
    served.config = good
    served.write()
    assert served.ops()["Engine"] == "update"  # the old pins are not enough to be told that all is well
    served.up()
    assert served.outputs()["lock"] == before["lock"]
    assert post(served.outputs()).status_code == 200


def test_one_interrupt_during_a_swap_puts_the_old_release_back(served: Project) -> None:
    before, good = served.outputs(), dict(served.config)
    digest = served.use("smollm2-135m/f16")
    running = served.start_up()
    until("the old engine is being replaced", lambda: f"starting {short(digest)}" in _events(served))
    running.send_signal(signal.SIGINT)
    out, _ = running.communicate(timeout=120)
    assert running.returncode != 0, out
    assert "asked to give up" in out
    assert post(before).status_code == 200
    assert served.resource("Engine")["outputs"]["lock"] == before["lock"]
    served.config = good
    served.write()
    assert set(served.ops().values()) == {"same"}


def _events(p: Project) -> str:
    jobs = sorted((p.home / "jobs").glob("*-activate/events.jsonl"))
    return jobs[-1].read_text() if jobs else ""
