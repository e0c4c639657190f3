"""This very machine: the host program is called in this process, the claim is a folder with the stack's id and token.

What must outlive a run of pulumi (jobs, engine, front) the host program itself starts as processes of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..host import verbs
from ..host.places import default_root, run_folder
from ..hostclient import Host, HostError
from .calls import CREATING, OWNED, Found, Place, Tags

HERE = Place("local", "local")


class ThisMachine(Host):
    def lines(self, verb: str, spec: dict[str, Any]) -> Iterator[str]:
        try:
            yield from verbs.lines(verb, spec)
        except Exception as e:
            raise HostError(verbs.fault(e), type(e).__name__) from e


def connect(host: dict[str, Any]) -> Host:
    return ThisMachine({"root": host["root"], "run": host["run"], "stack": host["stack"]})


# A machine here is a stack's claim on a data folder: one for each stack and root, so another root is another machine.
# A place cannot be bought twice: a second claim takes it over from the first the moment it is owned, and the first is
# superseded by that; it holds nothing any more and is listed no more. See `host/machine.py`.


def machines(wish: dict[str, Any]) -> list[Found]:
    try:
        claims = _claims(host_of(wish), wish["gpu"])
    except HostError:
        return []  # `make` asks for the same place, and says what is wrong with it
    return [claim for claim in claims if claim["stack_id"] == wish["stackId"]]


def places(wish: dict[str, Any]) -> list[Place]:  # noqa: ARG001 - there is only the one
    return [HERE]


def make(wish: dict[str, Any], place: Place, tags: Tags) -> Found:  # noqa: ARG001 - as above
    host = host_of(wish)
    host["run"] = _claim(host, tags)["run"]
    return _found(tags, host, wish["gpu"])


def ready(machine: Found, gave_up: Callable[[], str | None]) -> Found:  # noqa: ARG001 - nothing to wait for
    return machine


def mark(machine: Found) -> None:
    if machine["phase"] != OWNED:
        return  # superseded: becomes so in the one step in which the next claim is owned
    left = [claim for claim in _claims(machine["host"]) if claim["phase"] == CREATING]
    if left and left[0]["token"] != machine["token"]:
        _claim(machine["host"], machine)  # what a killed run left is adopted
    connect(machine["host"]).ask("own", {"token": machine["token"]})


def find(host: dict[str, Any]) -> Found | None:
    """The claim that holds the place, or None when this machine says there is none."""
    return next(iter(_claims(host)), None)


def release(host: dict[str, Any], token: str) -> bool:
    return bool(connect(host).ask("deactivate", {"what": "machine", "token": token})["done"])


def host_of(wish: dict[str, Any]) -> dict[str, Any]:
    """How the machine of a stack is reached, claimed or not: of `root` (or null) and `stack`."""
    root = Path(wish["root"]).resolve() if wish.get("root") else default_root()
    return {"cloud": "local", "root": str(root), "run": str(run_folder(root, wish["stack"])), "stack": wish["stack"]}


def _claim(host: dict[str, Any], tags: Tags) -> dict[str, Any]:
    """Make the place, or take its claim over. Raises HostError when it is another stack's, or cannot be used."""
    spec = {"root": host["root"], "stack": host["stack"], **{n: tags[n] for n in ("stack_id", "name", "token")}}
    return dict(ThisMachine({}).ask("claim", spec))


def _claims(host: dict[str, Any], gpu: dict[str, Any] | None = None) -> list[Found]:
    """The claim that holds the place, then one that waits to take it over. Raises HostError where it cannot tell."""
    there = connect(host).ask("claimed")["machine"]
    if there is None:
        return []
    if (run := there.get("run")) and Path(run).is_dir():  # as the host program takes it
        host = host | {"run": run}
    waiting = [there | there["next"]] if "next" in there else []
    return [_found(claim, host, gpu or {}) for claim in (there, *waiting)]


def _found(tags: Mapping[str, Any], host: dict[str, Any], gpu: dict[str, Any]) -> Found:
    return {
        "stack_id": tags["stack_id"], "name": tags.get("name") or "", "token": tags["token"], "phase": tags["phase"],
        "id": f"{host['root']}/{host['stack']}", "host": host, "gpu": gpu,
        "zone": HERE.zone, "market": HERE.market, "address": "127.0.0.1", "price": None,
    }  # fmt: skip


def disks(claim: dict[str, Any]) -> list[dict[str, Any]]:
    """Where a claim on disk space lands here: the data folder itself."""
    return [{"where": str(Path(claim["root"]).resolve() if claim.get("root") else default_root())}]


def disk_bytes(disk: dict[str, Any]) -> int:
    return int(_disk(disk).ask("collect")["bytes"])


def empty_disk(disk: dict[str, Any]) -> list[str]:
    """Remove every source that no stack on this machine needs."""
    return list(_disk(disk).ask("collect", {"sources": True})["removed"])


def _disk(disk: dict[str, Any]) -> Host:
    return ThisMachine({"root": disk["where"], "run": disk["where"], "stack": ""})
