"""Where machines and disks come from. One adapter a file; a cloud's SDK is imported only when its cloud is used.

What an adapter has to supply is in `calls.py`; `tests/provider/clouds/contract.py` holds it to the rules.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from ..hostclient import HostError
from .calls import Cloud

if TYPE_CHECKING:
    from . import local

    _ADAPTERS: list[Cloud] = [local]  # held against the calls by the type checker alone

CLOUDS = ("local",)


def adapter(cloud: str) -> Cloud:
    """The adapter's module. Raises HostError for a cloud without one, as the state of a newer version may name."""
    if cloud not in CLOUDS:
        raise HostError(
            f"cloud {cloud!r} is not supported by this version; allowed: {', '.join(CLOUDS)}", "unsupported"
        )
    return cast(Cloud, import_module(f".{cloud}", __name__))
