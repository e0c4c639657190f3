"""`make up`, `make down` and `make env` before and around pulumi, which is a script here that answers as it is told."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tools import down, exports, setup, stack, up
from tools.console import SetupError
from tools.paths import ROOT, VENV

PULUMI = """#!/bin/sh
echo "$*" >> "$FAKE/asked"
case "$1 $2" in
"stack ls") cat "$FAKE/listed"; exit;;
"stack select") exit;;
esac
echo made > "$PWD/Pulumi.old.yaml"
printf 'Duration: 2s\\n\\n'
echo 'The resources in the stack have been deleted, but the history and configuration are still maintained. '
echo 'If you want to remove the stack completely, run `pulumi stack rm old`.'
[ ! -e "$FAKE/fails" ]
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout of its own with one stack file, and a stack `old` whose file is gone."""
    (tmp_path / "Pulumi.dev.yaml").touch()
    (tmp_path / "Pulumi.yaml").touch()
    program = tmp_path / "bin" / "pulumi"
    program.parent.mkdir()
    program.write_text(PULUMI)
    program.chmod(0o755)
    (tmp_path / "listed").write_text('[{"name": "old"}]')
    env = {"PATH": f"{program.parent}:/usr/bin:/bin", "FAKE": str(tmp_path), "PULUMI_BACKEND_URL": f"file://{tmp_path}"}
    monkeypatch.setattr(stack, "ROOT", tmp_path)
    monkeypatch.setattr(stack.environment, "environ", lambda: env)
    state = tmp_path / ".pulumi" / "stacks" / "sluicegate" / "old.json"
    state.parent.mkdir(parents=True)
    state.touch()
    monkeypatch.setattr(stack, "ENV_FILE", state)
    return tmp_path


def test_a_stack_without_a_file_is_refused_with_those_that_have_one_and_the_command(checkout: Path) -> None:
    (checkout / "Pulumi.trial.yaml").touch()
    with pytest.raises(SetupError) as caught:
        stack.require("nofile")
    assert str(caught.value) == (
        "stack nofile has no file Pulumi.nofile.yaml; stacks that have one: dev, trial; "
        "to make it: cp Pulumi.dev.yaml Pulumi.nofile.yaml, then make up STACK=nofile"
    )
    stack.require("trial")
    stack.require("organization/sluicegate/trial")


@pytest.mark.parametrize("name", ["", "a b", "ä", "a;b", "x" * 101])
def test_what_is_no_stacks_name_is_refused_as_such(name: str, checkout: Path) -> None:
    with pytest.raises(SetupError, match=r"no file|a stack's name is of letters"):
        stack.require(name)
    assert sorted(path.name for path in checkout.glob("Pulumi*")) == ["Pulumi.dev.yaml", "Pulumi.yaml"]


def test_a_stack_that_is_deployed_can_be_destroyed_and_told_without_its_file_but_not_deployed(checkout: Path) -> None:
    stack.require("old", state_will_do=True)
    with pytest.raises(SetupError, match=r"no file Pulumi\.old\.yaml"):
        stack.require("old")
    assert not (checkout / "asked").exists()


def test_nothing_is_set_up_for_a_stack_that_is_none(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(setup, "TOOLS", checkout / ".tools")
    assert setup.main(["--quiet", "--stack", "nofile"]) == 1
    assert up.main(["--stack", "nofile"]) == down.main(["--stack", "nofile"]) == 1
    assert capsys.readouterr().err.count("error: stack nofile has no file") == 3
    assert not (checkout / ".tools").exists()
    assert not (checkout / "asked").exists()


@pytest.mark.parametrize("goal", ["up", "down", "env"])
def test_make_for_a_stack_without_a_file_leaves_none_behind(goal: str) -> None:
    done = subprocess.run(["make", "-s", goal, "STACK=nofile"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert done.stdout == ""
    assert done.stderr.startswith("error: stack nofile has no file Pulumi.nofile.yaml; stacks that have one: dev")
    assert not (ROOT / "Pulumi.nofile.yaml").exists()


def test_what_down_ends_with_is_ours_and_true(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (checkout / "listed").write_text('[{"name": "dev"}]')
    assert down.main([]) == 0
    said = capsys.readouterr().out
    assert "stack rm" not in said
    assert said.startswith("Duration: 2s\n\nstack dev destroyed in ")
    assert said.endswith("; its config and history stay: make up is the way back\n")


@pytest.mark.parametrize("fails", [False, True])
def test_a_stack_that_has_lost_its_file_is_destroyed_and_gets_no_empty_one(
    fails: bool, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if fails:
        (checkout / "fails").touch()
    assert down.main(["--stack", "old"]) == int(fails)
    said = capsys.readouterr()
    assert ("failed with exit 1 (its words are above)" in said.err) is fails
    assert said.out.endswith("; its history stays\n") is not fails
    assert "destroy --yes --refresh" in (checkout / "asked").read_text()
    assert not (checkout / "Pulumi.old.yaml").exists()


def test_the_next_commands_are_those_of_this_stack() -> None:
    assert up.what_next("dev") == up.NEXT
    assert up.what_next("b") == 'To use it from here: eval "$(make -s env STACK=b)"; to end it: make down STACK=b'


def make_env(*options: str, **env: str) -> subprocess.CompletedProcess[str]:
    """`make env` evaluated in a shell that stops at an error, which then says its variables."""
    script = f'set -e; eval "$(make -s env {" ".join(options)})"; echo "$PATH"; env | grep ^OPENAI || echo none'
    return subprocess.run(
        ["sh", "-c", script], cwd=ROOT, env={**os.environ, **env}, capture_output=True, text=True, check=False
    )


def test_with_nothing_up_make_env_says_why_and_a_shell_that_evaluates_it_is_unharmed(tmp_path: Path) -> None:
    nothing_up = {"PULUMI_BACKEND_URL": f"file://{tmp_path}"}
    plain = subprocess.run(
        ["make", "-s", "env"], cwd=ROOT, env={**os.environ, **nothing_up}, capture_output=True, text=True, check=False
    )
    assert (plain.returncode, plain.stdout) == (2, "")
    ours = [line for line in plain.stderr.splitlines() if not line.startswith("make")]
    assert ours == ["error: nothing to export: stack dev was never made: run make up"]
    assert make_env(**nothing_up).stdout == f"{os.environ['PATH']}\nnone\n"


SAID = [
    ("error: stack trial has no endpoint: run `pulumi up --stack trial`", "no endpoint: run make up STACK=trial"),
    ("error: pulumi stack: a passphrase: set PULUMI_CONFIG_PASSPHRASE", "a passphrase: set PULUMI_CONFIG_PASSPHRASE"),
    ("", "sluicegate env: exit 1: run make up STACK=trial"),
]  # fmt: skip


@pytest.mark.parametrize(("stderr", "said"), SAID)
def test_what_sluicegate_env_refuses_is_one_line_with_a_command(
    stderr: str, said: str, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (checkout / "listed").write_text('[{"name": "trial"}]')
    program = checkout / "bin" / "sluicegate"
    program.write_text(f"#!/bin/sh\ncat >&2 <<'E'\n{stderr}\nE\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(exports, "VENV", checkout)
    with pytest.raises(SetupError) as caught:
        exports.of_stack("trial", dict(os.environ))
    assert str(caught.value).startswith("nothing to export: ")
    assert str(caught.value).endswith(said)


def test_make_env_prints_nothing_but_exports_and_a_folders_name_as_it_is(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    program = checkout / "bin" / "sluicegate"
    program.write_text("#!/bin/sh\necho a word\necho export OPENAI_API_KEY=k\n")
    program.chmod(0o755)
    monkeypatch.setattr(exports, "VENV", checkout)
    monkeypatch.setenv("PATH", f"{os.fsdecode(b'/caf' + bytes([0xE9]))}:{os.environ['PATH']}")
    assert exports.main([]) == 0
    lines = capfdbinary.readouterr().out.splitlines()
    assert all(line.startswith(b"export ") for line in lines)
    assert lines[0].startswith(f"export PATH='{VENV / 'bin'}:".encode())
    assert b":/caf\xe9:" in lines[0]
    assert lines[-1] == b"export OPENAI_API_KEY=k"
