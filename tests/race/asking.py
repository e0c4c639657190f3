"""Ways to send requests to a server of the tests, and to run the commands that do."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from sluicegate.race.__main__ import main
from sluicegate.race.loop import drive
from sluicegate.race.measure import Measurement, measure
from sluicegate.race.targets import Target

SETTINGS = {"max_tokens": 512, "temperature": 0.7, "top_p": 0.8, "timeout_s": 20.0}

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}  # of a command in a process of its own


def run(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    """`python -m sluicegate.race WORDS` in this process; its exit code."""
    monkeypatch.setattr("sys.argv", ["race", *map(str, words)])
    return main()


def ask(url: str, times: int = 1, **settings: Any) -> list[Measurement]:
    """Send `times` requests one after another to a base URL and measure them."""
    provider = settings.pop("provider", None)
    target = Target("it", url, "m")
    origin, rows = target.resolve(), list[Measurement]()
    calls = [target.call(origin, "hello", SETTINGS | settings) for _ in range(times)]
    drive(lambda busy: calls.pop() if calls and not busy else None, lambda e: rows.append(measure(e, provider)))
    return rows
