"""What is seen of runs of Pulumi: locks as its backends tell them, and processes, which are real ones here."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sluicegate.cli import runs
from sluicegate.cli.stack import Stack


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stack:
    (tmp_path / "p" / "inside").mkdir(parents=True)
    (tmp_path / "p" / "Pulumi.yaml").write_text("name: proj\n")
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{tmp_path}/state")
    return Stack("org/proj/dev", tmp_path / "p", {})


@pytest.fixture
def start() -> Iterator[Callable[..., int]]:
    """Start processes that are called as they are told and do nothing; their pids."""
    started = []

    def run(folder: Path, name: str, *words: str) -> int:
        command = [name, "-c", "print(flush=True); open(0).read()", *words]
        process = subprocess.Popen(
            command, executable=sys.executable, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout
        process.stdout.readline()
        started.append(process)
        return process.pid

    yield run
    for process in started:
        process.communicate()


def lock(stack: Stack, name: str, text: str) -> None:
    path = stack.project.parent / "state" / ".pulumi" / "locks" / "organization" / "proj" / "dev" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_locks_of_a_folder_are_read_with_who_took_them_and_whether_that_run_goes_on(
    stack: Stack, start: Callable[..., int]
) -> None:
    assert runs.locks(stack) == []
    pid = start(stack.project, "pulumi", "up")
    said: dict[str, Any] = {"username": "me", "hostname": socket.gethostname(), "timestamp": "2026-11-30T16:00:00.5Z"}
    lock(stack, "a.json", json.dumps(said | {"pid": pid}))
    lock(stack, "b.json", json.dumps(said | {"pid": 2**22 + 1}))
    lock(stack, "c.json", json.dumps(said | {"pid": pid, "hostname": "ci"}))
    lock(stack, "d.json", "{}")
    lock(stack, "d.json.attrs", "{}")
    assert runs.locks(stack) == [
        runs.Lock(f"me@{socket.gethostname()}, pid {pid}", "2026-11-30T16:00:00Z", alive=True),
        runs.Lock(f"me@{socket.gethostname()}, pid {2**22 + 1}", "2026-11-30T16:00:00Z", alive=False),
        runs.Lock(f"me@ci, pid {pid}", "2026-11-30T16:00:00Z"),
        runs.Lock("a run that left it unreadable"),
    ]


@pytest.mark.parametrize(
    ("stacks", "found"),
    [
        ([{"name": "org/proj/dev", "updateInProgress": True}], [runs.Lock("a run that the backend knows")]),
        ([{"name": "dev", "updateInProgress": False}], []),
        ([{"name": "dev"}], None),
        ([{"name": "other", "updateInProgress": True}], None),
    ],
)
def test_another_backend_is_believed_where_it_tells_and_else_nothing_is_known(
    stacks: Any, found: Any, stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PULUMI_BACKEND_URL")
    answers = {"whoami": json.dumps({"url": "https://api.example.org"}), "stack": json.dumps(stacks)}
    monkeypatch.setattr(runs, "pulumi", lambda _project, word, *_: answers[word])
    assert runs.locks(stack) == found


def test_a_run_that_changes_the_stack_is_told_from_one_that_looks_and_from_other_projects(
    stack: Stack, start: Callable[..., int]
) -> None:
    start(stack.project, "pulumi", "preview")
    start(stack.project, "pulumi", "up", "--stack", "prod")
    start(stack.project, "pulumi", "up", "-s=prod")
    start(stack.project, "another", "up")
    start(stack.project.parent, "pulumi", "up")
    mine = {
        start(stack.project, "/opt/pulumi/bin/pulumi", "up"),
        start(stack.project / "inside", "pulumi", "destroy", "--stack", "dev"),
        start(stack.project, "pulumi", "refresh", "--stack=org/proj/dev"),
    }
    found = runs.deploying(stack)
    assert {run.pid for run in found} == mine
    assert any(run.command.endswith("up") for run in found)


def test_plugins_whose_run_has_ended_are_found_by_their_folder(stack: Stack, start: Callable[..., int]) -> None:
    start(stack.project.parent, "pulumi-resource-sluicegate")
    ours = start(stack.project, "/venv/bin/pulumi-resource-sluicegate", "127.0.0.1:1")
    host = start(stack.project, "pulumi-language-python", "127.0.0.1:1")
    assert sorted(runs.orphans(stack), key=lambda p: p.pid) == sorted(
        [runs.Process(ours, "pulumi-resource-sluicegate"), runs.Process(host, "pulumi-language-python")],
        key=lambda p: p.pid,
    )
