"""The command itself: its words, its exit codes, the project and the environment it works in.

`pulumi` is a script here that answers as it is told; what the real one answers is seen where stacks are deployed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from sluicegate.cli import main as command
from sluicegate.cli import stack as stacks
from sluicegate.cli.stack import CliError, environ, find_project
from tests.cli.fake_pulumi import OUTPUT, SLUICEGATE, Fake


def test_a_wrong_command_line_is_code_2_and_names_the_commands() -> None:
    for words in (
        [],
        ["nonsense"],
        ["ask"],
        ["logs", "-n", "0"],
        ["logs", "-n", "x"],
        ["ask", "q", "--max-tokens", "-1"],
    ):
        with pytest.raises(SystemExit) as caught:
            command.parser().parse_args(words)
        assert caught.value.code == 2
    assert {"status", "logs", "ask", "env"} <= set(command.parser().format_help().split())


def test_words_are_parsed_into_what_the_subcommands_read() -> None:
    options = command.parser().parse_args(["ask", "why?", "-s", "prod", "--max-tokens", "5"])
    assert (options.question, options.stack, options.max_tokens) == ("why?", "prod", 5)
    options = command.parser().parse_args(["logs", "--front", "-n", "3"])
    assert (options.front, options.lines, options.stack) == (True, 3, None)


def test_a_project_is_found_from_inside_and_its_absence_says_where_to_go(fake: Fake) -> None:
    assert find_project(fake.project / "deep" / "inside") == fake.project
    with pytest.raises(CliError, match="go to the project's folder"):
        find_project(fake.folder / "bin")
    done = fake.run("status", cwd=fake.folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: no Pulumi.yaml in ")
    assert len(done.stderr.splitlines()) == 1


def test_the_environment_of_a_checkout_is_laid_under_the_callers_own(
    fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    (fake.project / ".tools").mkdir()
    (fake.project / ".tools" / "env").write_text(
        "PATH_PREFIX=/checkout/bin\n\nPULUMI_HOME=/h\nPULUMI_BACKEND_URL=file:///b?x=1\nPULUMI_CONFIG_PASSPHRASE=dev\n"
    )
    for name in [n for n in os.environ if n.startswith("PULUMI_")]:
        monkeypatch.delenv(name)
    found = environ(fake.project)
    assert found["PATH"].startswith("/checkout/bin:")
    assert (found["PULUMI_HOME"], found["PULUMI_BACKEND_URL"]) == ("/h", "file:///b?x=1")
    assert found["PULUMI_CONFIG_PASSPHRASE"] == "dev"
    assert "" not in found
    monkeypatch.setenv("PULUMI_BACKEND_URL", "file:///mine")
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE_FILE", "/secret")
    found = environ(fake.project)
    assert found["PULUMI_BACKEND_URL"] == "file:///mine"
    assert "PULUMI_CONFIG_PASSPHRASE" not in found
    monkeypatch.setenv("PULUMI_HOME", "/elsewhere")
    assert environ(fake.project) == dict(os.environ)
    assert environ(fake.folder / "bin") == dict(os.environ)


def test_the_stack_is_the_one_named_else_the_one_selected_else_dev(fake: Fake) -> None:
    fake.answer(output=OUTPUT)
    for words, chosen in ((["-s", "prod"], "prod"), ([], "dev")):
        assert fake.run("env", *words, cwd=fake.project / "deep").returncode == 0
        assert f"--stack {chosen} " in fake.asked()[-1]
        assert fake.asked()[-1].startswith(f"{fake.project} ")
    fake.answer(selected="trial\n")
    fake.run("env")
    assert "--stack trial " in fake.asked()[-1]


def test_env_can_be_evaluated_whatever_the_key_holds(fake: Fake) -> None:
    fake.answer(output=OUTPUT)
    lines = fake.run("env").stdout
    shown = subprocess.run(
        ["sh", "-c", f'{lines}\nprintf "%s|%s" "$OPENAI_BASE_URL" "$OPENAI_API_KEY"'],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert shown.stdout == "http://127.0.0.1:1/v1|a b'c"


ERRORS = [
    (
        "error: no stack named 'x' found\n",
        "no stack named 'x' found: run `pulumi stack ls`, or make it with `pulumi stack init x`",
    ),
    ("error: a stack name may only contain {}\n", "contain {}: run `pulumi stack ls`"),
    ("error: PULUMI_ACCESS_TOKEN must be set for login\n", "for login: run `pulumi login`"),
    ('error: unable to open state directory "file:///x"\n', "correct PULUMI_BACKEND_URL, or run `pulumi login`"),
    ("error: getting secrets manager: passphrase must be set\nwith more\nlines\n", "set PULUMI_CONFIG_PASSPHRASE"),
    ("error: could not log in\n", "run `pulumi login`"),
    ("panic: \x1b[31mred\x1b[0m\ngoroutine 1\n", "run `pulumi stack` to see more"),
    ("", "it said nothing: run `pulumi stack` to see more"),
]


@pytest.mark.parametrize(("stderr", "said"), ERRORS)
def test_what_pulumi_refuses_is_one_line_with_a_command(stderr: str, said: str, fake: Fake) -> None:
    fake.answer(error=stderr)
    for words in (["env", "-s", "x"], ["status", "-s", "x"], ["logs", "-s", "x"], ["ask", "q", "-s", "x"]):
        done = fake.run(*words)
        assert (done.returncode, done.stdout) == (1, "")
        assert len(done.stderr.splitlines()) == 1
        assert done.stderr.startswith("error: pulumi stack: ")
        assert said in done.stderr


def test_no_pulumi_at_all_says_how_to_get_one(fake: Fake) -> None:
    (fake.folder / "bin" / "pulumi").unlink()
    fake.env["PATH"] = str(fake.folder / "bin")
    done = fake.run("status")
    assert (done.returncode, done.stderr) == (
        1,
        "error: no pulumi on PATH: run `make setup`, or install it from pulumi.com\n",
    )


@pytest.mark.parametrize(
    "state",
    [
        '{"deployment": {"resources": [{"type": "sluicegate:index:Machine"}]}}',  # its making was cut
        "{}",
        '{"deployment": null}',
        '{"deployment": {"resources": null}}',
    ],
)
def test_a_stack_with_nothing_in_it_says_what_to_run(state: str, fake: Fake) -> None:
    fake.answer(export=state, output="{}")
    for words in (["status"], ["logs"]):
        assert fake.run(*words).stderr == "error: stack dev has nothing deployed: run `pulumi up --stack dev`\n"
    for words in (["env"], ["ask", "q"]):
        assert fake.run(*words).stderr == "error: stack dev has no endpoint yet: run `pulumi up --stack dev`\n"


def test_outputs_of_another_kind_of_project_are_said_to_be_none_of_ours(fake: Fake) -> None:
    fake.answer(output='{"url": "http://127.0.0.1:1", "model": ""}')
    for words in (["env"], ["ask", "q"], ["race"]):
        done = fake.run(*words)
        assert (done.returncode, done.stdout) == (1, "")
        assert "stack dev is none of sluicegate, its outputs lack model" in done.stderr
        assert done.stderr.endswith(": go to a sluicegate project's folder, or name its stack with --stack\n")


def test_what_tells_more_is_asked_of_the_stack_that_was_named(fake: Fake) -> None:
    fake.answer(output=OUTPUT)
    assert fake.run("ask", "q").stderr.endswith(": run `sluicegate status`\n")
    assert fake.run("ask", "q", "-s", "prod").stderr.endswith(": run `sluicegate status --stack prod`\n")
    machine = {"type": "sluicegate:index:Machine", "outputs": {"host": {"cloud": "moon"}}}
    fake.answer(export=json.dumps({"deployment": {"resources": [machine]}}))
    for words in (["logs"], ["logs", "-s", "dev", "--front"]):
        assert fake.run(*words).stderr.endswith(": run `sluicegate status --stack dev`\n")


def test_a_reader_that_has_seen_enough_is_no_fault(fake: Fake) -> None:
    fake.answer(output=OUTPUT)
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [SLUICEGATE, "env"], cwd=fake.project, env=fake.env, stdout=write, stderr=subprocess.PIPE, text=True,
            check=False, timeout=60,
        )  # fmt: skip
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


def test_ctrl_c_is_code_130_without_a_trace(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(stacks, "find_project", interrupted)
    monkeypatch.setattr(sys, "argv", ["sluicegate", "env"])
    with pytest.raises(SystemExit) as caught:
        command.main()
    assert caught.value.code == 130
    assert capsys.readouterr().err == ""
