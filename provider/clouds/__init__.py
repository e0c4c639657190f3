"""Where machines and disks come from. One adapter a file; a cloud's SDK is imported only when its cloud is used.

An adapter has `claim(inputs, token) -> machine facts`, `connect(host) -> Host`, `own`, `release`: see `local.py`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..hostclient import HostError

CLOUDS = ("local",)


def adapter(cloud: str) -> Any:
    """The adapter's module. Raises HostError for a cloud without one, as the state of a newer version may name."""
    if cloud not in CLOUDS:
        raise HostError(
            f"cloud {cloud!r} is not supported by this version; allowed: {', '.join(CLOUDS)}", "unsupported"
        )
    return import_module(f".{cloud}", __name__)
