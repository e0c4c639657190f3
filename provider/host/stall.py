"""The stall probe: an engine can answer its health check for ever and compute nothing.

Beside a supervisor it looks from time to time. Requests that run while no token moves are a question, asked with one
completion of its own; an engine that misses several in a row is to be started again. Idle engines are left alone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .completion import ask
from .engine_http import Target, Unanswered, Work, work


class StallProbe:
    """`verdict` is why the engine has to be started again, once it has to be; `begin` starts anew with a new engine.

    `facts` has `socket`, `model` and of the engine's facts `metrics`, `prompts` and `stall` (`every_s` seconds between
    two looks, which is also a completion's budget; `misses` in a row that condemn it).
    """

    def __init__(self, facts: dict[str, Any], watching: Callable[[], bool]) -> None:
        self._facts, self._watching = facts, watching
        self._target = Target(socket=Path(facts["socket"]))
        self.begin()

    def begin(self) -> None:
        self.verdict: str | None = None
        self._misses = 0
        self._last: Work | None = None

    def run(self) -> None:
        """For a thread of its own."""
        while True:
            time.sleep(self._facts["stall"]["every_s"])
            if self._watching() and not self.verdict:
                self._look()

    def _look(self) -> None:
        stall, load = self._facts["stall"], ""
        try:
            seen = work(self._target, self._facts)
            before, self._last = self._last, seen
            if not seen.load or before is None or seen.moved != before.moved:
                self._misses = 0
                return
            load = f"{seen.load}; "
        except Unanswered as e:
            load = f"{e}; "
        try:
            ask(self._target, self._facts["model"], self._facts["prompts"]["plain"], 2, float(stall["every_s"]))
            self._misses = 0
        except Unanswered as e:
            self._misses += 1
            if self._misses >= stall["misses"]:
                self.verdict = f"stalled: {load}{self._misses} completions in a row failed, the last: {e}"


def watch_beside(facts: dict[str, Any], watching: Callable[[], bool]) -> StallProbe:
    """A probe that looks, in a thread, for as long as this process lives and whenever `watching()`."""
    probe = StallProbe(facts, watching)
    threading.Thread(target=probe.run, daemon=True).start()
    return probe
