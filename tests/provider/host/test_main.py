"""The verbs as a program: what is asked wrongly gets one clear line and no trace."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sluicegate.provider.host.verbs import JOBS, NEEDS, VERBS
from tests.provider.host.kit import CHECKOUT, Stack, verb
from tests.skips import cannot_here

PLACED = {"places": {"root": "/nowhere", "run": "/nowhere/run", "stack": "p.s"}}


def refused(name: str, text: str, *words: str) -> str:
    code, out, err = verb(name, text, *words)
    answer = json.loads(out)
    assert (code, err, out.count("\n"), answer["kind"]) == (2, "", 1, "usage")
    return str(answer["error"])


@pytest.mark.parametrize("name", ["", "stat", "--help", "../status"])
def test_a_verb_that_does_not_exist_is_answered_with_those_that_do(name: str) -> None:
    said = refused(name, "{}")
    assert said.startswith(f"no verb {name!r}; allowed: activate, claim")
    assert "follow" in said


@pytest.mark.parametrize("text", ["", "{", "nonsense", "\x00"])
def test_stdin_that_is_no_json_is_said_to_be(text: str) -> None:
    assert refused("status", text).startswith("stdin is not JSON: ")


@pytest.mark.parametrize("text", ["[]", "3", "null", '"status"'])
def test_json_that_is_no_object_is_said_to_be(text: str) -> None:
    assert refused("status", text).startswith("the spec is no JSON object but ")


@pytest.mark.parametrize("name", sorted(NEEDS.keys() - {"probe"}))
def test_every_missing_key_of_a_spec_is_named_and_no_job_started(name: str) -> None:
    said = refused(name, "{}")
    assert said == f"the spec of `{name}` lacks {', '.join(NEEDS[name])}"


def test_a_key_that_is_missing_deep_inside_is_named_by_its_path(stack: Stack) -> None:
    spec = stack.spec | stack.engine()
    del spec["engine"]["drain_s"]
    assert refused("prepare", json.dumps(spec)) == "the spec of `prepare` lacks engine.drain_s"
    assert not stack.places.jobs.exists()


def test_every_verb_that_takes_a_spec_says_what_it_needs() -> None:
    assert NEEDS.keys() == {*VERBS, *JOBS, "follow"}


@pytest.mark.parametrize("words", [("/nowhere",), ("/nowhere", "-1"), ("/nowhere", "x"), ("/nowhere", "0", "0")])
def test_following_without_a_folder_and_an_offset_is_a_usage_error(words: tuple[str, ...]) -> None:
    assert refused("follow", "", *words) == "usage: follow JOB_FOLDER OFFSET"


def test_ending_what_there_is_not_is_refused() -> None:
    assert refused("deactivate", json.dumps(PLACED | {"what": "all", "token": "t"})).startswith(
        "what: 'all' is none of"
    )


@pytest.mark.parametrize("name", ["status", "deactivate", "claim", "revert"])
@pytest.mark.parametrize("stack", ["", ".", "..", "../x", "a/b", "/etc"])
def test_no_verb_is_led_out_of_the_folder_of_stacks(name: str, stack: str, tmp_path: Path) -> None:
    spec = {"places": {"root": str(tmp_path), "run": str(tmp_path / "run"), "stack": stack}, "token": "t"}
    spec |= {"what": "machine", "root": str(tmp_path), "stack": stack, "stack_id": "i", "job": "j"}
    code, out, _ = verb(name, json.dumps(spec))
    assert code == 1
    assert "is no name of a stack" in json.loads(out)["error"]


def test_the_cache_of_a_folder_that_is_not_there_is_empty(tmp_path: Path) -> None:
    code, out, _ = verb("collect", json.dumps({"places": {"root": str(tmp_path / "none")}, "sources": True}))
    assert (code, json.loads(out)) == (0, {"removed": [], "bytes": 0})


def test_probing_looks_and_changes_nothing(tmp_path: Path) -> None:
    code, out, _ = verb("probe", json.dumps({"root": str(tmp_path / "deep/root")}))
    there: dict[str, Any] = json.loads(out)
    assert code == 0
    assert there["executable"] == sys.executable
    assert there["writable"]
    assert list(tmp_path.iterdir()) == []


def old_python() -> str | None:
    """A Python 3.10 of this machine: on PATH, or one that pyenv keeps."""
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob("versions/3.10.*/bin/python3.10")
    for python in (shutil.which("python3.10"), *map(str, kept)):
        if python and subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0:
            return python
    return None


def test_it_runs_as_one_file_with_the_oldest_python_that_hosts_may_have(tmp_path: Path) -> None:
    python = old_python()
    if python is None:
        cannot_here("a Python 3.10")
    package = tmp_path / "app/sluicegate/provider/host"
    package.mkdir(parents=True)
    for source in (CHECKOUT / "provider/host").glob("*.py"):
        (package / source.name).write_bytes(source.read_bytes())
    (tmp_path / "app/__main__.py").write_text(
        "import sys\nfrom sluicegate.provider.host.__main__ import main\nsys.exit(main(sys.argv[1:]))\n"
    )
    archive = tmp_path / "host.pyz"
    subprocess.run([sys.executable, "-m", "zipapp", tmp_path / "app", "-o", archive], check=True)

    def ask(name: str, spec: Any) -> Any:
        done = subprocess.run(
            [python, archive, name], input=json.dumps(spec), capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)

    assert ask("probe", {})["python"].startswith("3.10.")
    root = str(tmp_path / "root")
    there = ask("claim", {"root": root, "stack": "p.s", "stack_id": "i", "token": "t"})
    spec = {"places": {"root": root, "run": there["run"], "stack": "p.s"}}
    # A detached job is the same file again; it ends with an answer of its own.
    started = ask("activate", spec | {"digest": "sha256:" + "0" * 64, "deadline_s": 1, "revert_s": 1, "token": "t"})
    folder = f"{root}/stacks/p.s/jobs/{started['job']}"
    lines = subprocess.run([python, archive, "follow", folder, "0"], capture_output=True, text=True, check=True).stdout
    assert json.loads(lines.splitlines()[-1])["cause"]["kind"] == "not prepared"
    assert ask("deactivate", spec | {"what": "machine", "token": "t"}) == {"done": True}
    # As a folder, too, where this interpreter cannot shut the current folder out of its path.
    argv, app = [python, "-m", "sluicegate.provider.host", "probe"], tmp_path / "app"
    done = subprocess.run(argv, cwd=app, input="{}", capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["system"] == "Linux"
