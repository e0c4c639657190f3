"""The contract on this very machine: the real host program, in folders of the test."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from sluicegate.provider.clouds import local
from sluicegate.provider.clouds.calls import Cloud
from sluicegate.provider.host.places import run_folder
from sluicegate.provider.resource import FailedError, Run, Values
from tests.provider.clouds.contract import AdapterContract
from tests.provider.clouds.world import MACHINE, RUN, URN, World


@dataclass
class Folders:
    """Two data folders: what was made for one does not fit a wish for the other."""

    base: Path
    cloud: Cloud = local

    def wish(self, stack_id: str = "one") -> Values:
        return {
            "cloud": "local", "stack": "p.s", "stackId": stack_id, "gpu": {"type": "cpu", "count": 1}, "claim": "c",
            "search": {}, "root": str(self.base / "here"),
        }  # fmt: skip

    def other_wish(self) -> Values:
        return self.wish() | {"root": str(self.base / "there")}

    @property
    def notes(self) -> list[Path]:
        return sorted(self.base.glob("*/stacks/p.s/machine.json"))

    def truth(self) -> dict[str, str]:
        found = {}
        for claim in (json.loads(note.read_text()) for note in self.notes):
            found[claim["token"]] = claim["phase"]
            if "next" in claim:
                found[claim["next"]["token"]] = claim["next"]["phase"]
        return found

    def made(self) -> int:
        return len(self.notes)

    def vanish(self) -> None:
        for note in self.notes:
            shutil.rmtree(note.parent)

    def hush(self) -> None:
        for note in self.notes:
            note.write_text("{")

    def end(self) -> None:
        for name in ("here", "there"):
            shutil.rmtree(run_folder(self.base / name, "p.s"), ignore_errors=True)


class TestLocal(AdapterContract):
    @pytest.fixture
    def new_world(self, tmp_path: Path) -> Iterator[Callable[[], World]]:
        made: list[Folders] = []

        def make() -> World:
            made.append(Folders(tmp_path / str(len(made))))
            return made[-1]

        yield make
        for folders in made:
            folders.end()

    def test_a_second_claim_takes_the_place_over_and_what_is_in_it_stays(self, world: Folders) -> None:
        old = self.create(world.wish())
        served = Path(old["host"]["root"], "stacks/p.s/releases/x")
        served.mkdir(parents=True)
        new = self.create(world.wish())
        assert new["host"] == old["host"]
        MACHINE.delete(RUN, "id", old)
        assert served.exists()
        MACHINE.delete(RUN, "id", new)
        assert not served.exists()

    def test_another_root_is_another_machine(self, world: Folders) -> None:
        one, two = self.create(world.wish()), self.create(world.other_wish())
        assert world.truth() == {one["token"]: "owned", two["token"]: "owned"}
        MACHINE.delete(RUN, "id", one)
        assert world.truth() == {two["token"]: "owned"}

    def test_a_place_of_another_stack_is_refused_by_name_and_left_alone(self, world: Folders) -> None:
        self.create(world.wish("two"))
        before = world.notes[0].read_text()
        with pytest.raises(FailedError, match=r"belongs to another stack of this name \(id two, claimed"):
            self.create(world.wish())
        assert world.notes[0].read_text() == before

    def test_a_place_that_cannot_be_used_is_named_with_its_setting(self, world: Folders) -> None:
        file = world.base / "file"
        world.base.mkdir()
        file.touch()
        for root in (file, world.base / ("x" * 300)):
            with pytest.raises(FailedError, match=r"machine\.root: .* cannot be used"):
                self.create(world.wish() | {"root": str(root)})

    @pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"stack_id": "one"}'])
    def test_a_note_that_cannot_be_read_is_nobodys_to_take_or_end(self, world: Folders, text: str) -> None:
        out = self.create(world.wish())
        (note,) = world.notes
        note.write_text(text)
        for call in (
            lambda: MACHINE.read(RUN, "id", {}, out),
            lambda: MACHINE.delete(RUN, "id", out),
            lambda: self.create(world.wish()),
        ):
            with pytest.raises(FailedError, match="cannot be read, so whose the folder is is unknown"):
                call()
        assert note.read_text() == text

    def test_a_claim_written_down_before_names_were_is_taken_over_all_the_same(self, world: Folders) -> None:
        old = self.create(world.wish())
        (note,) = world.notes
        claim = json.loads(note.read_text())
        del claim["name"]
        note.write_text(json.dumps(claim))
        assert MACHINE.read(RUN, "id", {}, old) == old
        assert MACHINE.update(RUN, "id", old, world.wish() | {"price": 1})["hourlyPrice"] == 1
        new = self.create(world.wish())
        assert world.truth() == {new["token"]: "owned"}

    def test_a_renamed_resource_takes_the_place_over_too(self, world: Folders) -> None:
        old = self.create(world.wish())
        _, new = MACHINE.create(Run(URN.replace("serve", "other")), world.wish())
        MACHINE.delete(RUN, "id", old)
        assert world.truth() == {new["token"]: "owned"}
