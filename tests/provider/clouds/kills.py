"""What a run that was killed between any two calls leaves, and what the next one makes of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.provider.clouds.world import MACHINE, RUN, InAWorld, World


class KillContract(InAWorld):
    def test_it_carries_its_tags_from_the_purchase_on(self, world: World) -> None:
        assert self.killed_after(self.calls_until("make", world.wish(), world), world.wish())
        (found,) = world.cloud.machines(world.wish())
        assert (found["stack_id"], found["name"], found["phase"]) == ("one", "serve-0-gpu", "creating")
        assert world.truth() == {found["token"]: "creating"}

    def test_a_create_killed_after_any_call_but_the_last_is_finished_by_the_next_one_with_the_same_machine(
        self, new_world: Callable[[], World], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for calls in range(1, self.calls_of_a_create(new_world, monkeypatch)):
            world = self.enter(new_world(), monkeypatch)
            assert self.killed_after(calls, world.wish())
            left, last = world.truth(), self.calls.made[-1]
            out = self.create(world.wish())
            assert world.truth() == {out["token"]: "owned"}, f"killed after {last}"
            assert out["attempts"][-1]["outcome"] == ("adopted" if left else "accepted"), f"killed after {last}"
            assert world.made() == 1, f"killed after {last}"
            MACHINE.delete(RUN, "id", out)
            assert world.truth() == {}

    def test_a_create_killed_in_the_instant_before_the_state_was_written_leaves_a_marked_machine_at_most(
        self, new_world: Callable[[], World], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        calls = self.calls_of_a_create(new_world, monkeypatch)
        world = self.enter(new_world(), monkeypatch)
        assert self.killed_after(calls, world.wish())
        (left,) = world.truth()
        out = self.create(world.wish())  # it may be the one that a state knows: not adopted
        assert out["attempts"][-1]["outcome"] == "accepted"
        assert world.truth().get(left, "superseded") == "superseded"
        assert world.truth()[out["token"]] == "owned"

    def test_a_create_that_is_killed_time_and_again_still_leaves_one_machine(self, world: World) -> None:
        for calls in (3, 4, 2, 3, 3):
            assert self.killed_after(calls, world.wish())
        out = self.create(world.wish())
        assert world.truth() == {out["token"]: "owned"}
        assert world.made() == 1

    def test_what_a_killed_run_left_is_not_adopted_by_a_wish_that_it_does_not_fit(self, world: World) -> None:
        assert self.killed_after(self.calls_until("make", world.wish(), world), world.wish())
        (left,) = world.truth()
        out = self.create(world.other_wish())
        assert out["attempts"][-1]["outcome"] == "accepted"
        assert world.truth()[out["token"]] == "owned"
        assert world.truth()[left] != "owned"
        MACHINE.delete(RUN, "id", out)
        assert list(world.truth()) == [left]

    def test_a_replacement_killed_after_any_call_leaves_the_old_machine_to_its_state_and_can_be_tried_again(
        self, new_world: Callable[[], World], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for calls in range(1, self.calls_of_a_create(new_world, monkeypatch, before=1) + 1):
            world = self.enter(new_world(), monkeypatch)
            old = self.create(world.wish())
            assert self.killed_after(calls, world.wish())
            left, last = world.truth(), self.calls.made[-1]
            if "mark" not in self.calls.made:  # from there on the state may know the new one
                assert left[old["token"]] == "owned", f"killed after {last}"
                assert MACHINE.read(RUN, "id", {}, old) == old
            new = self.create(world.wish())
            assert [token for token, phase in world.truth().items() if phase == "owned"] == [new["token"]]
            MACHINE.delete(RUN, "id", old)
            assert old["token"] not in world.truth()
            if "mark" not in self.calls.made[:calls] or "creating" in left.values():
                assert world.truth() == {new["token"]: "owned"}, f"killed after {last}"

    def test_a_stack_whose_replacement_was_killed_is_destroyed_whole(self, world: World) -> None:
        old = self.create(world.wish())
        self.calls.made = []
        assert self.killed_after(3, world.wish())
        MACHINE.delete(RUN, "id", old)
        assert old["token"] not in world.truth()
        assert "owned" not in world.truth().values()
