"""What an adapter supplies: the calls that differ from cloud to cloud. When they are made, `provider/life.py` says.

An adapter is a module with the functions of `Cloud`; it knows no Pulumi and keeps nothing between two calls. Every call
may raise FailedError, UnreachableError where the cloud or the machine did not answer: that is never taken for "gone".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypedDict

from ..hostclient import Host

CREATING, OWNED, SUPERSEDED = "creating", "owned", "superseded"


class Tags(TypedDict):
    """What every machine carries from its purchase on."""

    stack_id: str  # the stack's own id, kept in its state
    name: str  # the resource's
    token: str  # fresh and random for each Create
    phase: str  # creating, owned (a state knows it), superseded (a younger one of this name is owned)


class Found(Tags):
    """A machine as its cloud tells of it."""

    id: str  # its name in its cloud, for good
    host: dict[str, Any]  # names it in its cloud and says how to ask it; plain data, Machine's output of that name
    gpu: dict[str, Any]  # {"type": "H100-80GB", "count": 1}
    zone: str
    market: str
    address: str | None  # None: not known yet
    price: float | None  # per hour, in the currency of `machine.price`; None: unknown


class Place(NamedTuple):
    """Where a machine can be asked for."""

    zone: str
    market: str  # reserved, on-demand, spot; of a machine that is nobody's to sell: the cloud's name


class Refused(Exception):
    """The cloud has no machine to give here. `next`: "place" (another may have one), "stop" (none will)."""

    def __init__(self, reason: str, next: str = "place") -> None:
        super().__init__(reason)
        self.next = next


class Cloud(Protocol):
    """The calls. `wish` is what Machine was given (its inputs, or outputs, which hold them)."""

    def machines(self, wish: dict[str, Any]) -> list[Found]:
        """Every machine that carries the stack's id and is not gone, also outside of the wish's search space."""

    def places(self, wish: dict[str, Any]) -> list[Place]:
        """The wish's search space, the best place first."""

    def make(self, wish: dict[str, Any], place: Place, tags: Tags) -> Found:
        """Ask for one machine, its tags in the same call. Raises Refused, with nothing left behind."""

    def ready(self, machine: Found, gave_up: Callable[[], str | None]) -> Found:
        """Wait until it can be asked; the machine as it is then. Returns at once where it can be already.

        Raises Refused for one that will never be (taken back by the cloud, not up in time), and FailedError when
        `gave_up` says why nobody waits any more.
        """

    def mark(self, machine: Found) -> None:
        """Write these tags onto the machine, all in one step. Raises FailedError when it is gone, or another's."""

    def find(self, host: dict[str, Any]) -> Found | None:
        """The machine that `host` names; None only when the cloud itself says that there is none."""

    def release(self, host: dict[str, Any], token: str) -> bool:
        """End the machine, and all that runs there, if it carries the token; what is gone already is a success.

        False, with nothing touched, when it carries another one.
        """

    def connect(self, host: dict[str, Any]) -> Host:
        """How its host program is asked; does nothing yet."""

    def disks(self, claim: dict[str, Any]) -> list[dict[str, Any]]:
        """The disks of a claim on space (Volume's inputs), as far as they are made."""

    def disk_bytes(self, disk: dict[str, Any]) -> int:
        """Bytes used on it."""

    def empty_disk(self, disk: dict[str, Any]) -> list[str]:
        """Give it up, or what no stack needs on one that is shared; names of what was removed."""
