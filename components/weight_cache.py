"""WeightCache: disk space for weights and compile caches that outlives machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pulumi

from .custom import Custom, child


@dataclass(frozen=True, kw_only=True)
class WeightCacheArgs:
    cloud: str
    """local, ssh, aws or nebius."""
    size_gb: float
    """Disk size in GB (10^9 bytes)."""
    keep: bool = True
    """Whether the disk outlives `pulumi destroy`."""
    root: str | None = None
    """Cloud local: the data folder; None: the host program's default."""


class WeightCache(pulumi.ComponentResource):
    """A claim on disk space: a name and a size, never a zone. The machine makes the disk where it lands."""

    disks: pulumi.Output[list[dict[str, Any]]]
    """Where the claim's disks are."""

    def __init__(self, name: str, args: WeightCacheArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("sluicegate:index:WeightCache", name, None, opts)
        inputs = {"cloud": args.cloud, "name": name, "sizeGb": args.size_gb, "keep": args.keep, "root": args.root}
        self.volume = Custom("Volume", name, inputs, ["disks"], child(self))
        self.claim = self.volume.out("name")
        self.disks = self.volume.out("disks")
        self.register_outputs({"disks": self.disks})
