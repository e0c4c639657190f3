"""This very machine: the host program is called in this process, the claim is a folder with the stack's id and token.

What must outlive a run of pulumi (jobs, engine, front) the host program itself starts as processes of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..host import verbs
from ..host.places import default_root
from ..hostclient import Host, HostError


class ThisMachine(Host):
    def lines(self, verb: str, spec: dict[str, Any]) -> Iterator[str]:
        try:
            yield from verbs.lines(verb, spec)
        except Exception as e:
            raise HostError(str(e) or type(e).__name__, type(e).__name__) from e


def connect(host: dict[str, Any]) -> Host:
    return ThisMachine({"root": host["root"], "run": host["run"], "stack": host["stack"]})


def claim(inputs: dict[str, Any], token: str) -> dict[str, Any]:
    """Make or adopt the stack's folder; what Machine's outputs need of it. Raises HostError when it is another's."""
    spec = {"root": inputs.get("root"), "stack": inputs["stack"], "stack_id": inputs["stackId"], "token": token}
    there = ThisMachine({}).ask("claim", spec)
    return {
        "address": "127.0.0.1",
        "zone": "local",
        "hourlyPrice": inputs.get("price"),
        "adopted": there["adopted"],
        "host": {"cloud": "local", "root": there["root"], "run": there["run"], "stack": inputs["stack"]},
    }


def own(host: dict[str, Any], token: str) -> None:
    connect(host).ask("own", {"token": token})


def find(host: dict[str, Any]) -> dict[str, Any] | None:
    """The claim as it stands, or None when this machine says there is none."""
    there: dict[str, Any] | None = connect(host).ask("claimed")["machine"]
    return there


def release(host: dict[str, Any], token: str) -> bool:
    """End what the claim runs and remove it; False when it carries another token."""
    return bool(connect(host).ask("deactivate", {"what": "machine", "token": token})["done"])


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
