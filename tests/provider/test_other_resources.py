"""Front, Machine and Volume against a scripted host: what stays in the outputs, what is told, what is gone.

How a machine is made, adopted, replaced and ended is in `clouds/contract.py`.
"""

from __future__ import annotations

from typing import Any

import pytest

from sluicegate.components.sections import DOMAIN as SETTINGS_DOMAIN
from sluicegate.components.sections import PATH as SETTINGS_PATH
from sluicegate.provider import front
from sluicegate.provider.resource import FailedError, InitFailedError, Run, UnreachableError
from sluicegate.provider.schema import form_faults
from sluicegate.provider.values import UNKNOWN
from tests.provider.fake_host import FAILED, GONE, HOST, STATUS, FakeCloud, FakeHost
from tests.provider.resource_cases import BY_NAME, INPUTS, KEY, OUTPUTS

VOLUME, MACHINE, FRONT = BY_NAME["Volume"], BY_NAME["Machine"], BY_NAME["Front"]
RUN = Run("urn")
LOOPBACK = {k: v for k, v in INPUTS["Front"].items() if k not in ("domain", "port")}
UNREACHABLE = UnreachableError("no route")


def without(values: dict[str, Any], *names: str) -> dict[str, Any]:
    return {k: v for k, v in values.items() if k not in names}


# --- an optional input that is taken out ---


def test_a_domain_and_a_port_that_were_taken_out_are_gone_from_the_outputs(host: FakeHost) -> None:
    outputs = FRONT.update(RUN, "id", OUTPUTS["Front"], LOOPBACK)
    assert not {"domain", "port"} & set(outputs)
    assert outputs["token"] == "tok"
    (spec,) = (spec for verb, spec in host.asked if verb == "front")
    assert (spec["domain"], spec["port"], spec["token"]) == (None, None, "tok")


@pytest.mark.usefixtures("cloud")
def test_a_root_that_was_taken_out_leaves_the_disk_of_before_in_the_claim() -> None:
    outputs = VOLUME.update(RUN, "id", OUTPUTS["Volume"], without(INPUTS["Volume"], "root"))
    assert "root" not in outputs
    assert outputs["disks"] == [{"where": "/r"}, {"where": "/default"}]


# --- previews ---


@pytest.mark.parametrize(
    ("old", "new", "url"),
    [
        ({}, {"domain": "a.org"}, "https://a.org"),
        ({}, {"port": 9}, "http://127.0.0.1:9"),
        ({}, {}, "http://127.0.0.1:7"),
        ({"port": 7}, {}, "http://127.0.0.1:7"),
        ({}, {"host": UNKNOWN}, UNKNOWN),
        ({}, {"host": HOST | {"root": "/new"}}, UNKNOWN),
        ({"domain": "a.org"}, {}, UNKNOWN),
        ({}, {"domain": UNKNOWN}, UNKNOWN),
        ({}, {"port": UNKNOWN}, UNKNOWN),
        ({"url": None}, {}, UNKNOWN),
    ],
)
def test_a_preview_says_the_url_only_when_it_is_sure(old: dict[str, Any], new: dict[str, Any], url: Any) -> None:
    before = LOOPBACK | {"url": "http://127.0.0.1:7", "token": "tok"} | old
    assert FRONT.preview(RUN, before, LOOPBACK | new)["url"] == url


def test_a_first_preview_says_what_config_says() -> None:
    assert FRONT.preview(RUN, None, LOOPBACK)["url"] is UNKNOWN
    assert FRONT.preview(RUN, None, LOOPBACK | {"domain": "a.org"})["url"] == "https://a.org"
    assert VOLUME.preview(RUN, None, INPUTS["Volume"])["disks"] is UNKNOWN
    assert MACHINE.preview(RUN, None, INPUTS["Machine"])["host"] is UNKNOWN


def test_a_moved_data_folder_is_no_known_disk_in_a_preview() -> None:
    assert VOLUME.preview(RUN, OUTPUTS["Volume"], INPUTS["Volume"])["disks"] == [{"where": "/r"}]
    assert VOLUME.preview(RUN, OUTPUTS["Volume"], INPUTS["Volume"] | {"root": "/new"})["disks"] is UNKNOWN


# --- failures ---


def test_a_front_that_has_its_new_key_and_does_not_answer_says_so_in_the_outputs(host: FakeHost) -> None:
    host.jobs["front"] = FAILED | {"result": "failed", "cause": {"kind": "front", "text": "no\ncompletion"}}
    new = INPUTS["Front"] | {"apiKey": "another-key-0123456789"}
    with pytest.raises(InitFailedError, match=r"the front does not serve: no completion\.") as caught:
        FRONT.update(RUN, "id", OUTPUTS["Front"], new)
    assert caught.value.outputs == new | {"url": OUTPUTS["Front"]["url"], "token": "tok"}


def test_a_front_that_changed_nothing_yet_fails_plainly(host: FakeHost) -> None:
    host.jobs["front"] = FAILED | {"cause": {"kind": "network", "text": "no route"}, "changed": False}
    with pytest.raises(FailedError):
        FRONT.update(RUN, "id", OUTPUTS["Front"], INPUTS["Front"])


def test_a_front_that_fails_on_a_new_machine_leaves_the_old_ones_state(cloud: FakeCloud) -> None:
    cloud.hosts["/new"].jobs["front"] = FAILED | {"cause": {"kind": "front", "text": "x"}}
    with pytest.raises(FailedError):
        FRONT.update(RUN, "id", OUTPUTS["Front"], INPUTS["Front"] | {"host": HOST | {"root": "/new"}})


@pytest.mark.parametrize("answer", [FAILED | {"cause": None}, UNREACHABLE, GONE])
def test_a_first_front_that_does_not_open_is_in_the_state_without_a_url(answer: Any, host: FakeHost) -> None:
    host.jobs["front"] = answer
    with pytest.raises(InitFailedError) as caught:
        FRONT.create(RUN, INPUTS["Front"])
    assert caught.value.outputs["url"] is None


def test_a_front_asked_to_stop_before_it_began_touches_nothing(host: FakeHost) -> None:
    stopped = Run("urn")
    stopped.cancel.set()
    with pytest.raises(FailedError, match="nothing was touched"):
        FRONT.update(stopped, "id", OUTPUTS["Front"], INPUTS["Front"])
    assert host.jobs == {}


# --- read and delete ---


def test_a_machine_is_gone_when_the_place_says_so_and_never_when_it_is_silent(host: FakeHost) -> None:
    for there, gone in (({"token": "tok"}, False), ({"token": "another"}, True), (None, True)):
        host.answers["claimed"] = {"machine": there}
        assert (MACHINE.read(RUN, "id", {}, OUTPUTS["Machine"]) is None) is gone
    for error in (GONE, UNREACHABLE):
        host.answers["claimed"] = error
        with pytest.raises(UnreachableError):
            MACHINE.read(RUN, "id", {}, OUTPUTS["Machine"])


def test_a_front_is_healthy_sick_gone_or_not_to_be_told(host: FakeHost) -> None:
    out = OUTPUTS["Front"]
    assert FRONT.read(RUN, "id", {}, out) == out
    for gone in ({"machine": None}, {"front": None}, {"front": STATUS["front"] | {"token": "x"}}):
        host.answers["status"] = STATUS | gone
        assert FRONT.read(RUN, "id", {}, out) is None
    host.answers["status"] = STATUS | {"front": {"token": "tok", "healthy": False, "why": "502"}}
    with pytest.raises(InitFailedError, match="502"):
        FRONT.read(RUN, "id", {}, out)
    for error in (GONE, UNREACHABLE):
        host.answers["status"] = error
        with pytest.raises(UnreachableError):
            FRONT.read(RUN, "id", {}, out)


@pytest.mark.parametrize(("done", "lines"), [(True, 0), (False, 1)])
def test_a_delete_of_what_another_claim_holds_is_a_success_that_says_so(done: bool, lines: int, host: FakeHost) -> None:
    said: list[str] = []
    host.answers["deactivate"] = {"done": done}
    MACHINE.delete(Run("urn", log=lambda text, _: said.append(text)), "id", OUTPUTS["Machine"])
    assert host.asked == [("deactivate", {"what": "machine", "token": "tok"})]
    assert len(said) == lines


@pytest.mark.usefixtures("cloud")
@pytest.mark.parametrize(
    ("keep", "word"), [(True, "kept the cache at /r"), (False, "removed 1 cached sources from /r")]
)
def test_the_end_of_a_claim_says_what_became_of_its_disk(keep: bool, word: str) -> None:
    said: list[str] = []
    VOLUME.delete(Run("urn", log=lambda text, _: said.append(text)), "id", OUTPUTS["Volume"] | {"keep": keep})
    assert said[0].startswith(word)


# --- checks ---

FORM = [
    ("Volume", {"sizeGb": None}, "sizeGb", "missing; expected a number"),
    ("Volume", {"sizeGb": "2"}, "sizeGb", "expected a number, found a string"),
    ("Volume", {"keep": 1}, "keep", "expected a boolean, found a number"),
    ("Volume", {"sizegb": 2}, "sizegb", "unknown; allowed: cloud, keep, name, root, sizeGb, throughput"),
    ("Machine", {"gpu": ["cpu"]}, "gpu", "expected a object, found a array"),
    ("Engine", {"retry": 1.5}, "retry", "expected a integer, found a number"),
    ("Engine", {"retry": True}, "retry", "expected a integer, found a boolean"),
    ("Front", {"apiKey": 12345678901234567}, "apiKey", "expected a string, found a number"),
]


@pytest.mark.parametrize(("name", "change", "key", "reason"), FORM)
def test_an_input_of_a_wrong_form_is_named(name: str, change: dict[str, Any], key: str, reason: str) -> None:
    assert form_faults(BY_NAME[name], INPUTS[name] | change) == [(key, reason)]


@pytest.mark.parametrize("name", list(BY_NAME))
def test_good_inputs_and_wholly_unknown_ones_have_no_fault(name: str) -> None:
    for inputs in (INPUTS[name], dict.fromkeys(INPUTS[name], UNKNOWN)):
        assert form_faults(BY_NAME[name], inputs) == []
        assert BY_NAME[name].check(inputs) == []


VALUES = [
    ("Volume", {"sizeGb": 0}, "sizeGb"), ("Machine", {"gpu": {"type": "H100", "count": 1}}, "gpu.type"),
    ("Engine", {"pins": {"lock": 1, "engine": "e", "weights": "w"}}, "pins.lock"),
    ("Engine", {"gateDeadlineS": 0}, "gateDeadlineS"), ("Engine", {"retry": -1}, "retry"),
    ("Front", {"apiKey": "short"}, "apiKey"), ("Front", {"apiKey": "x" * 16 + " y"}, "apiKey"),
    ("Front", {"paths": []}, "paths"), ("Front", {"paths": ["/a b"]}, "paths"), ("Front", {"paths": [1]}, "paths"),
    ("Front", {"domain": "a b"}, "domain"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "change", "key"), VALUES)
def test_a_value_that_cannot_work_is_named(name: str, change: dict[str, Any], key: str) -> None:
    assert [found for found, _ in BY_NAME[name].check(INPUTS[name] | change)] == [key]


def test_a_gpu_that_is_not_known_yet_is_no_fault() -> None:
    assert MACHINE.check(INPUTS["Machine"] | {"gpu": {"type": UNKNOWN, "count": 1}}) == []


def test_a_refused_key_is_not_repeated() -> None:
    assert "hunter two" not in str(FRONT.check(INPUTS["Front"] | {"apiKey": "hunter two"}))
    assert FRONT.check(INPUTS["Front"] | {"apiKey": KEY}) == []


def test_the_front_and_the_settings_hold_paths_and_domains_against_the_same_rules() -> None:
    assert f"^{front.PATH.pattern}$" == SETTINGS_PATH
    assert f"^{front.DOMAIN.pattern.removeprefix('(?=.{1,253}$)')}$" == SETTINGS_DOMAIN
