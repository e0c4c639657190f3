"""The contract, and what a cloud with several places adds to it, on a cloud in memory.

What that cloud cannot prove stands in `fake_cloud.py`.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from sluicegate.provider.clouds.calls import Refused
from sluicegate.provider.resource import FailedError, InitFailedError, Run, Values
from tests.provider.clouds.contract import AdapterContract
from tests.provider.clouds.fake_cloud import Places
from tests.provider.clouds.world import MACHINE, RUN, URN, Killed, World


def tried(out: Values) -> list[tuple[str, str, str]]:
    return [(a["place"], a["market"], a["outcome"]) for a in out["attempts"]]


class TestFakeCloud(AdapterContract):
    @pytest.fixture
    def new_world(self) -> Callable[[], World]:
        return Places

    # --- the search ---

    def test_places_are_asked_in_their_order_and_every_refusal_is_told_and_kept(self, world: Places) -> None:
        world.cloud.sold_out = {"zone-a": Refused("no capacity")}
        said: list[str] = []
        _, out = MACHINE.create(Run(URN, log=lambda text, _: said.append(text)), world.wish())
        assert tried(out) == [("zone-a", "on-demand", "refused"), ("zone-b", "on-demand", "accepted")]
        assert (out["attempts"][0]["reason"], out["attempts"][0]["next"]) == ("no capacity", "place")
        assert said[0] == "refused in zone-a (on-demand): no capacity"
        assert (out["zone"], out["hourlyPrice"], out["address"]) == ("zone-b", 4.75, "10.0.0.1")

    def test_when_no_place_accepts_the_error_names_them_all_and_nothing_is_left(self, world: Places) -> None:
        world.cloud.sold_out = {"zone-a": Refused("no capacity"), "zone-b": Refused("quota of 0")}
        with pytest.raises(FailedError) as caught:
            self.create(world.wish())
        lines = str(caught.value).splitlines()
        assert lines[0] == "no place has a machine with 1 x H100-80GB; none was bought."
        assert lines[1:4] == [
            "zone-a (on-demand): no capacity", "zone-b (on-demand): quota of 0", "zone-b (spot): quota of 0"
        ]  # fmt: skip
        assert lines[4].startswith("next: ")
        assert world.truth() == {}

    def test_an_empty_search_space_is_said(self, world: Places) -> None:
        with pytest.raises(FailedError, match="the search space is empty"):
            self.create(world.wish() | {"search": {"regions": ["mars"]}})

    @pytest.mark.parametrize("when", ["sold_out", "dead"])
    def test_a_refusal_that_holds_everywhere_ends_the_search(self, world: Places, when: str) -> None:
        setattr(world.cloud, when, {"zone-a": Refused("the key may not do this", "stop")})
        with pytest.raises(FailedError, match="the key may not do this"):
            self.create(world.wish())
        assert world.truth() == {}
        assert [place.zone for place in world.cloud.bought] == (["zone-a"] if when == "dead" else [])

    def test_a_machine_that_never_boots_is_given_back_and_the_next_place_asked(self, world: Places) -> None:
        world.cloud.dead = {"zone-a": Refused("taken back by the cloud")}
        out = self.create(world.wish())
        assert tried(out) == [("zone-a", "on-demand", "refused"), ("zone-b", "on-demand", "accepted")]
        assert world.truth() == {out["token"]: "owned"}
        assert world.cloud.ended == ["i-1"]

    # --- adoption ---

    def test_what_a_killed_run_left_and_what_never_boots_is_given_back_before_another_is_bought(
        self, world: Places
    ) -> None:
        assert self.killed_after(3, world.wish())
        world.cloud.dead = {"zone-a": Refused("not up after 600 s")}
        out = self.create(world.wish())
        assert [outcome for _, _, outcome in tried(out)] == ["refused", "refused", "accepted"]
        assert world.truth() == {out["token"]: "owned"}

    def test_a_superseded_machine_that_cannot_be_used_is_left_alone_as_it_may_serve(self, world: Places) -> None:
        first = self.create(world.wish())
        self.create(world.other_wish())
        world.cloud.dead = {"zone-a": Refused("not up after 600 s")}
        self.create(world.wish())
        assert world.truth()[first["token"]] == "superseded"

    def test_a_machine_outside_of_the_narrowed_search_is_not_adopted_and_one_inside_is(self, world: Places) -> None:
        first = self.create(world.wish())
        second = self.create(world.other_wish())
        other = self.create(world.wish() | {"search": {"regions": ["zone-b"]}})
        assert tried(other) == [("zone-b", "on-demand", "accepted")]
        assert world.truth() == {
            first["token"]: "superseded", second["token"]: "superseded", other["token"]: "owned"
        }  # fmt: skip
        back = self.create(world.wish() | {"search": {"regions": ["zone-a"]}})
        assert tried(back) == [("zone-a", "on-demand", "adopted")]
        assert back["host"] == first["host"]

    def test_what_no_state_knows_is_adopted_before_what_serves_no_more(self, world: Places) -> None:
        first = self.create(world.wish())
        self.create(world.other_wish())
        assert self.killed_after(3, world.wish() | {"search": {"regions": ["zone-b"]}})
        assert tried(self.create(world.wish())) == [("zone-b", "on-demand", "adopted")]
        assert world.truth()[first["token"]] == "superseded"

    def test_an_owned_machine_is_never_adopted(self, world: Places) -> None:
        first, second = self.create(world.wish()), self.create(world.wish())
        assert len(world.cloud.bought) == 2
        assert world.truth() == {first["token"]: "superseded", second["token"]: "owned"}
        MACHINE.delete(RUN, "id", first)
        assert world.cloud.ended == ["i-1"]

    def test_another_resource_of_the_same_stack_has_machines_of_its_own(self, world: Places) -> None:
        assert self.killed_after(3, world.wish())
        (left,) = world.truth()
        _, out = MACHINE.create(Run(URN.replace("serve-0", "serve-1")), world.wish())
        assert world.truth() == {left: "creating", out["token"]: "owned"}

    # --- trouble after the purchase ---

    def test_a_bought_machine_that_cannot_be_reached_is_in_the_state_and_used_once_it_can(self, world: Places) -> None:
        world.cloud.deaf = {"zone-a"}
        with pytest.raises(InitFailedError, match="no route to the machine") as caught:
            self.create(world.wish())
        out = caught.value.outputs
        assert out["address"] is None
        assert world.truth() == {out["token"]: "owned"}
        with pytest.raises(FailedError, match="no route"):
            MACHINE.update(RUN, "id", out, world.wish())
        world.cloud.deaf = set()
        assert MACHINE.update(RUN, "id", out, world.wish())["address"] == "10.0.0.1"
        assert len(world.cloud.bought) == 1

    def test_a_run_that_is_stopped_while_its_machine_boots_keeps_it_in_the_state(self, world: Places) -> None:
        stopped = Run(URN)
        real = world.cloud.make

        def stop_then(*given: Values) -> Values:
            stopped.cancel.set()
            return real(*given)

        world.cloud.make = stop_then
        with pytest.raises(InitFailedError, match="cancelled") as caught:
            MACHINE.create(stopped, world.wish())
        assert world.truth() == {caught.value.outputs["token"]: "owned"}

    def test_a_machine_of_the_state_that_will_never_be_ready_is_said_and_not_ended(self, world: Places) -> None:
        out = self.create(world.wish())
        world.cloud.dead = {"zone-a": Refused("stopped by the cloud")}
        with pytest.raises(FailedError, match="cannot be used: stopped by the cloud"):
            MACHINE.update(RUN, "id", out, world.wish())
        assert world.truth() == {out["token"]: "owned"}

    # --- all of it, in any order ---

    @pytest.mark.parametrize("seed", range(20))
    def test_no_walk_of_changes_and_kills_ends_a_machine_that_the_state_holds(self, world: Places, seed: int) -> None:
        """The state as the engine keeps it: the current machine, and those it still has to end."""
        dice, current, pending, told = random.Random(seed), None, list[Values](), True
        for _ in range(100):
            wish = dice.choice([world.wish(), world.other_wish(), world.wish() | {"search": {"regions": ["zone-b"]}}])
            world.cloud.sold_out = dice.choice([{}, {}, {"zone-a": Refused("no capacity")}])
            self.calls.made, self.calls.last = [], dice.choice([0, 0, *range(1, 9)])
            try:
                made = self.create(wish)
                pending += [current] if current else []
                current, told = made, True
                for old in pending if dice.random() < 0.7 else []:  # else the run failed before it came to this
                    MACHINE.delete(RUN, "id", old)
                    pending = [one for one in pending if one is not old]
            except Killed:
                told = told and self.calls.made[-1] != "mark"  # the cloud knows more than the state from there on
            self.calls.last = 0
            if current:
                assert current["host"]["id"] in world.cloud.there
                assert not told or MACHINE.read(RUN, "id", {}, current) == current
        for one in [*pending, current]:
            MACHINE.delete(RUN, "id", one)
        assert current["token"] not in world.truth()
        # What nobody's state knows any more is still there with its tags, for a list of them to find.
        assert len(world.cloud.ended) + len(world.truth()) == len(world.cloud.bought)
