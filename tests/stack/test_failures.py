"""A change that does not come up: the old one serves again, the state stays true, and the text says why."""

from __future__ import annotations

import json
import os
import signal

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
