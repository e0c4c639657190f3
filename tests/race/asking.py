"""Ways to send requests to a server of the tests."""

from __future__ import annotations

from typing import Any

from sluicegate.race.loop import drive
from sluicegate.race.measure import Measurement, measure
from sluicegate.race.targets import Target

SETTINGS = {"max_tokens": 512, "temperature": 0.7, "top_p": 0.8, "timeout_s": 20.0}


def ask(url: str, times: int = 1, **settings: Any) -> list[Measurement]:
    """Send `times` requests one after another to a base URL and measure them."""
    provider = settings.pop("provider", None)
    target = Target("it", url, "m")
    origin, rows = target.resolve(), list[Measurement]()
    calls = [target.call(origin, "hello", SETTINGS | settings) for _ in range(times)]
    drive(lambda busy: calls.pop() if calls and not busy else None, lambda e: rows.append(measure(e, provider)))
    return rows
