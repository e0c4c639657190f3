"""The subcommands as `sluicegate` registers them, with a stand-in for the pulumi program. Proves no real stack."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from sluicegate.cli import race
from sluicegate.cli.stack import CliError
from tests.race.servers import events, serving, stream


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project folder whose `pulumi stack output` prints outputs.json and notes how it was called."""
    (tmp_path / "Pulumi.yaml").write_text("name: x\nruntime: python\n")
    program = tmp_path / "bin" / "pulumi"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/called\ncat {tmp_path}/outputs.json\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    race.add(parser.add_subparsers())
    options = parser.parse_args(words)
    return int(options.run(options))


def test_a_stack_is_raced_by_its_own_outputs_and_its_key_is_nowhere(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(lambda _: stream(*events(), pause=0.0)) as server:
        told = {"url": server.url.removesuffix("/v1"), "model": "served", "api_key": "k-secret", "hourly_price": 4.5}
        (project / "outputs.json").write_text(json.dumps(told))
        assert run("race", "--stack", "prod,precision=fp8", "--rounds", "1") == 0
        assert {asked.headers["authorization"] for asked in server.asked} == {"Bearer k-secret"}
        assert server.asked[0].body["model"] == "served"
        assert server.asked[0].body["stream_options"]["continuous_usage_stats"] is True
        assert run("load", "--stack", "prod", "--levels", "2", "--requests", "4") == 0
    (target,) = json.loads((project / "race-final.json").read_text())["targets"]
    assert (target["name"], target["precision"], target["hourly"]) == ("prod", "fp8", 4.5)
    assert json.loads((project / "load.json").read_text())["settings"]["hourly"] == 4.5
    assert "--show-secrets --stack prod" in (project / "called").read_text()
    shown = capsys.readouterr()
    written = "".join(path.read_text() for path in project.glob("*.json") if path.name != "outputs.json")
    assert "k-secret" not in shown.out + shown.err + written


def test_a_stack_without_an_endpoint_is_said_to_have_none(project: Path) -> None:
    (project / "outputs.json").write_text("{}")
    with pytest.raises(CliError, match="no endpoint yet"):
        run("race", "--stack", "prod")


def test_a_wrong_word_after_the_name_is_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "outputs.json").write_text('{"url": "http://127.0.0.1:1", "model": "m"}')
    assert run("race", "--stack", "prod,colour=red") == 2
    assert "colour" in capsys.readouterr().err
