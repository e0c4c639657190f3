"""What stack config may say: each wrong value is refused with its key, the value, what is allowed and the mend."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from sluicegate.components.sections import CacheSettings, EndpointSettings, MachineSettings
from sluicegate.components.settings import KEYS, SECRETS, SettingsError
from tests.components.config_cases import GOOD, NAME, PINS, faults, message, read
from tests.recipes.recipe_cases import SHIPPED, ZEROS, shipped_lock

ROOT = Path(__file__).parents[2]
SET = "pulumi config set"
PIN = f"run `sluicegate recipe pin {NAME} --stack dev`"


def test_a_good_config_is_read_whole(tmp_path: Path) -> None:
    config: dict[str, Any] = GOOD | {
        "machine": {"maxPrice": 5, "replace": "one-at-a-time", "root": "data"},
        "cache": {"sizeGb": 2, "keep": False},
        "endpoint": {"domain": "llm.example.org", "paths": ["/v1/*", "/metrics"], "holdS": 0, "gateDeadlineS": 1200.0},
        "hostSetup": ["true"],
        "apiKey": "k" * 20,
    }
    found = read(config, tmp_path, {"apiKey"})
    assert (found.locked.recipe_name, found.cloud, found.runtime) == (NAME, "local", "process")
    assert (found.machine.max_price, found.machine.replace, found.machine.root) == (5, "one-at-a-time", "data")
    assert (found.cache.size_gb, found.cache.keep) == (2, False)
    assert (found.endpoint.paths, found.endpoint.hold_s) == (("/v1/*", "/metrics"), 0)
    assert found.endpoint.gate_deadline_s == 1200
    assert (found.host_setup, found.own_key, found.accepted) == (("true",), True, False)


def test_a_rotation_may_be_a_number_as_yaml_makes_one_of_it(tmp_path: Path) -> None:
    for rotation in (2, "2"):
        assert read(GOOD | {"endpoint": {"keyRotation": rotation}}, tmp_path).endpoint.key_rotation == "2"


def test_keys_of_other_projects_are_none_of_ours(tmp_path: Path) -> None:
    from sluicegate.components.settings import load

    raw = {f"sluicegate:{k}": v if isinstance(v, str) else json.dumps(v) for k, v in GOOD.items()}
    assert load("dev", "sluicegate", tmp_path, raw | {"aws:region": "x", "other:recipe": "y"}, set()).cloud == "local"


def test_nothing_set_names_what_is_required_each_with_its_command(tmp_path: Path) -> None:
    assert faults({}, tmp_path) == {
        "cloud": ("nothing", "local in this version", f"{SET} sluicegate:cloud local --stack dev"),
        "runtime": ("nothing", "process in this version", f"{SET} sluicegate:runtime process --stack dev"),
        "recipe": ("nothing", "the name of a recipe, as smollm2-135m/q4", f"{SET} sluicegate:recipe NAME --stack dev"),
    }


WRONG: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("wrong_config.yaml").read_text())


@pytest.mark.parametrize("case", WRONG, ids=lambda case: json.dumps(case["set"])[:60])
def test_one_wrong_value_is_one_fault(case: dict[str, Any], tmp_path: Path) -> None:
    pins = case["set"].get("pins")
    found = faults(GOOD | case["set"] | ({"pins": PINS | pins} if isinstance(pins, dict) else {}), tmp_path)
    key = case["key"]
    assert set(found) == {key, case.get("also", key)}
    for said, part in zip(found[key], (case["value"], case["allowed"], case["mend"]), strict=True):
        assert part in said


@pytest.mark.parametrize(
    "path", ["v1/*", "", "/v1 /x", "/{x}", '/"', "/`", "/'", "/v1/*\n}", "/a\\b", "/ä", "/<a>", "/#"]
)
def test_a_path_that_is_none_in_the_fronts_configuration_is_refused(path: str, tmp_path: Path) -> None:
    assert set(faults(GOOD | {"endpoint": {"paths": ["/v1/*", path]}}, tmp_path)) == {"endpoint.paths[1]"}


@pytest.mark.parametrize(
    "domain",
    ["", "LLM.example.org", "a..b", ".a", "a.", "a b", "https://a.org", "a.org/x", "a.org:1", "10.0.0.1",
     "-a.org", "a-.org", "*.a.org", "a_b.org", "{$HOME}", "a.org\n", f"{'a' * 64}.org", ".".join(["a" * 60] * 5)],
)  # fmt: skip
def test_a_domain_that_is_no_host_name_is_refused(domain: str, tmp_path: Path) -> None:
    assert set(faults(GOOD | {"endpoint": {"domain": domain}}, tmp_path)) == {"endpoint.domain"}


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_what_is_no_finite_number_is_refused(number: str, tmp_path: Path) -> None:
    assert set(faults(GOOD | {"cache": f'{{"sizeGb": {number}}}'}, tmp_path)) == {"cache.sizeGb"}


def test_a_recipe_edited_since_its_lock_says_which_command_and_which_stack(tmp_path: Path) -> None:
    shutil.copytree(SHIPPED / "smollm2-135m", tmp_path / "recipes" / "smollm2-135m")
    recipe = tmp_path / "recipes" / f"{NAME}.yaml"
    recipe.write_text(recipe.read_text() + "# a remark\n")
    found = faults(GOOD, tmp_path)
    assert list(found) == ["recipe"]
    assert f"recipe changed since its lock: {PIN}" in found["recipe"][1]


def test_a_recipe_with_the_marks_of_a_merge_is_refused_with_its_line(tmp_path: Path) -> None:
    shutil.copytree(SHIPPED / "smollm2-135m", tmp_path / "recipes" / "smollm2-135m")
    recipe = tmp_path / "recipes" / f"{NAME}.yaml"
    recipe.write_text(f"<<<<<<< HEAD\n{recipe.read_text()}=======\n>>>>>>> b\n")
    assert "valid YAML (line" in faults(GOOD, tmp_path)["recipe"][1]


def test_required_acceptance_deploys_with_the_record_of_this_lock_and_no_other(tmp_path: Path) -> None:
    shutil.copytree(SHIPPED / "smollm2-135m", tmp_path / "recipes" / "smollm2-135m")
    stem = shipped_lock(NAME).stem
    record = tmp_path / "recipes" / "smollm2-135m" / "accepted" / f"{stem}-cpux1.json"
    record.parent.mkdir()
    required = GOOD | {"acceptance": "required"}
    for other in ("", "[]", json.dumps({"lock": f"sha256:{ZEROS}"})):
        record.write_text(other)
        assert set(faults(required, tmp_path)) == {"acceptance"}
    record.write_text(json.dumps({"schema": 1, "lock": PINS["lock"]}))
    assert read(required, tmp_path).accepted


def test_pins_are_judged_even_when_the_recipe_is_missing(tmp_path: Path) -> None:
    found = faults({k: v for k, v in GOOD.items() if k != "recipe"} | {"pins": PINS | {"engine": "a:latest"}}, tmp_path)
    assert set(found) == {"recipe", "pins.engine"}


def test_all_faults_come_in_one_message_and_no_secrets_value_does(tmp_path: Path) -> None:
    config = {
        "recipe": NAME, "cloud": "moon", "runtime": "x", "acceptance": "y", "pins": PINS | {"engine": "a:b", "foo": 1},
        "machine": {"price": -1, "token": "SECRET-1"}, "cache": {"keep": "yes"}, "hostSetup": [0],
        "endpoint": {"paths": "/v1/*", "holdS": 1.5, "tls": {"privateKey": "SECRET-2"}}, "apikey": "SECRET-3",
        "apiKey": "SECRET-4-0123456789", "hfToken": "SECRET-5", "registryAuth": "SECRET-6", "api_key": "SECRET-7",
        "ssh": "SECRET-8", "sshKey": "SECRET-9", "renamed": "SECRET-10",
    }  # fmt: skip
    found = faults(config, tmp_path, {"apiKey", "hfToken", "renamed"})
    assert set(found) == {
        "cloud", "runtime", "acceptance", "pins.engine", "pins.foo", "machine.price", "machine.token", "cache.keep",
        "hostSetup", "endpoint.paths", "endpoint.holdS", "endpoint.tls", "apikey", "registryAuth", "api_key", "ssh",
        "sshKey", "renamed",
    }  # fmt: skip
    assert "SECRET" not in message(config, tmp_path, {"apiKey", "hfToken", "renamed"})


def test_a_section_with_a_secret_inside_is_shown_by_its_keys_only(tmp_path: Path) -> None:
    config = GOOD | {"endpoint": {"port": "SECRET-1"}, "pins": PINS | {"engine": "SECRET-2"}}
    found = faults(config, tmp_path, {"endpoint", "pins"})
    assert {key: value for key, (value, _, _) in found.items()} == {
        "endpoint": "'[not shown]'",  # a secret has no place in either
        "endpoint.port": "'[not shown]'",
        "pins": "'[not shown]'",
    }


def test_a_secret_under_a_key_with_dots_or_in_a_map_under_one_is_not_shown(tmp_path: Path) -> None:
    config = GOOD | {"my.thing": "SECRET-1", "cache": {"a.b": "SECRET-2"}, "machine": {"my.token": "SECRET-3"}}
    found = faults(config, tmp_path, {"my.thing", "cache"})
    assert {"my.thing", 'cache["a.b"]', 'machine["my.token"]'} <= set(found)
    assert "SECRET" not in message(config, tmp_path, {"my.thing", "cache"})


def test_a_number_may_be_text_as_pulumi_config_set_makes_one_of_it(tmp_path: Path) -> None:
    settings = read(GOOD | {"machine": {"price": "0.5"}, "endpoint": {"keyOverlapS": "0"}}, tmp_path)
    assert (settings.machine.price, settings.endpoint.key_overlap_s) == (0.5, 0)


def test_a_key_that_the_front_would_refuse_is_refused_here_and_not_shown(tmp_path: Path) -> None:
    found = faults(GOOD | {"apiKey": "short"}, tmp_path, {"apiKey"})
    assert set(found) == {"apiKey"}
    assert "short" not in message(GOOD | {"apiKey": "short"}, tmp_path, {"apiKey"})


def test_a_secret_host_step_is_marked_as_one(tmp_path: Path) -> None:
    assert read(GOOD | {"hostSetup": ["echo x"]}, tmp_path, {"hostSetup"}).host_setup_secret
    assert not read(GOOD | {"hostSetup": ["echo x"]}, tmp_path).host_setup_secret


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
_FIELDS = [f for model in (MachineSettings, CacheSettings, EndpointSettings) for f in model.model_fields]
sections = st.dictionaries(
    st.sampled_from([EndpointSettings.model_config["alias_generator"](f) for f in _FIELDS]) | st.text(max_size=8),
    junk,
    max_size=4,
)


@hypothesis(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
@given(
    config=st.dictionaries(st.sampled_from(sorted(KEYS)) | st.text(max_size=8), junk | sections | st.text(), max_size=5)
)
def test_any_config_at_all_raises_nothing_but_a_settings_error(config: dict[str, Any], tmp_path: Path) -> None:
    with contextlib.suppress(SettingsError):
        read(GOOD | config, tmp_path)


@hypothesis(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(config=st.dictionaries(st.sampled_from(sorted(set(KEYS) - set(SECRETS))), sections, max_size=3), data=st.data())
def test_no_secrets_value_is_in_any_message(config: dict[str, Any], data: st.DataObject, tmp_path: Path) -> None:
    kept = data.draw(st.sets(st.sampled_from(SECRETS)))
    own = {key: f"MARK-{key}" for key in SECRETS}
    assert "MARK-" not in message(config | own | {"cloud": "moon"}, tmp_path, kept)


def test_nesting_without_end_is_refused_as_config(tmp_path: Path) -> None:
    assert set(faults(GOOD | {"machine": '{"a":' * 100_000}, tmp_path)) == {"machine"}


DECLARED: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())["config"]


def test_every_key_is_declared_with_type_default_and_description_and_no_other_is() -> None:
    assert {key: said["type"] for key, said in DECLARED.items()} == dict(KEYS)
    assert all(len(said["description"]) > 10 and "default" in said for said in DECLARED.values())


@pytest.mark.parametrize(
    ("key", "model"), [("machine", MachineSettings), ("cache", CacheSettings), ("endpoint", EndpointSettings)]
)
def test_a_sections_description_names_each_of_its_keys(key: str, model: Any) -> None:
    alias = model.model_config["alias_generator"]
    words = set(re.findall(r"\w+", DECLARED[key]["description"]))
    assert {alias(name) for name in model.model_fields} <= words


def test_the_declared_defaults_are_those_of_a_stack_that_sets_nothing(tmp_path: Path) -> None:
    declared = {key: said["default"] for key, said in DECLARED.items() if key not in GOOD}
    assert read(GOOD | declared, tmp_path) == read(GOOD, tmp_path)
