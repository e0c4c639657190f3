"""A cloud in memory with several places and many machines.

It cannot prove what only a real one can show: that tags travel in the purchase call itself, that a list tells of a
machine at once after its purchase, what a late refusal looks like, and that two calls cannot cross.
"""

# ruff: noqa: ARG002 - the methods have the parameters of the calls they stand in for

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sluicegate.provider.clouds.calls import Found, Place, Refused, Tags
from sluicegate.provider.hostclient import Host, HostError
from sluicegate.provider.resource import UnreachableError, Values

PRICES = {Place("zone-a", "on-demand"): 4.5, Place("zone-b", "on-demand"): 4.75, Place("zone-b", "spot"): 1.25}


class Answering(Host):
    def lines(self, verb: str, spec: Values) -> Iterator[str]:
        yield json.dumps({"machine": {"token": self.places["cloud"].there[self.places["id"]]["token"]}})


@dataclass
class FakeCloud:
    """`sold_out` refuse a purchase, `dead` never get ready, `deaf` cannot be reached; each by zone."""

    there: dict[str, Found] = field(default_factory=dict)
    bought: list[Place] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    sold_out: dict[str, Refused] = field(default_factory=dict)
    dead: dict[str, Refused] = field(default_factory=dict)
    deaf: set[str] = field(default_factory=set)
    silent: bool = False

    def _listen(self) -> None:
        if self.silent:
            raise UnreachableError("the cloud does not answer")

    def machines(self, wish: Values) -> list[Found]:
        self._listen()
        return [machine for machine in self.there.values() if machine["stack_id"] == wish["stackId"]]

    def places(self, wish: Values) -> list[Place]:
        zones = wish["search"].get("regions") or [place.zone for place in PRICES]
        return [place for place in PRICES if place.zone in zones]

    def make(self, wish: Values, place: Place, tags: Tags) -> Found:
        self._listen()
        if place.zone in self.sold_out:
            raise self.sold_out[place.zone]
        self.bought.append(place)
        id = f"i-{len(self.bought)}"
        host = {"cloud": "fake", "id": id, "root": "/var/lib/sluicegate"}
        more: Any = {"id": id, "host": host, "gpu": wish["gpu"], "address": None, "price": PRICES[place]}
        self.there[id] = {**tags, **more, "zone": place.zone, "market": place.market}
        return self.there[id]

    def ready(self, machine: Found, gave_up: Callable[[], str | None]) -> Found:
        self._listen()
        if why := gave_up():
            raise HostError(f"{why}: nobody waits for the machine any more", "cancelled")
        if machine["zone"] in self.dead:
            raise self.dead[machine["zone"]]
        if machine["zone"] in self.deaf:
            raise UnreachableError("no route to the machine")
        return machine | {"address": f"10.0.0.{machine['host']['id'][2:]}"}

    def mark(self, machine: Found) -> None:
        self._listen()
        tags = {name: machine[name] for name in ("stack_id", "name", "token", "phase")}
        self.there[machine["id"]] = self.there[machine["id"]] | tags

    def find(self, host: Values) -> Found | None:
        self._listen()
        return self.there.get(host["id"])

    def release(self, host: Values, token: str) -> bool:
        self._listen()
        there = self.there.get(host["id"])
        if there is None:
            return True
        if there["token"] != token:
            return False
        self.ended.append(host["id"])
        del self.there[host["id"]]
        return True

    def connect(self, host: Values) -> Host:
        return Answering({"cloud": self, "id": host["id"]})

    def disks(self, claim: Values) -> list[Values]:
        return []

    def disk_bytes(self, disk: Values) -> int:
        return 0

    def empty_disk(self, disk: Values) -> list[str]:
        return []


@dataclass
class Places:
    """The contract's world around it."""

    cloud: FakeCloud = field(default_factory=FakeCloud)

    def wish(self, stack_id: str = "one") -> Values:
        return {
            "cloud": "fake", "stack": "p.s", "stackId": stack_id, "gpu": {"type": "H100-80GB", "count": 1},
            "claim": "c", "search": {},
        }  # fmt: skip

    def other_wish(self) -> Values:
        return self.wish() | {"gpu": {"type": "H200-141GB", "count": 1}}

    def truth(self) -> dict[str, str]:
        return {machine["token"]: machine["phase"] for machine in self.cloud.there.values()}

    def made(self) -> int:
        return len(self.cloud.bought)

    def vanish(self) -> None:
        self.cloud.there.clear()

    def hush(self) -> None:
        self.cloud.silent = True
