"""The plugins of pulumi-random and pulumi-command under the real engine, whichever are installed.

With the stand-ins this shows that they are found in PULUMI_HOME and do what the project relies on; it cannot show that
the official plugins carry such a state on.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.skips import cannot_here
from tools import environment, pulumi_plugins

PROGRAM = """
import pulumi
import pulumi_command as command
import pulumi_random as random

config = pulumi.Config()
keeper = config.get("keeper") or "1"
made = random.RandomId("id", byte_length=8, prefix="sg-", keepers={"k": keeper})
password = random.RandomPassword("pw", length=24, special=False, keepers={"k": keeper})
step = command.local.Command(
    "step",
    create='echo "$WORD" | tee -a log',
    update='echo "again after $PULUMI_COMMAND_STDOUT" | tee -a log',
    delete="echo gone >> log",
    environment={"WORD": config.get("word") or "made"},
    triggers=[keeper],
)
hidden = command.local.Command("hidden", create=pulumi.Output.secret("echo whisper-$((40 + 2))"))
pulumi.export("id", made.b64_url)
pulumi.export("hex", made.hex)
pulumi.export("password", password.result)
pulumi.export("said", step.stdout)
pulumi.export("hidden", hidden.stdout)
"""


class Project:
    """A Pulumi project of its own, with its own backend."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "Pulumi.yaml").write_text("name: probe\nruntime: python\n")
        (folder / "__main__.py").write_text(PROGRAM)
        (folder / "state").mkdir()
        # The checkout's PATH and PULUMI_HOME; where a plugin of ours would be first on PATH is not among them.
        self.env = {**environment.environ(), "PULUMI_BACKEND_URL": f"file://{folder / 'state'}"}
        self.env |= {"PULUMI_CONFIG_PASSPHRASE": "test"}
        self.run("stack", "init", "dev")

    def configure(self, values: Mapping[str, str]) -> None:
        for key, value in values.items():
            self.run("config", "set", key, value)

    def run(self, *arguments: str, fails: bool = False) -> str:
        command = ["pulumi", *arguments, "--non-interactive"]
        done = subprocess.run(command, cwd=self.folder, env=self.env, capture_output=True, text=True, check=False)
        assert (done.returncode != 0) is fails, done.stdout + done.stderr
        return done.stdout + done.stderr

    def up(self) -> str:
        return self.run("up", "--yes", "--skip-preview")

    def outputs(self) -> dict[str, Any]:
        return dict(json.loads(self.run("stack", "output", "--json", "--show-secrets")))

    def resources(self) -> dict[str, dict[str, Any]]:
        deployment = json.loads(self.run("stack", "export"))["deployment"]
        return {entry["urn"].rsplit("::", 1)[-1]: entry for entry in deployment["resources"]}

    def operations(self) -> dict[str, str]:
        preview = json.loads(self.run("preview", "--json"))
        return {step["urn"].rsplit("::", 1)[-1]: step["op"] for step in preview["steps"]}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Deployed once; the tests below change it in the order of the file."""
    project = Project(tmp_path_factory.mktemp("stand-ins"))
    project.configure({"cloud": "local"})
    project.said = project.up()  # type: ignore[attr-defined]
    return project


def test_a_first_up_makes_them_and_a_second_changes_nothing(project: Project) -> None:
    outputs = project.outputs()
    raw = bytes.fromhex(outputs["hex"].removeprefix("sg-"))
    assert len(raw) == 8
    assert outputs["id"].startswith("sg-")
    assert len(outputs["password"]) == 24
    assert outputs["password"].isalnum()
    assert outputs["said"] == "made"
    assert outputs["hidden"] == "whisper-42"
    operations = project.operations()
    assert set(operations.values()) == {"same"}, operations


def test_the_state_has_the_official_shape_and_no_secret_in_clear(project: Project) -> None:
    resources = project.resources()
    made, password, step = (resources[name] for name in ("id", "pw", "step"))
    assert made["id"] == made["outputs"]["id"] == made["outputs"]["b64Url"].removeprefix("sg-")
    assert set(made["outputs"]) == {"b64Std", "b64Url", "byteLength", "dec", "hex", "id", "keepers", "prefix"}
    assert password["id"] == "none"
    assert password["inputs"] == {"keepers": {"k": "1"}, "length": 24, "special": False}
    assert password["outputs"]["__meta"] == '{"schema_version":"3"}'
    assert password["outputs"]["minLower"] == 0
    assert "ciphertext" in password["outputs"]["result"]
    assert step["id"].startswith("step")
    assert (step["outputs"]["stdout"], step["outputs"]["stderr"]) == ("made", "")
    outputs = project.outputs()
    files = [path for path in (project.folder / "state").rglob("*") if path.is_file()]
    assert files
    for path in files:
        text = path.read_text(errors="replace")
        assert outputs["password"] not in text, path
        assert "whisper-42" not in text, path


def test_a_changed_input_runs_update_in_place(project: Project) -> None:
    project.configure({"word": "other"})
    assert project.operations()["step"] == "update"
    project.up()
    assert project.outputs()["said"] == "again after made"


def test_a_changed_keeper_or_trigger_replaces(project: Project) -> None:
    before = project.outputs()
    project.configure({"keeper": "2"})
    operations = project.operations()
    assert {operations[name] for name in ("id", "pw", "step")} == {"replace"}
    # Among changes the preview lists only what changes.
    assert operations.get("hidden", "same") == "same"
    project.up()
    after = project.outputs()
    assert after["id"] != before["id"]
    assert after["password"] != before["password"]
    assert (project.folder / "log").read_text().splitlines() == ["made", "again after made", "other", "gone"]


def test_a_refresh_finds_nothing_to_say(project: Project) -> None:
    project.run("refresh", "--yes", "--expect-no-changes")


def test_stand_ins_say_so_once_a_run_and_refuse_another_cloud(project: Project) -> None:
    if not all(map(pulumi_plugins.is_stand_in, pulumi_plugins.NAMES)):
        cannot_here("stand-ins, since the official plugins are installed")
    diagnostics = project.said.split("Diagnostics:")[1]  # type: ignore[attr-defined]
    assert diagnostics.count("a stand-in, not the official plugin") == 2
    project.configure({"cloud": "ssh"})
    refused = project.run("preview", fails=True)
    assert "serves only stacks whose probe:cloud is local, and this stack's is ssh: run make official" in refused
    project.configure({"cloud": "local"})


def test_destroy_runs_delete_and_leaves_no_process(project: Project) -> None:
    project.run("destroy", "--yes", "--skip-preview")
    assert (project.folder / "log").read_text().splitlines()[-1] == "gone"
    left = [
        path
        for path in Path("/proc").glob("[0-9]*/environ")
        if str(project.folder / "state").encode() in _read(path) and path.parent.name != "self"
    ]
    assert left == []


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
