"""How `make bench` prints a figure: the median with the spread, and what is aimed at."""

from __future__ import annotations

import statistics


def say(text: str) -> None:
    print(text, flush=True)


def figure(name: str, values: list[float], unit: str, wanted: str | None = None) -> None:
    low, mid, high = min(values), statistics.median(values), max(values)
    aim = f"  (aim: {wanted})" if wanted else ""
    say(f"  {name:<62} {mid:6.2f} {unit:<6} [{low:.2f} to {high:.2f}, n={len(values)}]{aim}")
