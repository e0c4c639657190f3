"""GpuInstance: one machine out of an ordered search space, with the user's own host steps run on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi
from pulumi_command import local

from .custom import Custom, child


@dataclass(frozen=True, kw_only=True)
class GpuInstanceArgs:
    cloud: str
    """local, ssh, aws or nebius."""
    stack: str
    """`<project>.<stack>`, the stack's folder on the machine."""
    stack_id: pulumi.Input[str]
    """The stack's own id, kept in its state; every tag carries it."""
    gpu: Mapping[str, Any]
    """`type` and `count`, as the lock says."""
    claim: pulumi.Input[str]
    """The name of the WeightCache whose disk is attached."""
    search: Mapping[str, Any] = field(default_factory=dict)
    """`regions`, `markets`, `maxPrice`: a wish; what it found is an output."""
    price: float | None = None
    """Price an hour, where the cloud cannot tell; None: unknown."""
    root: str | None = None
    """Cloud local: the data folder; None: the host program's default."""
    one_at_a_time: bool = False
    """Give the machine back before its replacement is asked for."""
    host_setup: Sequence[str] = ()
    """Shell commands run once each, in order, before the engine."""
    host_setup_secret: bool = False
    """Whether they hold a secret: then neither they nor what they print is shown or kept in clear."""


class GpuInstance(pulumi.ComponentResource):
    """Where the engine runs."""

    address: pulumi.Output[str]
    zone: pulumi.Output[str]
    hourly_price: pulumi.Output[float | None]
    attempts: pulumi.Output[list[dict[str, Any]]]
    """Each place that was asked and what it answered."""

    def __init__(self, name: str, args: GpuInstanceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("sluicegate:index:GpuInstance", name, None, opts)
        inputs = {
            "cloud": args.cloud, "stack": args.stack, "stackId": args.stack_id, "gpu": dict(args.gpu),
            "claim": args.claim, "search": dict(args.search), "price": args.price, "root": args.root,
        }  # fmt: skip
        outputs = ["machineId", "address", "zone", "hourlyPrice", "attempts", "token", "host"]
        options = child(self, delete_before_replace=args.one_at_a_time or None)
        self.machine = Custom("Machine", name, inputs, outputs, options)
        self.machine_id, self.host = self.machine.out("machineId"), self.machine.out("host")
        self.address, self.zone = self.machine.out("address"), self.machine.out("zone")
        self.attempts = self.machine.out("attempts")
        # No cloud to ask here: what config says is all there is, also in a preview.
        local_price = pulumi.Output.from_input(args.price)
        self.hourly_price = local_price if args.cloud == "local" else self.machine.out("hourlyPrice")
        self.steps: list[pulumi.Resource] = []
        for i, step in enumerate(args.host_setup):
            # One after the other, and again on a new machine: `triggers` replaces the step.
            after = self.steps[-1:] or [self.machine]
            hidden = args.host_setup_secret
            command = local.Command(
                f"{name}-setup-{i}",
                create=pulumi.Output.secret(step) if hidden else step,
                logging=local.Logging.NONE,  # it may print a secret that nobody told us of
                triggers=[self.machine_id],
                opts=child(self, depends_on=after, additional_secret_outputs=["stdout", "stderr"]),
            )
            self.steps.append(command)
        self.register_outputs({"address": self.address, "zone": self.zone, "hourlyPrice": self.hourly_price})
