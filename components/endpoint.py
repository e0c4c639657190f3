"""Endpoint: the front with its key. Its url resolves only after one completion through it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi_random import RandomPassword

from .custom import Custom, child


@dataclass(frozen=True, kw_only=True)
class EndpointArgs:
    host: pulumi.Input[Mapping[str, Any]]
    """How the host program is reached; Machine's output."""
    upstream: pulumi.Input[str]
    """The engine's fixed path behind the front; EngineContainer's output."""
    model: str
    """The served model's name."""
    api_key: pulumi.Input[str] | None = None
    """The key clients send; None: one is made, and made anew when `key_rotation` changes."""
    key_rotation: str = "1"
    """Any text; another one makes another key."""
    key_overlap_s: float = 60
    """Seconds the key before stays good, so that clients can move; 0 when it leaked."""
    domain: str | None = None
    """Public name with TLS; None: loopback only."""
    port: int | None = None
    """Loopback port; None: a free one, kept."""
    paths: Sequence[str] = ("/v1/*",)
    """Everything else is 404."""
    hold_s: float = 120
    """Seconds a request waits for an engine in a swap."""
    deadline_s: float = 120
    """Seconds for the first completion through the public address."""


class Endpoint(pulumi.ComponentResource):
    """TLS, key, allowed paths, public address."""

    url: pulumi.Output[str]
    """Base of the OpenAI-compatible API, without `/v1`."""
    api_key: pulumi.Output[str]

    def __init__(self, name: str, args: EndpointArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("sluicegate:index:Endpoint", name, None, opts)
        key: pulumi.Input[str] | None = args.api_key
        if key is None:
            # Letters and digits only: the key goes into headers, shells and files.
            made = RandomPassword(
                f"{name}-key", length=40, special=False, keepers={"rotation": args.key_rotation}, opts=child(self)
            )
            key = made.result
        inputs = {
            "host": args.host, "upstream": args.upstream, "model": args.model, "apiKey": pulumi.Output.secret(key),
            "paths": list(args.paths), "holdS": args.hold_s, "keyOverlapS": args.key_overlap_s,
            "deadlineS": args.deadline_s, "domain": args.domain, "port": args.port,
        }  # fmt: skip
        self.front = Custom("Front", name, inputs, ["url", "token"], child(self))
        self.url, self.api_key = self.front.out("url"), pulumi.Output.secret(self.front.out("apiKey"))
        self.register_outputs({"url": self.url})
