"""What `sluicegate status` says of recorded answers of the host, beside the state and what Pulumi left behind."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any

import pytest

from sluicegate.cli import status
from sluicegate.cli.faults import faults_of
from sluicegate.cli.runs import Lock, Process
from sluicegate.cli.status import as_json, lines_of
from tests.cli.recorded import CLAIM, CUT, HEALTHY, LOCK, NOTHING, OTHER, pending, truth

UP = "run `pulumi up --refresh --stack dev`"
UNLOCK = "run `sluicegate unlock --stack dev`"
DEAD = Lock("root@vm, pid 7", "2026-11-30T16:00:00Z", alive=False)


def test_a_healthy_stack_is_told_in_these_lines_and_has_no_fault() -> None:
    assert list(lines_of(truth())) == [
        ("stack", "dev: m/q4, lock aaaaaaaaaaaa"),
        ("engine", "healthy, serving aaaaaaaaaaaa, 2 restarts"),
        ("front", "healthy, http://127.0.0.1:1"),
        ("start", "load 1.3 s"),
        ("gated", "2026-11-30T16:00:00Z"),
    ]
    assert list(faults_of(truth())) == []


def test_a_stack_whose_engine_was_never_made_is_told_without_none() -> None:
    text = " ".join(line for _, line in lines_of(truth(NOTHING, kinds={"Engine": None, "Front": None})))
    assert "None" not in text
    assert "no engine in the state" in text


SAID: list[tuple[dict[str, Any], str, str]] = [
    ({"jobs": ["j-activate"]}, "job", "j-activate runs now: swaps the engine"),
    ({"jobs": ["j-dance"]}, "job", "j-dance runs now: unknown to this version"),
    ({"health": "busy", "why": "4 requests"}, "engine", "busy (4 requests), serving aaaaaaaaaaaa, 2 restarts"),
    ({"events": [{"t": "T", "event": "restart", "text": "it\nstalled"}]}, "event", "T restart: it stalled"),
    (
        {"last_job": {"job": "j-activate", "result": "reverted", "cause": {"text": "no drafts"}}},
        "last job",
        "j-activate ended reverted: no drafts",
    ),
    (
        {"last_job": {"job": "j-front", "result": "down", "cause": None}},
        "last job",
        "j-front ended down: it says no cause",
    ),
    (
        {"machine": CLAIM | {"phase": "creating"}},
        "claim",
        "this stack's, creating since 2026-11-30T15:00:00Z",
    ),
    (
        {"machine": CLAIM | {"next": {"token": "u", "phase": "creating", "at": "T"}}},
        "claim",
        "this stack's, owned since 2026-11-30T15:00:00Z; one made at T waits to take it over",
    ),
]


@pytest.mark.parametrize(("change", "name", "text"), SAID)
def test_what_is_not_simply_as_it_should_be_has_a_line(change: dict[str, Any], name: str, text: str) -> None:
    assert (name, text) in list(lines_of(truth(HEALTHY | change)))


def test_what_a_killed_run_left_has_a_line_each() -> None:
    left = truth(
        CUT, [pending("creating", recipe="m/q4", pins={"lock": LOCK})], kinds={"Engine": None, "Front": None},
        locks=[DEAD], orphans=[Process(8, "pulumi-language-python"), Process(9, "pulumi-resource-sluicegate")],
    )  # fmt: skip
    assert list(lines_of(left)) == [
        ("stack", "dev: no engine in the state"),
        ("engine", "healthy, serving aaaaaaaaaaaa (m/q4), 2 restarts"),
        ("front", "not answering, no address yet"),
        ("lock", "Pulumi's, held since 2026-11-30T16:00:00Z by root@vm, pid 7, which has ended"),
        ("pending", "creating serve-0-engine"),
        ("orphan", "pulumi-language-python (pid 8) of a run in this project that has ended: `kill 8` ends it"),
        ("orphan", "pulumi-resource-sluicegate (pid 9) of a run in this project that has ended: it ends by itself"),
    ]


FAULTS: list[tuple[dict[str, Any], dict[str, Any], str, str]] = [
    ({"machine": None}, {}, "no claim of this stack any more", UP),
    ({"machine": CLAIM | {"token": "u"}}, {}, "the claim on the machine is another claim of this stack", UP),
    ({"machine": CLAIM | {"stack_id": "x"}}, {}, "the claim on the machine is another stack's of this name", UP),
    ({"result": "down", "serving": None, "why": "it exited"}, {}, "nothing serves: it exited", UP),
    ({"result": "down", "serving": None}, {}, "no release was ever gated", UP),
    ({"serving": OTHER}, {}, "bbbbbbbbbbbb serves, the state says aaaaaaaaaaaa", UP),
    ({"engine_owner": "x"}, {}, "started for another resource than the state's", UP),
    ({}, {"kinds": {"Engine": None}}, "aaaaaaaaaaaa serves, the state has no engine that does", UP),
    ({}, {"kinds": {"Machine": None}}, "is of a run that the state does not know, owned since", UP),
    ({}, {"kinds": {"Front": None}}, "the front on the machine is none that the state knows", UP),
    ({"front": None}, {}, "the front does not answer", UP),
    ({"front": {"healthy": False, "why": "it is not running"}}, {}, "does not answer (it is not running)", UP),
    ({}, {"operations": [pending("creating")]}, "cut while creating serve-0-engine", UNLOCK),
    ({}, {"operations": [pending("updating")]}, "cut while updating serve-0-engine", UP),
    ({}, {"locks": [DEAD]}, "no change can be made, the lock is Pulumi's, held since", UNLOCK),
    ({}, {"locks": [Lock("root@ci, pid 7")]}, "cannot be looked at from here: make sure there that it has", UNLOCK),
    ({"jobs": ["j-prepare"]}, {}, "j-prepare runs and no run of pulumi here follows it", UP),
]


@pytest.mark.parametrize(("there", "known", "said", "mend"), FAULTS)
def test_each_disagreement_is_one_fault_with_its_command(
    there: dict[str, Any], known: dict[str, Any], said: str, mend: str
) -> None:
    (fault,) = faults_of(truth(HEALTHY | there, **known))
    assert said in fault
    assert fault.endswith(mend)


def test_what_a_run_that_goes_on_holds_and_does_is_no_fault() -> None:
    running = Lock("root@vm, pid 7", alive=True)
    known: dict[str, Any] = {"locks": [running], "operations": [pending("updating")]}
    assert list(faults_of(truth(HEALTHY | {"jobs": ["j-activate"]}, **known))) == []
    (fault,) = faults_of(truth(HEALTHY | {"serving": OTHER}, **known))
    assert fault.endswith(": wait for pulumi (root@vm, pid 7), which is at it")


def test_a_machine_that_does_not_answer_is_cannot_tell_beside_what_the_state_says() -> None:
    silent = truth(None, unknown="no route\nto it")
    assert dict(lines_of(silent)) == {
        "stack": "dev: m/q4, lock aaaaaaaaaaaa",
        "engine": "cannot tell (no route to it); the state says aaaaaaaaaaaa serves",
        "front": "cannot tell; the state says http://127.0.0.1:1",
        "gated": "2026-11-30T16:00:00Z",
    }
    assert list(faults_of(silent)) == [f"cannot tell what serves: no route to it: {UP}"]


@pytest.mark.parametrize(
    ("known", "code"), [(truth(), 0), (truth(HEALTHY | {"serving": OTHER}), 1), (truth(None, unknown="no route"), 1)]
)
def test_the_exit_code_and_the_json_say_the_same_as_the_lines(
    known: Any, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(status, "look", lambda _name: known)
    assert status.run(Namespace(stack=None, json=False)) == code
    assert ("fault" in capsys.readouterr().out) is bool(code)
    assert status.run(Namespace(stack=None, json=True)) == code
    said = json.loads(capsys.readouterr().out)
    assert (said["stack"], said["host"], said["unknown"]) == ("dev", known.there, known.unknown)
    assert len(said["faults"]) == code


def test_the_json_has_what_pulumi_left_and_the_claim() -> None:
    left = truth(
        HEALTHY, [pending("creating")], locks=[DEAD], runs=[Process(1, "pulumi up")], orphans=[Process(2, "x")]
    )
    said = as_json(left, [])
    assert said["claim"] == {"phase": "owned", "at": CLAIM["at"], "mine": True}
    assert said["pulumi"] == {
        "locks": [{"by": "root@vm, pid 7", "since": "2026-11-30T16:00:00Z", "alive": False}],
        "pending": [{"type": "creating", "name": "serve-0-engine"}],
        "runs": [{"pid": 1, "command": "pulumi up"}],
        "orphans": [{"pid": 2, "command": "x"}],
    }
    assert as_json(truth(locks=None), [])["pulumi"]["locks"] is None
