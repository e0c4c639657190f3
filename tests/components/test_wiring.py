"""What the components register, and what feeds what. Under mocks: see mocked.py for what that cannot prove."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sluicegate.components import Deployment, DeploymentArgs, Endpoint, EndpointArgs, GpuInstance, GpuInstanceArgs
from sluicegate.provider.values import SECRET, SIG
from tests.components.config_cases import GOOD, read
from tests.components.mocked import Seen, run

CHILDREN = {
    "Deployment serve": "sluicegate-dev",
    "RandomId serve-id": "serve",
    "WeightCache serve-cache": "serve",
    "Volume serve-cache": "serve-cache",
    "GpuInstance serve-0-gpu": "serve",
    "Machine serve-0-gpu": "serve-0-gpu",
    "EngineContainer serve-0-engine": "serve",
    "Engine serve-0-engine": "serve-0-engine",
    "Endpoint serve-endpoint": "serve",
    "RandomPassword serve-endpoint-key": "serve-endpoint",
    "Front serve-endpoint": "serve-endpoint",
}


def deployed(folder: Path, *, preview: bool = False, api_key: Any = None, **config: Any) -> Seen:
    settings = read(GOOD | config, folder)
    return run(lambda: Deployment("serve", DeploymentArgs(settings=settings, api_key=api_key)).outputs, preview=preview)


def test_a_deployment_is_these_resources_under_these_names_and_parents(tmp_path: Path) -> None:
    seen = deployed(tmp_path)
    assert {name: request.parent.rpartition("::")[2] for name, request in seen.requests.items()} == CHILDREN


def test_nothing_is_protected_or_deleted_with_another(tmp_path: Path) -> None:
    for request in deployed(tmp_path, hostSetup=["true"]).requests.values():
        assert not request.protect
        assert not request.deletedWith
        assert not request.retainOnDelete


def test_each_resource_waits_for_what_feeds_it(tmp_path: Path) -> None:
    seen = deployed(tmp_path)
    assert seen.needs("Machine serve-0-gpu") == {"serve-id", "serve-cache"}
    assert seen.needs("Engine serve-0-engine") == {"serve-0-gpu"}
    assert seen.needs("Front serve-endpoint") == {"serve-0-gpu", "serve-0-engine", "serve-endpoint-key"}


def test_the_engine_gets_pins_argv_and_env_in_plain_so_that_a_diff_is_a_line_each(tmp_path: Path) -> None:
    locked = read(GOOD, tmp_path).locked
    inputs = deployed(tmp_path).inputs("Engine serve-0-engine")
    assert inputs["pins"] == locked.pins.as_config()
    assert inputs["argv"] == list(locked.lock.argv)
    assert inputs["env"] == locked.lock.env
    assert inputs["lockFile"] == str(locked.lock_path)
    assert Path(inputs["lockFile"]).is_absolute()


def test_the_search_is_an_input_and_the_disk_size_a_wish_of_the_cache(tmp_path: Path) -> None:
    seen = deployed(tmp_path, machine={"regions": ["a"], "maxPrice": 5}, cache={"sizeGb": 3, "keep": False})
    machine, volume = seen.inputs("Machine serve-0-gpu"), seen.inputs("Volume serve-cache")
    assert machine["search"] == {"regions": ["a"], "markets": [], "maxPrice": 5}
    assert (machine["stack"], machine["stackId"], machine["claim"]) == ("sluicegate.dev", "0badc0de", "serve-cache")
    assert (volume["sizeGb"], volume["keep"], volume["name"]) == (3, False, "serve-cache")


def test_what_is_not_set_is_no_input_at_all(tmp_path: Path) -> None:
    seen = deployed(tmp_path)
    assert not {"domain", "port"} & set(seen.inputs("Front serve-endpoint"))
    assert not {"price", "root"} & set(seen.inputs("Machine serve-0-gpu"))


def test_a_relative_root_is_one_place_whatever_folder_pulumi_runs_in(tmp_path: Path) -> None:
    seen = deployed(tmp_path, machine={"root": "data"})
    for name in ("Machine serve-0-gpu", "Volume serve-cache"):
        assert seen.inputs(name)["root"] == str(tmp_path / "data")


def test_a_key_is_made_once_and_anew_when_the_rotation_changes(tmp_path: Path) -> None:
    seen = deployed(tmp_path, endpoint={"keyRotation": 2})
    made = seen.inputs("RandomPassword serve-endpoint-key")
    assert made == {"length": 40, "special": False, "keepers": {"rotation": "2"}}
    assert seen.inputs("Front serve-endpoint")["apiKey"] == {SIG: SECRET, "value": "made-by-random"}


def test_a_given_key_is_used_as_it_is_and_none_is_made(tmp_path: Path) -> None:
    seen = deployed(tmp_path, api_key="plain-by-mistake-1")
    assert not any(name.startswith("RandomPassword") for name in seen.requests)
    assert seen.inputs("Front serve-endpoint")["apiKey"] == {SIG: SECRET, "value": "plain-by-mistake-1"}


def test_the_key_is_the_only_secret_and_leaves_as_one(tmp_path: Path) -> None:
    seen = deployed(tmp_path)
    secret = [name for name in seen.requests if SIG in str(seen.requests[name].object)]
    assert secret == ["Front serve-endpoint"]

    def program() -> dict[str, Any]:
        args = EndpointArgs(host={}, upstream="current.sock", model="m", api_key="0123456789abcdef")
        return {"secret": Endpoint("e", args).api_key.is_secret()}

    assert run(program).outputs["secret"] is True


def test_host_steps_run_one_after_the_other_before_the_engine_and_again_on_a_new_machine(tmp_path: Path) -> None:
    seen = deployed(tmp_path, hostSetup=["echo one", "echo two", "echo three"])
    names = [f"Command serve-0-gpu-setup-{i}" for i in range(3)]
    assert [seen.inputs(name)["create"] for name in names] == ["echo one", "echo two", "echo three"]
    assert all(seen.inputs(name)["triggers"] == ["local-1"] for name in names)
    assert "serve-0-gpu" in seen.needs(names[0])
    assert "serve-0-gpu-setup-0" in seen.needs(names[1])
    assert "serve-0-gpu-setup-1" in seen.needs(names[2])
    assert {f"serve-0-gpu-setup-{i}" for i in range(3)} <= seen.needs("Engine serve-0-engine")
    assert all("triggers[*]" in seen.requests[name].replaceOnChanges for name in names)


@pytest.mark.parametrize(("one_at_a_time", "said"), [(True, True), (False, False)])
def test_only_one_at_a_time_gives_the_machine_back_first(one_at_a_time: bool, said: bool) -> None:
    args = GpuInstanceArgs(
        cloud="local",
        stack="p.s",
        stack_id="i",
        gpu={"type": "cpu", "count": 1},
        claim="c",
        one_at_a_time=one_at_a_time,
    )
    request = run(lambda: {"zone": GpuInstance("g", args).zone}).requests["Machine g"]
    assert (request.deleteBeforeReplace, request.deleteBeforeReplaceDefined) == (said, said)


def test_the_outputs_are_those_of_the_contract(tmp_path: Path) -> None:
    outputs = deployed(tmp_path, machine={"price": 4.5}).outputs
    assert set(outputs) == {
        "url", "model", "api_key", "lock", "recipe", "pins", "accepted", "phases", "hourly_price", "attempts",
        "last_healthy", "record",
    }  # fmt: skip
    assert (outputs["url"], outputs["model"], outputs["api_key"]) == (
        "http://127.0.0.1:1",
        "smollm2-135m",
        "made-by-random",
    )
    assert (outputs["accepted"], outputs["hourly_price"]) == ("trial", 4.5)
    assert deployed(tmp_path).outputs["hourly_price"] is None
