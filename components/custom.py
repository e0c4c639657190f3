"""The plugin's resources as this program sees them: a token, and every output as an attribute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pulumi


class Custom(pulumi.CustomResource):
    """A resource of the `sluicegate` plugin; `outputs` are the names it answers beyond its inputs."""

    def __init__(
        self, kind: str, name: str, inputs: Mapping[str, Any], outputs: Iterable[str], opts: pulumi.ResourceOptions
    ) -> None:
        given = {k: v for k, v in inputs.items() if v is not None}
        super().__init__(f"sluicegate:index:{kind}", name, {**given, **dict.fromkeys(outputs)}, opts)

    def out(self, name: str) -> pulumi.Output[Any]:
        value: pulumi.Output[Any] = pulumi.Output.from_input(getattr(self, name))
        return value


def child(parent: pulumi.Resource, **options: Any) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions(parent=parent, **options)
