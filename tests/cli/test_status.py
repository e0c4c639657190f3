"""What `sluicegate status` says of recorded answers of the host, beside the state."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from sluicegate.cli import status
from sluicegate.cli.stack import CliError, Stack
from sluicegate.cli.status import faults_of, lines_of
from sluicegate.provider.hostclient import HostError
from sluicegate.provider.resource import UnreachableError

LOCK, OTHER = "sha256:" + "a" * 64, "sha256:" + "b" * 64
HEALTHY: dict[str, Any] = {
    "result": "serving", "serving": LOCK, "health": "healthy", "why": None, "restarts": 2, "jobs": [],
    "machine": {"token": "t"}, "engine_owner": "t", "front": {"healthy": True, "why": None, "token": "t", "port": 1},
}  # fmt: skip
ENGINE = {
    "recipe": "m/q4", "lock": LOCK, "phases": {"load": 1.26},
    "lastHealthy": {"lock": LOCK, "at": "2026-11-30T16:00:00Z"},
}  # fmt: skip


def stack(pending: Any = (), **kinds: Any) -> Stack:
    made = {"Machine": {"host": {"cloud": "local"}}, "Engine": ENGINE, "Front": {"url": "http://127.0.0.1:1"}} | kinds
    resources = [{"type": f"sluicegate:index:{k}", "outputs": v} for k, v in made.items() if v is not None]
    old = {"type": "sluicegate:index:Engine", "delete": True, "outputs": {"recipe": "old"}}
    return Stack(
        "dev", Path("/p"), {"deployment": {"resources": [old, *resources], "pending_operations": list(pending)}}
    )


def test_a_healthy_stack_is_told_in_these_lines_and_has_no_fault() -> None:
    assert dict(lines_of(stack(), HEALTHY)) == {
        "stack": "dev: m/q4, lock aaaaaaaaaaaa",
        "engine": "healthy, serving aaaaaaaaaaaa, 2 restarts",
        "front": "healthy, http://127.0.0.1:1",
        "start": "load 1.3 s",
        "gated": "2026-11-30T16:00:00Z",
    }
    assert list(faults_of(stack(), HEALTHY)) == []


def test_a_stack_whose_engine_was_never_made_is_told_without_none() -> None:
    there = HEALTHY | {"result": "down", "serving": None, "health": "none", "front": None, "engine_owner": None}
    text = " ".join(line for _, line in lines_of(stack(Engine=None, Front=None), there))
    assert "None" not in text
    assert "no engine yet" in text


def test_a_job_that_runs_is_told() -> None:
    assert ("job", "j-activate runs now") in list(lines_of(stack(), HEALTHY | {"jobs": ["j-activate"]}))


def pending(kind: str) -> dict[str, Any]:
    return {"type": kind, "resource": {"urn": "urn:pulumi:dev::p::a$b::serve-0-gpu"}}


FAULTS: list[tuple[dict[str, Any], Any, str, str]] = [
    ({"machine": None}, (), "no claim of this stack", "pulumi up --refresh --stack dev"),
    ({"result": "down", "serving": None, "why": "it exited"}, (), "nothing serves: it exited", "pulumi up --refresh"),
    ({"result": "down", "serving": None}, (), "no release was ever gated", "pulumi up --refresh --stack dev"),
    ({"serving": OTHER}, (), "bbbbbbbbbbbb serves, the state says aaaaaaaaaaaa", "pulumi up --refresh --stack dev"),
    ({"front": None}, (), "the front does not answer", "pulumi up --refresh --stack dev"),
    ({"front": {"healthy": False}}, (), "the front does not answer", "pulumi up --refresh --stack dev"),
    (
        {},
        [pending("creating")],
        "cut while creating serve-0-gpu",
        "pulumi refresh --yes --clear-pending-creates --stack dev",
    ),
    ({}, [pending("updating")], "cut while updating serve-0-gpu", "pulumi up --refresh --stack dev"),
]


@pytest.mark.parametrize(("there", "operations", "said", "mend"), FAULTS)
def test_each_disagreement_is_one_fault_with_its_command(
    there: dict[str, Any], operations: Any, said: str, mend: str
) -> None:
    (fault,) = faults_of(stack(operations), HEALTHY | there)
    assert said in fault
    assert f"run `{mend}" in fault


class Silent:
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def connect(self, _host: Any) -> Silent:
        return self

    def ask(self, _verb: str) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(("change", "code"), [({}, 0), ({"serving": OTHER}, 1)])
def test_the_exit_code_and_the_json_say_the_same_as_the_lines(
    change: dict[str, Any], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(status, "load", lambda _name: stack())
    monkeypatch.setattr(status, "adapter", lambda _cloud: Silent(HEALTHY | change))
    assert status.run(Namespace(stack=None, json=False)) == code
    assert ("fault" in capsys.readouterr().out) is bool(code)
    assert status.run(Namespace(stack=None, json=True)) == code
    said = json.loads(capsys.readouterr().out)
    assert (said["stack"], said["host"]["health"], len(said["faults"])) == ("dev", "healthy", code)


@pytest.mark.parametrize("error", [UnreachableError("no route"), HostError("broken", "KeyError")])
def test_a_host_that_does_not_answer_is_a_fault_and_never_told_as_down(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status, "load", lambda _name: stack())
    monkeypatch.setattr(status, "adapter", lambda _cloud: Silent(error))
    with pytest.raises(CliError, match=f"cannot tell what serves: {error}: run `pulumi up --refresh"):
        status.run(Namespace(stack=None, json=False))
