"""The one way to skip that CI accepts."""

from __future__ import annotations

from typing import NoReturn

import pytest

CANNOT = "cannot be had on this machine: "


def cannot_here(what: str) -> NoReturn:
    """Skip for something the machine lacks and set-up cannot bring. Any other skip fails under CI."""
    pytest.skip(CANNOT + what)
