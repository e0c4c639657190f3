"""Where machines and disks come from. One adapter a file; a cloud's SDK is imported only when its cloud is used.

An adapter has `claim(inputs, token) -> machine facts`, `connect(host) -> Host`, `own`, `release`: see `local.py`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

CLOUDS = ("local",)


def adapter(cloud: str) -> Any:
    """The adapter's module. Raises ValueError for a cloud this version has none for."""
    if cloud not in CLOUDS:
        raise ValueError(f"cloud {cloud!r} is not supported by this version; allowed: {', '.join(CLOUDS)}")
    return import_module(f".{cloud}", __name__)
