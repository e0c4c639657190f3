"""Pulumi.<stack>.yaml: recipe and pins are written, and nothing else moves."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.recipes.faults import RecipeError
from sluicegate.recipes.stackfile import edited, project_name, read_stack, recipe_and_pins, write_whole

PINS = {"lock": "sha256:" + "1" * 64, "engine": "docker.io/a/b@sha256:" + "2" * 64, "weights": "hf:a/b@" + "3" * 40,
        "tokenizer": "hf:a/b@" + "3" * 40, "drafter": "hf:c/d@" + "4" * 40, "draftTokens": 7}  # fmt: skip
FILE = """\
# The stack of somebody.
encryptionsalt: v1:rbF4X1yUTgI=:v1:oj/bZ7dJleTUYD6J:sh6udhQ/3p5LIO5TH+0Ca0DCydfQLA==
config:
  sluicegate:cloud: local  # where
  sluicegate:recipe: a/old   # what

  # never by hand
  sluicegate:pins:
    lock: sha256:old # the seal
    engine: "x"
    gone: 1
  sluicegate:hostSetup:
    - echo 'a: b'   # first
    - "two"
  sluicegate:hfToken:
    secure: v1:abc
  aws:region: eu-north-1
  sluicegate:machine: {regions: [a, b], price: 4.50}
"""


def edit(text: str, pins: dict[str, object] | None = None) -> str:
    return edited(text.encode(), "Pulumi.x.yaml", "sluicegate", "m/new", PINS if pins is None else pins).decode()


def test_only_the_lines_of_recipe_and_pins_move() -> None:
    after = edit(FILE)
    kept = [line for line in FILE.splitlines() if "a/old" not in line and "sha256:old" not in line]
    kept = [line for line in kept if line not in ('    engine: "x"', "    gone: 1")]
    assert [line for line in after.splitlines() if line in kept] == kept
    assert "  sluicegate:recipe: m/new   # what\n" in after
    assert recipe_and_pins(yaml.safe_load(after), "sluicegate") == ("m/new", PINS)
    assert list(yaml.safe_load(after)["config"]["sluicegate:pins"]) == list(PINS)
    assert edit(after) == after


def test_pins_go_with_the_drafter() -> None:
    few = {k: v for k, v in PINS.items() if not k.startswith("draft")}
    after = edit(edit(FILE), few)
    assert yaml.safe_load(after)["config"]["sluicegate:pins"] == few
    assert edit(after) == edit(FILE)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# only words\n",
        "config:\n",
        "config: {}\n",
        "config:\n    sluicegate:cloud: local\n    sluicegate:list:\n        - a\n        - b: 1\n",
        "config:\n  sluicegate:list:\n  - a\n  - b\n  sluicegate:pins: null\n",
        "config:\n  other:recipe: theirs\n",
        "encryptionsalt: x\r\nconfig:\r\n  sluicegate:cloud: local\r\n",
        "config:\n  sluicegate:pins: {lock: a, engine: b}\n",
        "config:\n  sluicegate:pins: [1]\n",
    ],
)
def test_every_form_of_file_is_added_to_and_says_the_rest_as_before(text: str) -> None:
    after = edit(text)
    said, before = yaml.safe_load(after), yaml.safe_load(text) or {}
    assert recipe_and_pins(said, "sluicegate") == ("m/new", PINS)
    for key, value in (before.get("config") or {}).items():
        assert key == "sluicegate:pins" or said["config"][key] == value
    lines = [line for line in text.splitlines(keepends=True) if "pins" not in line and "{}" not in line]
    assert [line for line in after.splitlines(keepends=True) if line in lines] == lines
    assert edit(after) == after


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: &a [x, x]\nb: [*a, *a]", "without aliases"),
        ("<<<<<<< HEAD\nconfig:\n=======\n", "valid YAML"),
        ("config: [1]\n", "a map under `config`"),
        ("- a\n", "a map"),
        ("config:\n  a: 1\n  a: 2\n", "each key once"),
        ("config:\n\ta: 1\n", "valid YAML"),
        ("config: {a: 1\n", "valid YAML"),
        ("[" * 5000, "shallower nesting"),
        ("x: !!python/object/apply:os.system [x]", "valid YAML"),
    ],
)
def test_a_file_that_is_none_is_one_clear_line(text: str, said: str) -> None:
    with pytest.raises(RecipeError) as caught:
        edit(text)
    assert said in str(caught.value)
    assert str(caught.value).startswith("Pulumi.x.yaml: ")
    assert len(str(caught.value).splitlines()) == 1


scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=9) | st.dates().map(str)
maps = st.dictionaries(st.text(min_size=1, max_size=6), scalars | st.lists(scalars, max_size=3), max_size=4)


@settings(deadline=None)
@given(config=maps, style=st.sampled_from([None, True, False]), indent=st.sampled_from([2, 4]))
def test_any_config_keeps_what_it_says(config: dict[str, object], style: bool | None, indent: int) -> None:
    text = yaml.safe_dump({"config": config}, default_flow_style=style, indent=indent, allow_unicode=True)
    with contextlib.suppress(RecipeError):
        said, before = (yaml.safe_load(t)["config"] for t in (edit(text), text))
        assert {k: v for k, v in said.items() if k not in ("sluicegate:recipe", "sluicegate:pins")} == before


@settings(deadline=None)
@given(st.text(alphabet="{}[]:,-&*!?|>'\"\n\t #a1<="))
def test_junk_raises_nothing_but_a_recipe_error(text: str) -> None:
    with contextlib.suppress(RecipeError):
        edit(text)


def test_a_file_is_written_whole_with_its_rights_through_a_link_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real").mkdir()
    file, link = tmp_path / "real" / "x.yaml", tmp_path / "x.yaml"
    file.write_text("old")
    file.chmod(0o640)
    link.symlink_to(file)
    write_whole(link, b"new")
    assert (link.is_symlink(), file.read_text(), file.stat().st_mode & 0o777) == (True, "new", 0o640)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(link, b"newer")
    assert (file.read_text(), os.listdir(file.parent)) == ("new", ["x.yaml"])


def test_the_projects_name_is_what_its_keys_begin_with(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: own\nruntime: python\nconfig: dir\n")
    assert project_name(tmp_path) == "own"
    (tmp_path / "Pulumi.yaml").write_text("runtime: python\n")
    with pytest.raises(RecipeError, match="the project's name"):
        project_name(tmp_path)
    assert read_stack(tmp_path, "org/own/none") == (b"", {})
