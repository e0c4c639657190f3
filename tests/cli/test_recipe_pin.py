"""`sluicegate recipe pin` on a project with a stack that nothing is deployed to."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.stack.harness import Project


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    p = Project(tmp_path / "p", root=tmp_path / "root")
    yield p.setup()
    p.clean()


def pin(p: Project, recipe: str) -> subprocess.CompletedProcess[str]:
    command = ["sluicegate", "recipe", "pin", recipe, "--stack", p.name]
    return subprocess.run(command, cwd=p.folder, env=p.env, capture_output=True, text=True, timeout=120, check=False)


def config(p: Project) -> dict[str, object]:
    return dict(yaml.safe_load((p.folder / f"Pulumi.{p.name}.yaml").read_text())["config"])


def test_pinning_writes_every_pin_of_the_lock_and_keeps_comments_and_the_rest(project: Project) -> None:
    file = project.folder / f"Pulumi.{project.name}.yaml"
    file.write_text("# kept\n" + file.read_text())
    done = pin(project, "smollm2-135m/q4-ngram")
    assert done.returncode == 0, done.stderr
    assert "draftTokens none\n           -> 7" in done.stdout
    assert file.read_text().startswith("# kept\n")
    said, before = config(project), project.config
    project.use("smollm2-135m/q4-ngram")
    assert said["sluicegate:pins"] == project.config["pins"]
    assert said["sluicegate:recipe"] == "smollm2-135m/q4-ngram"
    assert said["sluicegate:machine"] == before["machine"]
    assert pin(project, "smollm2-135m/q4").returncode == 0
    assert "draftTokens" not in config(project)["sluicegate:pins"]  # type: ignore[operator] # yaml says object


def test_a_recipe_edited_since_its_lock_is_mended_by_the_command_the_error_names(project: Project) -> None:
    name = project.vary("smollm2-135m/q4", "own", {"serve.max_num_seqs": 2})
    project.use(name)
    recipe = project.folder / "recipes" / f"{name}.yaml"
    old_lock = next((project.folder / "recipes/smollm2-135m/locks").iterdir())
    recipe.write_text(recipe.read_text().replace("max_num_seqs: 2", "max_num_seqs: 3"))
    refused = project.pulumi("preview", "--stack", project.name, check=False).text
    assert f"sluicegate recipe pin {name} --stack {project.name}" in refused
    done = pin(project, name)
    assert done.returncode == 0, done.stderr
    assert old_lock.exists()
    assert project.pulumi("preview", "--stack", project.name).code == 0


@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        ("smollm2-135m/q5", "smollm2-135m/q5"),
        ("../q4", "allowed: MODEL/NAME"),
    ],
)
def test_what_cannot_be_pinned_is_one_error_and_changes_nothing(project: Project, recipe: str, said: str) -> None:
    before = config(project)
    done = pin(project, recipe)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert said in done.stderr
    assert config(project) == before
