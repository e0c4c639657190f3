"""Deployment: the four components in their order, and what a change does to each.

| change | Volume | Machine | Engine | Front | downtime |
| --- | --- | --- | --- | --- | --- |
| image, argv, env, weights or drafter commit, draft tokens, lengths | same | same | update | same | one engine restart, requests held |
| old pins put back after a failed gate | same | same | same | same | none |
| key rotation, domain, paths | same | same | same | update | none |
| GPU type or count, cloud, place outside the search | same | replace | update | update | none (new first) or a cold start |
| search widened, reordered, new price cap | same | same | same | same | none |
| host step | same | same | same | same | none |
"""  # noqa: E501 - a table

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi_random import RandomId

from sluicegate.recipes.engines import adapter

from .custom import child
from .endpoint import Endpoint, EndpointArgs
from .engine_container import EngineContainer, EngineContainerArgs
from .gpu_instance import GpuInstance, GpuInstanceArgs
from .settings import Settings, from_stack
from .weight_cache import WeightCache, WeightCacheArgs


@dataclass(frozen=True, kw_only=True)
class DeploymentArgs:
    settings: Settings
    """The stack's config, checked."""
    api_key: pulumi.Input[str] | None = None
    """The key clients send; None: one is made."""


class Deployment(pulumi.ComponentResource):
    """One deployed recipe: one machine, one engine, one front."""

    def __init__(self, name: str, args: DeploymentArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("sluicegate:index:Deployment", name, None, opts)
        s, locked = args.settings, args.settings.locked
        root = str((s.project / s.machine.root).resolve()) if s.machine.root else None
        # URNs name neither organization nor backend: what tags name is this id, kept in the state.
        self.stack_id = RandomId(f"{name}-id", byte_length=8, opts=child(self))
        self.cache = WeightCache(
            f"{name}-cache",
            WeightCacheArgs(cloud=s.cloud, size_gb=s.cache.size_gb, keep=s.cache.keep, root=root),
            child(self),
        )
        search = s.machine.model_dump(by_alias=True, include={"regions", "markets", "max_price"}, exclude_none=True)
        self.gpu = GpuInstance(
            f"{name}-0-gpu",
            GpuInstanceArgs(
                cloud=s.cloud, stack=f"{pulumi.get_project()}.{pulumi.get_stack()}", stack_id=self.stack_id.hex,
                gpu=locked.lock.gpu.model_dump(), claim=self.cache.claim, search=search, price=s.machine.price,
                root=root, one_at_a_time=s.machine.replace == "one-at-a-time", host_setup=s.host_setup,
                host_setup_secret=s.host_setup_secret,
            ),
            child(self),
        )  # fmt: skip
        self.engine = EngineContainer(
            f"{name}-0-engine",
            EngineContainerArgs(
                locked=locked, facts=adapter(locked.lock.engine.name).host_facts(locked.recipe), host=self.gpu.host,
                machine_id=self.gpu.machine_id, gate_deadline_s=s.endpoint.gate_deadline_s, retry=s.endpoint.retry,
                hold_s=s.endpoint.hold_s, needs=self.gpu.steps, hourly_price=self.gpu.hourly_price,
            ),
            child(self),
        )  # fmt: skip
        self.endpoint = Endpoint(
            f"{name}-endpoint",
            EndpointArgs(
                host=self.gpu.host, upstream=self.engine.upstream, model=locked.lock.served_name,
                api_key=args.api_key, key_rotation=s.endpoint.key_rotation, key_overlap_s=s.endpoint.key_overlap_s,
                domain=s.endpoint.domain, port=s.endpoint.port, paths=s.endpoint.paths, hold_s=s.endpoint.hold_s,
            ),
            child(self),
        )  # fmt: skip
        self.outputs: dict[str, pulumi.Input[Any]] = {
            "url": self.endpoint.url, "model": locked.lock.served_name, "api_key": self.endpoint.api_key,
            "lock": self.engine.lock, "recipe": locked.recipe_name, "pins": locked.pins.as_config(),
            "accepted": "yes" if s.accepted else "trial", "phases": self.engine.phases,
            "hourly_price": self.gpu.hourly_price, "attempts": self.gpu.attempts,
            "last_healthy": self.engine.last_healthy, "record": self.engine.record,
        }  # fmt: skip
        self.register_outputs({"url": self.endpoint.url})


def deploy(name: str = "serve") -> Deployment:
    """A whole Pulumi program: the stack's config in, the stack's outputs exported."""
    settings = from_stack()
    key = pulumi.Config().require_secret("apiKey") if settings.own_key else None
    made = Deployment(name, DeploymentArgs(settings=settings, api_key=key))
    for output, value in made.outputs.items():
        pulumi.export(output, value)
    return made
