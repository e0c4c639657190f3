"""What the stand-ins decide, without an engine: passwords, commands, and whom they serve."""

from __future__ import annotations

import asyncio
import string
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pulumi.runtime import rpc

from tools.plugins import commands, passwords, stack_config, values
from tools.plugins.command_stand_in import Command
from tools.plugins.handling import Engine, FailedError, Run
from tools.plugins.random_stand_in import RandomId, RandomPassword

URN = "urn:pulumi:dev::sluicegate::sluicegate:index:Deployment$random:index/randomId:RandomId::id"


@pytest.mark.parametrize(
    ("text", "cloud"),
    [
        ("config:\n  sluicegate:cloud: local\n", "local"),
        ("config:\n  sluicegate:cloud: ssh\n", "ssh"),
        ("config:\n  other:cloud: local\n", None),
        ("config:\n  sluicegate:cloud: {a: b}\n", None),
        ("config: [\n", None),
        ("", None),
        (None, None),
    ],
)
def test_the_cloud_is_read_from_the_stacks_own_file(tmp_path: Path, text: str | None, cloud: str | None) -> None:
    folder = tmp_path / "below"
    folder.mkdir()
    if text is not None:
        (tmp_path / "Pulumi.dev.yaml").write_text(text)
    assert stack_config.cloud(URN, folder) == cloud
    refused = stack_config.refusal(URN, folder, "random", "4.21.4")
    assert (refused is None) is (cloud == "local")
    assert refused is None or "make official" in refused


@settings(max_examples=60, deadline=None)
@given(
    extra=st.integers(1, 40),
    minimums=st.fixed_dictionaries(
        {key: st.integers(0, 4) for key in ("minLower", "minUpper", "minNumeric", "minSpecial")}
    ),
)
def test_a_password_meets_its_length_and_minimums(extra: int, minimums: dict[str, int]) -> None:
    inputs = {"length": float(sum(minimums.values()) + extra), **minimums}
    assert passwords.faults(inputs) == []
    made = passwords.generate(passwords.filled(inputs))
    assert len(made) == inputs["length"]
    for kind, letters in passwords.alphabets(inputs).items():
        assert sum(letter in letters for letter in made) >= minimums[f"min{kind.capitalize()}"]


def test_a_password_uses_only_what_is_allowed() -> None:
    made = passwords.generate(passwords.filled({"length": 400.0, "special": False, "upper": False}))
    assert set(made) <= set(string.ascii_lowercase + string.digits)
    made = passwords.generate(
        passwords.filled({"length": 400.0, "overrideSpecial": "~", "lower": False, "upper": False})
    )
    assert set(made) == set(string.digits + "~")


@pytest.mark.parametrize(
    ("inputs", "key"),
    [
        ({}, "length"),
        ({"length": 0.0}, "length"),
        ({"length": 2.5}, "length"),
        ({"length": 3.0, "minLower": 2.0, "minUpper": 2.0}, "length"),
        ({"length": 8.0, "minLower": "x"}, "minLower"),
        ({"length": 8.0, "number": True, "numeric": False}, "number"),
        ({"length": 8.0, "lower": False, "upper": False, "special": False, "numeric": False}, "numeric"),
    ],
)
def test_what_a_password_cannot_meet_is_named(inputs: dict[str, Any], key: str) -> None:
    assert [fault[0] for fault in passwords.faults(inputs)] == [key]


def test_an_unknown_length_is_not_judged() -> None:
    assert passwords.faults({"length": values.UNKNOWN}) == []
    assert RandomId().check({"byteLength": values.UNKNOWN}) == []


@pytest.mark.parametrize("length", [0.0, 1.5, "8", None])
def test_an_id_needs_a_whole_number_of_bytes(length: object) -> None:
    assert RandomId().check({"byteLength": length})[0][0] == "byteLength"


def test_an_input_given_with_its_default_is_no_change() -> None:
    handler = RandomPassword()
    plain, spelled = {"length": 8.0}, {"length": 8.0, "special": True, "minUpper": 0.0, "numeric": True}
    assert values.changed(handler.compared(plain), handler.compared(spelled)) == []
    assert values.changed(handler.compared(plain), handler.compared({"length": 8.0, "numeric": False})) == [
        "number",
        "numeric",
    ]


def test_wrappers_and_the_engines_own_keys_are_no_change() -> None:
    assert values.changed({"a": "x", "__defaults": []}, {"a": values.secret("x")}) == []
    assert values.changed({"a": "x"}, {"a": values.UNKNOWN, "b": 1.0}) == ["a", "b"]


def test_the_marks_are_the_sdks() -> None:
    assert (
        rpc.UNKNOWN,
        rpc._special_sig_key,
        rpc._special_secret_sig,
    ) == (values.UNKNOWN, values.SIGNATURE, values.SECRET)


def test_secrets_are_found_at_any_depth() -> None:
    assert values.has({"a": [{"b": values.secret("x")}]}, values.SECRET)
    assert not values.has({"a": [{"b": "x"}]}, values.SECRET)
    assert values.reveal({"a": [values.secret({"b": values.secret("x")})]}) == {"a": [{"b": "x"}]}


def create(inputs: dict[str, Any], timeout_s: float = 0) -> dict[str, Any]:
    """Run `create` as the engine would, with nobody listening to the log."""

    async def work() -> dict[str, Any]:
        return (await Command().create("cmd", inputs, Run(Engine(None), URN, timeout_s)))[1]

    return asyncio.run(work())


def test_a_command_gets_its_environment_folder_interpreter_and_stdin(tmp_path: Path) -> None:
    outputs = create(
        {
            "create": "\n".join(
                [
                    "import os, sys",
                    "print(os.environ['WHO'], os.getcwd(), sys.stdin.read())",
                    "print('oops', file=sys.stderr)",
                ]
            ),
            "interpreter": ["python3", "-c"],
            "environment": {"WHO": "me"},
            "stdin": "hello",
            "dir": str(tmp_path),
        }
    )
    assert outputs["stdout"] == f"me {tmp_path} hello"
    assert outputs["stderr"] == "oops"


def test_the_previous_output_is_in_the_environment_unless_switched_off() -> None:
    previous = {"stdout": "before", "stderr": ""}
    assert commands.environment({}, previous, {"A": "b"}) == {"A": "b", "PULUMI_COMMAND_STDOUT": "before"}
    assert commands.environment({"addPreviousOutputInEnv": False}, previous, {}) == {}


def test_a_failed_command_says_what_it_printed() -> None:
    with pytest.raises(FailedError, match=r'exit status 3: running "echo no disk >&2; exit 3":\nno disk'):
        create({"create": "echo no disk >&2; exit 3"})


def test_a_failed_command_with_a_secret_does_not_quote_it() -> None:
    with pytest.raises(FailedError) as caught:
        create({"create": "echo $KEY; exit 3", "environment": {"KEY": values.secret("s3cret")}})
    assert "s3cret" not in str(caught.value)
    assert "withheld" in str(caught.value)


def test_the_output_of_a_command_with_a_secret_is_secret() -> None:
    outputs = create({"create": values.secret("echo s3cret")})
    assert outputs["stdout"] == values.secret("s3cret")


def test_a_folder_that_is_not_there_is_named() -> None:
    with pytest.raises(FailedError, match=r"could not be started.*/no/such/folder"):
        create({"create": "true", "dir": "/no/such/folder"})


def test_a_deadline_ends_the_command_and_all_it_started(tmp_path: Path) -> None:
    started = time.monotonic()
    with pytest.raises(FailedError, match=r"not done within the custom timeout of 0.3 s"):
        create({"create": f"sleep 60 & echo $! > {tmp_path / 'pid'}; wait"}, timeout_s=0.3)
    assert time.monotonic() - started < 5
    # Gone, or dead and not yet collected by whoever inherits orphans here.
    status = Path("/proc") / (tmp_path / "pid").read_text().strip() / "status"
    assert not status.exists() or "State:\tZ" in status.read_text()


def test_a_cancel_ends_the_command() -> None:
    async def work() -> None:
        engine = Engine(None)
        asyncio.get_running_loop().call_later(0.2, engine.cancelled.set)
        with pytest.raises(FailedError, match="cancelled"):
            await Command().create("cmd", {"create": "sleep 60"}, Run(engine, URN, 0))

    asyncio.run(work())


def test_a_command_without_a_create_runs_nothing() -> None:
    assert create({"delete": "true"}) == {"delete": "true", "stdout": "", "stderr": ""}
