"""Wrong config at the real command line: refused before anything is registered, in one message that can be acted on."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.components.projects import Project


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("config"))


ODD_KEYS = ("wieghts", "a.b", "a", "a[0]", 'say "no"', "it's", "$(id)", "a: b", "")


def previewed(project: Project) -> str:
    done = project.run("preview")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_committed_dev_stack_previews_whole_and_knows_lock_and_pins(project: Project) -> None:
    project.write()
    said = project.run("preview", "--json")
    assert said.returncode == 0, said.stdout + said.stderr
    steps = {s["urn"].rpartition("$")[2] or s["urn"]: s for s in json.loads(said.stdout)["steps"]}
    ours = [name for name in steps if name.startswith("sluicegate:index:")]
    assert {name.partition("::")[2] for name in ours} >= {
        "serve-cache",
        "serve-0-gpu",
        "serve-0-engine",
        "serve-endpoint",
    }
    assert all(step["op"] == "create" for step in steps.values())
    engine = steps["sluicegate:index:Engine::serve-0-engine"]["newState"]
    assert engine["inputs"]["pins"] == project.dev["config"]["sluicegate:pins"]
    front = steps["sluicegate:index:Front::serve-endpoint"]["newState"]["inputs"]
    # Known before anything is there, as the engine's preview says it: a change of pins is then no change of the front.
    assert front["upstream"] == "current.sock"


def test_a_wrong_config_fails_before_any_resource_with_all_faults_and_no_trace(project: Project) -> None:
    project.write(
        cloud="moon", recipie="x", cache={"sizeGb": "2 GB"}, endpoint={"paths": ["v1 {x}"]}, apiKey="IN-CLEAR-KEY"
    )
    done = project.run("preview")
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert "Traceback" not in said
    assert "IN-CLEAR-KEY" not in said
    assert said.count("stack dev cannot be deployed: 5 faults in its config") >= 1
    diagnostics = said[said.index("Diagnostics:") :]
    for key in ("cloud", "recipie", "cache.sizeGb", "endpoint.paths[0]", "apiKey"):
        assert len(re.findall(rf"^\s+{re.escape(key)}: found .*; allowed: .*; to mend: .*$", diagnostics, re.M)) == 1
    assert "sluicegate:index:" not in said
    assert "random:" not in said


def test_the_commands_of_the_message_mend_the_config(project: Project) -> None:
    project.write(
        cloud="moon", recipie="x", acceptance="sometimes", cache={"sizeGb": 2, "a.b": 1},
        endpoint={"retry": -1, "foo": 1}, machine={"maxPrice": "dear", "root": ".data"},
        pins=project.dev["config"]["sluicegate:pins"] | dict.fromkeys(ODD_KEYS, "x"),
        **{"so.so": "x", "so[0]": "x"},
    )  # fmt: skip
    said = project.run("preview").stdout
    mends = re.findall(r"to mend: (pulumi config (?:set|rm).*)$", said, re.M)
    assert len(mends) == 9 + len(ODD_KEYS)
    for mend in mends:
        command = mend.replace("VALUE", "1").replace("COMMAND", "true")
        done = project.run(shell=command)
        assert done.returncode == 0, (command, done.stderr)
    previewed(project)


@pytest.mark.parametrize(
    ("key", "value", "kind"),
    [("endpoint", "hello", "object"), ("cache", [1], "object"), ("recipe", {"a": 1}, "string"),
     ("hostSetup", "x", "array<string>"), ("hostSetup", [1], "array<string>")],
)  # fmt: skip
def test_a_wrong_type_of_a_whole_key_is_pulumis_own_error(key: str, value: object, kind: str, project: Project) -> None:
    project.write(**{key: value})
    done = project.run("preview")
    assert done.returncode != 0
    assert f"'{key}' must be of type '{kind}'" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_a_secret_key_is_taken_and_never_shown(project: Project) -> None:
    project.write()
    assert project.run("config", "set", "--secret", "apiKey", "a-key-of-my-own-0123").returncode == 0
    said = previewed(project)
    assert "a-key-of-my-own-0123" not in said
    assert "RandomPassword" not in said


def test_a_secret_key_that_is_none_is_refused_by_the_preview_without_its_value(project: Project) -> None:
    project.write()
    assert project.run("config", "set", "--secret", "apiKey", "short key").returncode == 0
    done = project.run("preview")
    assert done.returncode != 0
    assert "16 or more printable ASCII characters" in done.stdout + done.stderr
    assert "short key" not in done.stdout + done.stderr


def test_a_misspelt_secret_is_refused_without_its_value(project: Project) -> None:
    project.write()
    assert project.run("config", "set", "--secret", "myThing", "hidden-value-77").returncode == 0
    done = project.run("preview")
    assert "myThing: found '[not shown]'" in done.stdout + done.stderr
    assert "hidden-value-77" not in done.stdout + done.stderr


def test_the_marks_of_a_merge_in_the_stack_file_are_an_error_without_a_trace(project: Project) -> None:
    project.write()
    path = project.folder / "Pulumi.dev.yaml"
    path.write_text(f"<<<<<<< HEAD\n{path.read_text()}=======\n>>>>>>> other\n")
    done = project.run("preview")
    assert done.returncode != 0
    assert "invalid YAML file" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_an_edited_recipe_is_refused_with_the_command_that_pins_it(project: Project) -> None:
    project.write()
    recipe = project.folder / "recipes" / "smollm2-135m" / "q4.yaml"
    before = recipe.read_text()
    try:
        recipe.write_text(before + "# edited\n")
        done = project.run("preview")
    finally:
        recipe.write_text(before)
    assert done.returncode != 0
    assert "recipe changed since its lock: run `sluicegate recipe pin smollm2-135m/q4 --stack dev`" in done.stdout


def test_a_preview_leaves_nothing_but_the_state(project: Project) -> None:
    project.write()
    previewed(project)
    left = {path.name for path in Path(project.folder).iterdir()}
    assert left <= {"Pulumi.yaml", "Pulumi.dev.yaml", "__main__.py", "recipes", "state", "__pycache__"}
