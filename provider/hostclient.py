"""Asking the host program: one verb, one answer; a job is started, followed, and asked to give up."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .resource import FailedError, Run, UnreachableError, Values

POLL_S = 0.1  # how soon a ^C is passed on
AGAIN_S = 5  # between two attempts to pass a ^C on

# What a result lacks when its job was killed before it could say it.
NO_ANSWER: Values = {"serving": None, "phases": {}, "gate": [], "cause": None, "log_tail": []}


class HostError(FailedError):
    """The host program answered that it could not; `kind` is the class of the fault there."""

    def __init__(self, text: str, kind: str) -> None:
        super().__init__(text)
        self.kind = kind


@dataclass(frozen=True)
class Host:
    """A machine that can be asked. A cloud's adapter says how, with `lines`; `places` are the stack's folders there."""

    places: Values

    def lines(self, verb: str, spec: Values) -> Iterator[str]:
        """What the host program prints for a verb, a line of JSON at a time as it comes.

        Raises HostError for a refusal, UnreachableError where the program did not answer or broke off.
        """
        raise NotImplementedError

    def ask(self, verb: str, spec: Values | None = None) -> Any:
        """The verb's answer. Raises HostError, or UnreachableError when the program did not answer at all."""
        return json.loads(next(self.lines(verb, {"places": self.places} | (spec or {}))))

    def run_job(self, run: Run, verb: str, spec: Values, tell: Callable[[Values], None]) -> Values:
        """Start a job and follow it to its result."""
        if why := run.gave_up():
            # A job that is asked to give up once it runs may have stopped what serves by then.
            raise FailedError(f"{why} before `{verb}` was started; nothing was touched.")
        lines = self.lines(verb, {"places": self.places, "follow": True} | spec)
        return self._follow(run, json.loads(next(lines))["job"], lines, tell)

    def follow(self, run: Run, job: str, tell: Callable[[Values], None]) -> Values:
        """Every event line to `tell`, the result line returned. Giving up asks the job to revert and waits for it."""
        return self._follow(run, job, self.lines("follow", {"places": self.places, "job": job, "offset": 0}), tell)

    def _follow(self, run: Run, job: str, lines: Iterator[str], tell: Callable[[Values], None]) -> Values:
        come: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=_pump, args=(lines, come), daemon=True).start()
        asked, next_ask = False, 0.0
        while True:
            if not asked and time.monotonic() >= next_ask and run.gave_up():
                asked, next_ask = self._revert(job), time.monotonic() + AGAIN_S
            try:
                line = come.get(timeout=POLL_S)
            except queue.Empty:
                continue
            if line is None:
                raise UnreachableError(
                    f"lost sight of job {job}; it goes on by itself: `sluicegate status` says what serves"
                )
            event = json.loads(line)
            if "result" in event:
                return {**NO_ANSWER, **event}
            tell(event)

    def _revert(self, job: str) -> bool:
        """Whether the job could be told; when not, it is still followed: what it does is the answer."""
        try:
            self.ask("revert", {"job": job})
        except FailedError:
            return False
        return True


def _pump(lines: Iterator[str], come: queue.Queue[str | None]) -> None:
    """Runs beside, so that a ^C is passed on while nothing comes; None is the end."""
    try:
        for line in lines:
            come.put(line)
    except FailedError:
        pass  # broken off
    finally:
        come.put(None)
