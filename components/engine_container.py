"""EngineContainer: the pinned engine with the pinned weights, gated before anything reaches it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi

from sluicegate.recipes.pins import Locked

from .custom import Custom, child


@dataclass(frozen=True, kw_only=True)
class EngineContainerArgs:
    locked: Locked
    """The recipe with the lock its pins seal."""
    facts: Mapping[str, Any]
    """What the host must know of the engine: paths, metric names, log patterns, gate prompts (plain data)."""
    host: pulumi.Input[Mapping[str, Any]]
    """How the host program is reached; Machine's output."""
    machine_id: pulumi.Input[str]
    """Machine's id: a new machine is a reason to deploy again."""
    hourly_price: pulumi.Input[float | None] = None
    """What the machine costs meanwhile, said when a change fails."""
    gate_deadline_s: float = 1200
    """Seconds an engine may take from its start to its first token, where no earlier start of it says less."""
    retry: int = 0
    """Raised by one to try a lock again whose gate has failed."""
    hold_s: float = 120
    """Seconds the front holds requests in a swap; said in previews."""
    needs: Sequence[pulumi.Resource] = ()
    """Host steps that must have run."""


class EngineContainer(pulumi.ComponentResource):
    """Prepare, start, gate, and revert on failure: one resource, so that its state is always what serves."""

    lock: pulumi.Output[str]
    upstream: pulumi.Output[str]
    phases: pulumi.Output[dict[str, float]]
    """Seconds per phase of the last start."""
    last_healthy: pulumi.Output[dict[str, str] | None]
    record: pulumi.Output[dict[str, Any] | None]
    """The acceptance record of this lock on this GPU type."""

    def __init__(self, name: str, args: EngineContainerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("sluicegate:index:EngineContainer", name, None, opts)
        locked = args.locked
        inputs = {
            "host": args.host, "machineId": args.machine_id, "recipe": locked.recipe_name,
            "pins": locked.pins.as_config(), "argv": list(locked.lock.argv), "env": dict(locked.lock.env),
            "gpu": locked.lock.gpu.model_dump(), "model": locked.lock.served_name,
            "facts": json.dumps(args.facts, sort_keys=True), "lockFile": str(locked.lock_path.resolve()),
            "gateDeadlineS": args.gate_deadline_s, "retry": args.retry, "holdS": args.hold_s,
            "hourlyPrice": args.hourly_price,
        }  # fmt: skip
        outputs = ["lock", "serving", "upstream", "phases", "lastHealthy", "record", "token"]
        hidden = ["facts", "lockFile"]
        options = child(self, depends_on=list(args.needs), hide_diffs=hidden)
        self.engine = Custom("Engine", name, inputs, outputs, options)
        self.lock, self.upstream = self.engine.out("lock"), self.engine.out("upstream")
        self.model = self.engine.out("model")
        self.phases, self.record = self.engine.out("phases"), self.engine.out("record")
        self.last_healthy = self.engine.out("lastHealthy")
        self.register_outputs({"lock": self.lock, "upstream": self.upstream, "phases": self.phases})
