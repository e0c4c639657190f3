"""What a contract is tried in: a cloud that can be looked at from outside, and Creates killed between two calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import pytest

from sluicegate.provider import machine
from sluicegate.provider.clouds.calls import Cloud
from sluicegate.provider.hostclient import HostError
from sluicegate.provider.machine import Machine
from sluicegate.provider.resource import Run, Values

MACHINE = Machine()
URN = "urn:pulumi:s::p::sluicegate:index:GpuInstance$sluicegate:index:Machine::serve-0-gpu"
RUN = Run(URN)


class Killed(BaseException):
    """Stands for SIGKILL: nothing of ours catches it."""


class Calls:
    """An adapter that counts its calls and is killed after the `last`; `fails` names calls that the cloud refuses."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud, self.made, self.last, self.fails = cloud, list[str](), 0, set[str]()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            if name in self.fails:
                raise HostError(f"{name} does not work today", "OSError")
            answer = getattr(self.cloud, name)(*given)
            self.made.append(name)
            if self.last and len(self.made) >= self.last:
                raise Killed
            return answer

        return call


class World(Protocol):
    """A cloud to try, and what is true in it without asking its adapter."""

    cloud: Cloud

    def wish(self, stack_id: str = "one") -> Values:
        """Machine's inputs."""

    def other_wish(self) -> Values:
        """Inputs that no machine made for `wish` fits."""

    def truth(self) -> dict[str, str]:
        """Token -> phase of every machine there is; none of one that holds nothing any more."""

    def made(self) -> int:
        """How many machines were ever made or bought."""

    def vanish(self) -> None:
        """The cloud loses every machine."""

    def hush(self) -> None:
        """From now on the cloud cannot tell what is there."""


class InAWorld:
    """Machine in a world that the test class makes, its adapter's calls counted."""

    @pytest.fixture
    def new_world(self) -> Callable[[], World]:
        """Makes worlds with nothing in them."""
        raise NotImplementedError

    @pytest.fixture
    def world(self, new_world: Callable[[], World], monkeypatch: pytest.MonkeyPatch) -> World:
        return self.enter(new_world(), monkeypatch)

    def enter(self, world: World, monkeypatch: pytest.MonkeyPatch) -> World:
        self.calls = Calls(world.cloud)
        monkeypatch.setattr(machine, "adapter", lambda _cloud: self.calls)
        return world

    def create(self, wish: Values) -> Values:
        return MACHINE.create(RUN, wish)[1]

    def killed_after(self, calls: int, wish: Values) -> bool:
        """Whether a Create was killed after that many calls; False: it had fewer and is done."""
        self.calls.made, self.calls.last = [], calls
        try:
            self.create(wish)
        except Killed:
            return True
        finally:
            self.calls.last = 0
        return False

    def calls_until(self, name: str, wish: Values, world: World) -> int:
        """The number of a Create's first call of that name; leaves nothing behind."""
        self.calls.made = []
        out = self.create(wish)
        number = self.calls.made.index(name) + 1
        MACHINE.delete(RUN, "id", out)
        assert world.truth() == {}
        return number

    def calls_of_a_create(
        self, new_world: Callable[[], World], monkeypatch: pytest.MonkeyPatch, before: int = 0
    ) -> int:
        """How many calls one Create makes, after as many others."""
        world = self.enter(new_world(), monkeypatch)
        for _ in range(before):
            self.create(world.wish())
        self.calls.made = []
        self.create(world.wish())
        return len(self.calls.made)
