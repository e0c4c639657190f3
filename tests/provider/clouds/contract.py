"""What every adapter has to keep, whatever its cloud: the life of a machine, through Machine itself.

A test class inherits `AdapterContract` and gives a `world` fixture. Not shown here, for no adapter: what a cloud does
on its own (machines that vanish from its lists for some seconds, tags that come late), and how long anything takes.
"""

from __future__ import annotations

from contextlib import suppress

import pytest

from sluicegate.provider.resource import FailedError, InitFailedError, Run, UnreachableError
from tests.provider.clouds.kills import KillContract
from tests.provider.clouds.world import MACHINE, RUN, URN, World


class AdapterContract(KillContract):
    # --- purchase ---

    def test_a_first_create_makes_one_machine_that_is_owned(self, world: World) -> None:
        out = self.create(world.wish())
        assert world.truth() == {out["token"]: "owned"}
        assert world.made() == 1
        (attempt,) = out["attempts"]
        assert (attempt["outcome"], attempt["place"], attempt["reason"]) == ("accepted", out["zone"], None)
        assert out["machineId"].endswith(out["token"][:12])

    def test_it_can_be_asked_by_the_host_in_the_outputs(self, world: World) -> None:
        out = self.create(world.wish())
        assert world.cloud.connect(out["host"]).ask("status")["machine"]["token"] == out["token"]

    def test_every_create_takes_a_token_of_its_own(self, world: World) -> None:
        assert self.create(world.wish())["token"] != self.create(world.wish())["token"]

    def test_nothing_is_bought_once_the_run_was_told_to_stop(self, world: World) -> None:
        stopped = Run(URN)
        stopped.cancel.set()
        with pytest.raises(FailedError, match="cancelled before a machine was asked for"):
            MACHINE.create(stopped, world.wish())
        assert (world.truth(), world.made()) == ({}, 0)

    def test_a_cloud_that_refuses_the_purchase_leaves_nothing_in_the_state(self, world: World) -> None:
        self.calls.fails = {"make"}
        with pytest.raises(FailedError, match="make does not work today"):
            self.create(world.wish())
        assert world.truth() == {}

    # --- adoption and replacement ---

    def test_a_machine_of_another_stack_of_the_same_name_is_neither_adopted_nor_marked_nor_ended(
        self, world: World
    ) -> None:
        assert self.killed_after(4, world.wish("two"))
        for _ in range(2):  # one that nobody owns, then one that is owned
            before = world.truth()
            with suppress(FailedError):  # a place that is taken is refused
                out = self.create(world.wish())
                assert out["attempts"][-1]["outcome"] == "accepted"
                MACHINE.delete(RUN, "id", out)
            assert world.truth() == before
            self.create(world.wish("two"))

    def test_a_replacement_is_a_new_claim_and_the_end_of_the_old_one_ends_nothing_of_it(self, world: World) -> None:
        old = self.create(world.wish())
        new = self.create(world.wish())
        assert new["attempts"][-1]["outcome"] == "accepted"
        assert world.truth()[new["token"]] == "owned"
        assert world.truth().get(old["token"], "superseded") == "superseded"
        MACHINE.delete(RUN, "id", old)
        assert world.truth() == {new["token"]: "owned"}
        assert MACHINE.read(RUN, "id", {}, new) == new
        assert MACHINE.read(RUN, "id", {}, old) is None
        MACHINE.delete(RUN, "id", new)
        assert world.truth() == {}

    def test_the_old_wish_back_takes_the_old_machine_back_without_a_purchase(self, world: World) -> None:
        first = self.create(world.wish())
        second = self.create(world.other_wish())
        made = world.made()
        back = self.create(world.wish())
        assert (back["host"], world.made()) == (first["host"], made)
        # The engine ends what it replaced, and what it had not ended before.
        MACHINE.delete(RUN, "id", second)
        MACHINE.delete(RUN, "id", first)
        assert world.truth() == {back["token"]: "owned"}

    def test_given_back_first_and_made_again_is_one_machine(self, world: World) -> None:
        MACHINE.delete(RUN, "id", self.create(world.wish()))
        out = self.create(world.wish())
        assert world.truth() == {out["token"]: "owned"}

    # --- trouble after the purchase ---

    def test_a_machine_that_could_not_be_marked_is_in_the_state_and_owned_by_the_next_update(
        self, world: World
    ) -> None:
        self.calls.fails = {"mark"}
        with pytest.raises(InitFailedError, match="mark does not work today") as caught:
            self.create(world.wish())
        out = caught.value.outputs
        assert world.truth() == {out["token"]: "creating"}
        with pytest.raises(FailedError, match="mark does not work today"):
            MACHINE.update(RUN, "id", out, world.wish())
        self.calls.fails = set()
        assert MACHINE.update(RUN, "id", out, world.wish()) == out
        assert world.truth() == {out["token"]: "owned"}

    def test_a_replacement_that_could_not_be_marked_is_owned_before_the_old_one_goes(self, world: World) -> None:
        old = self.create(world.wish())
        self.calls.fails = {"mark"}
        with pytest.raises(InitFailedError) as caught:
            self.create(world.wish())
        new = caught.value.outputs
        self.calls.fails = set()
        MACHINE.update(RUN, "id", new, world.wish())
        MACHINE.delete(RUN, "id", old)
        assert world.truth() == {new["token"]: "owned"}

    def test_a_replacement_that_could_not_be_marked_can_be_ended_alone(self, world: World) -> None:
        old = self.create(world.wish())
        self.calls.fails = {"mark"}
        with pytest.raises(InitFailedError) as caught:
            self.create(world.wish())
        MACHINE.delete(RUN, "id", caught.value.outputs)
        assert list(world.truth()) == [old["token"]]

    def test_a_new_price_is_an_output_at_once_and_one_taken_out_is_unknown(self, world: World) -> None:
        out = self.create(world.wish() | {"price": 2.5})
        assert out["hourlyPrice"] == 2.5
        unpriced = {k: v for k, v in world.wish().items() if k not in ("price", "search")}
        after = MACHINE.update(RUN, "id", out, unpriced)
        assert after["hourlyPrice"] == world.cloud.machines(world.wish())[0]["price"]
        assert not {"price", "search"} & set(after)
        assert (after["token"], after["host"], after["attempts"]) == (out["token"], out["host"], out["attempts"])

    # --- read and delete ---

    def test_a_foreign_token_ends_nothing(self, world: World) -> None:
        out = self.create(world.wish())
        said: list[str] = []
        MACHINE.delete(Run(URN, log=lambda text, _: said.append(text)), "id", out | {"token": "another"})
        assert world.truth() == {out["token"]: "owned"}
        assert "left alone" in said[0]
        assert MACHINE.read(RUN, "id", {}, out | {"token": "another"}) is None

    def test_a_machine_is_gone_when_the_cloud_says_so_and_its_end_is_then_a_success(self, world: World) -> None:
        out = self.create(world.wish())
        assert MACHINE.read(RUN, "id", {}, out) == out
        world.vanish()
        assert MACHINE.read(RUN, "id", {}, out) is None
        with pytest.raises(FailedError, match="not to be found; run `pulumi up --refresh`"):
            MACHINE.update(RUN, "id", out, world.wish())
        MACHINE.delete(RUN, "id", out)
        MACHINE.delete(RUN, "id", out)
        assert world.truth() == {}

    def test_what_cannot_be_told_is_never_gone(self, world: World) -> None:
        out = self.create(world.wish())
        world.hush()
        with pytest.raises(UnreachableError):
            MACHINE.read(RUN, "id", {}, out)
        with pytest.raises(FailedError):
            MACHINE.update(RUN, "id", out, world.wish())
        with pytest.raises(FailedError):
            MACHINE.delete(RUN, "id", out)
        with pytest.raises(FailedError):
            self.create(world.wish())
