"""A stack's claim: whose a place is, and that its end leaves nothing."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from sluicegate.provider.host.files import read_json
from tests.provider.host.kit import Stack, pids_with, until, verb


@pytest.fixture
def claim(tmp_path: Path) -> Any:
    def make(**more: str) -> dict[str, Any]:
        spec = {"root": str(tmp_path / "root"), "stack": "p.s", "stack_id": "one", "token": "t1"}
        return dict(json.loads(verb("claim", json.dumps(spec | more))[1]))

    yield make
    there = make()
    places = {"root": there.get("root"), "run": there.get("run"), "stack": "p.s"}
    if there.get("run"):
        verb("deactivate", json.dumps({"places": places, "what": "machine", "token": "t1"}))


def note(tmp_path: Path) -> dict[str, Any]:
    there = read_json(tmp_path / "root/stacks/p.s/machine.json")
    assert there
    return there


def ended(there: dict[str, Any], token: str) -> bool:
    places = {"root": there["root"], "run": there["run"], "stack": "p.s"}
    return bool(
        json.loads(verb("deactivate", json.dumps({"places": places, "what": "machine", "token": token}))[1])["done"]
    )


def own(there: dict[str, Any], token: str) -> dict[str, Any]:
    places = {"root": there["root"], "run": there["run"], "stack": "p.s"}
    return dict(json.loads(verb("own", json.dumps({"places": places, "token": token}))[1]))


def test_a_first_claim_makes_the_place(claim: Any, tmp_path: Path) -> None:
    there = claim()
    assert there["root"] == str(tmp_path / "root")
    assert Path(there["run"]).stat().st_mode & 0o777 == 0o700
    assert (note(tmp_path)["phase"], note(tmp_path)["token"]) == ("creating", "t1")


def test_a_claim_that_was_never_owned_is_replaced_by_the_next_one_of_the_same_stack(claim: Any, tmp_path: Path) -> None:
    claim()
    claim(token="t2")
    assert (note(tmp_path)["phase"], note(tmp_path)["token"]) == ("creating", "t2")
    assert "next" not in note(tmp_path)
    claim()


def test_a_claim_is_owned_by_its_own_token_only(claim: Any, tmp_path: Path) -> None:
    there = claim()
    refused = own(there, "another")
    assert refused["kind"] == "Foreign"
    assert "another run has taken it over; run `pulumi up --refresh`" in refused["error"]
    assert note(tmp_path)["phase"] == "creating"
    assert own(there, "t1") == {}
    assert own(there, "t1") == {}
    assert note(tmp_path)["phase"] == "owned"


def test_a_claim_on_an_owned_place_waits_until_it_is_owned_itself(claim: Any, tmp_path: Path) -> None:
    there = claim(name="m")
    own(there, "t1")
    assert claim(token="t2", name="m") == there
    assert (note(tmp_path)["token"], note(tmp_path)["phase"]) == ("t1", "owned")
    assert (note(tmp_path)["next"]["token"], note(tmp_path)["next"]["phase"]) == ("t2", "creating")
    # Nobody who was killed in between has taken anything: the owner can be marked again, and another can wait instead.
    own(there, "t1")
    claim(token="t3", name="m")
    assert own(there, "t2")["kind"] == "Foreign"
    own(there, "t3")
    assert (note(tmp_path)["token"], note(tmp_path)["phase"], note(tmp_path)["name"]) == ("t3", "owned", "m")
    assert "next" not in note(tmp_path)
    assert own(there, "t1")["kind"] == "Foreign"
    assert ended(there, "t1") is False
    assert note(tmp_path)["token"] == "t3"
    assert ended(there, "t3") is True


def test_a_claim_that_waits_is_taken_back_alone_and_goes_with_its_owner(claim: Any, tmp_path: Path) -> None:
    there = claim()
    own(there, "t1")
    claim(token="t2")
    assert ended(there, "another") is False
    assert ended(there, "t2") is True
    assert "next" not in note(tmp_path)
    assert note(tmp_path)["token"] == "t1"
    claim(token="t3")
    assert ended(there, "t1") is True
    assert not (tmp_path / "root/stacks").exists()
    assert own(there, "t3")["kind"] == "Foreign"
    assert not (tmp_path / "root/stacks").exists()


def test_the_sockets_stay_where_they_are_when_a_claim_is_taken_over_from_another_session(
    claim: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = claim()
    own(there, "t1")
    with tempfile.TemporaryDirectory(dir="/tmp") as session:
        monkeypatch.setenv("XDG_RUNTIME_DIR", session)
        assert claim()["run"] == there["run"]
        Path(there["run"]).rmdir()  # a reboot takes them all away
        assert claim()["run"].startswith(session)


def test_a_place_of_another_stack_of_that_name_is_refused_and_left_alone(claim: Any, tmp_path: Path) -> None:
    claim()
    before = note(tmp_path)
    refused = claim(stack_id="two", token="t2")
    assert refused["kind"] == "Foreign"
    assert "belongs to another stack of this name (id one" in refused["error"]
    assert note(tmp_path) == before


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"stack_id": "two"}'])
def test_a_claim_that_cannot_be_read_is_nobodys_to_take_or_end(claim: Any, tmp_path: Path, text: str) -> None:
    there = claim()
    file = tmp_path / "root/stacks/p.s/machine.json"
    before = file.read_text()
    file.write_text(text)
    assert claim()["kind"] == "Foreign"
    places = {"root": there["root"], "run": there["run"], "stack": "p.s"}
    code, out, _ = verb("deactivate", json.dumps({"places": places, "what": "machine", "token": "t1"}))
    assert (code, json.loads(out)["kind"]) == (1, "Foreign")
    assert file.read_text() == text
    file.write_text(before)


def test_a_foreign_token_ends_nothing(stack: Stack) -> None:
    spec = stack.serve()
    pid = stack.pid(spec)
    for what in ("machine", "engine", "front"):
        assert stack.ask("deactivate", what=what, token="another") == {"done": False}
    assert stack.pid(spec) == pid
    assert stack.status()["health"] == "healthy"


def test_ending_the_engine_leaves_the_claim_and_the_front_and_forgets_failures(stack: Stack) -> None:
    spec = stack.serve()
    assert stack.run("front", stack.front())["result"] == "serving"
    assert stack.activate(stack.engine("--exit-at-start", "3"))["result"] == "reverted"
    assert stack.ask("deactivate", what="engine", token=spec["token"]) == {"done": True}
    there = stack.status()
    assert (there["result"], there["health"], there["engine_owner"]) == ("down", "none", None)
    assert there["front"]["token"] == "front-token"
    assert there["machine"]["token"] == stack.token
    assert not pids_with(str(stack.places.socket(spec["digest"])))
    assert not list((stack.places.home / "releases").iterdir())
    assert not (stack.places.home / "failed").exists()
    assert stack.ask("deactivate", what="engine", token=spec["token"]) == {"done": False}


def test_the_end_of_the_claim_leaves_no_process_no_socket_and_no_folder(stack: Stack) -> None:
    spec = stack.serve("--child")
    assert stack.run("front", stack.front())["result"] == "serving"
    waiting = stack.engine("--never-ready")
    assert stack.run("prepare", waiting)["result"] == "prepared"
    stack.start("activate", waiting)
    until(lambda: stack.pid(waiting), "a job in the middle of a swap")
    assert stack.ask("deactivate", what="machine", token=stack.token) == {"done": True}
    assert not pids_with(stack.name)
    assert not pids_with(str(stack.places.run))
    for place in (stack.places.home, stack.places.run, stack.places.home.with_name(stack.name + ".lock")):
        assert not place.exists(), place
    assert stack.pid(spec) is None
    # What is gone already is a success.
    assert stack.ask("deactivate", what="machine", token=stack.token) == {"done": True}


def test_a_claim_of_before_can_be_ended_after_the_next_one_without_harm(stack: Stack) -> None:
    stack.ask("own", token=stack.token)
    spec = stack.serve()
    assert stack.run("front", stack.front())["result"] == "serving"
    claim = {"root": str(stack.places.root), "stack": stack.name, "stack_id": stack.name, "token": "the-next"}
    assert json.loads(verb("claim", json.dumps(claim))[1])["run"] == str(stack.places.run)
    stack.ask("own", token="the-next")
    pid = stack.pid(spec)
    assert stack.ask("deactivate", what="machine", token=stack.token) == {"done": False}
    assert pid
    assert stack.pid(spec) == pid
    assert (stack.status()["health"], stack.status()["front"]["healthy"]) == ("healthy", True)
    stack.token = "the-next"


def test_two_stacks_side_by_side_know_nothing_of_each_other(new_stack: Any) -> None:
    one, two = new_stack(), new_stack()
    spec, other = one.serve(), two.serve()
    assert one.ask("deactivate", what="machine", token=one.token) == {"done": True}
    assert one.pid(spec) is None
    assert two.pid(other)
    assert two.status()["health"] == "healthy"
