"""The race: who is asked what in which order, what is tried again, and when a target is given up."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .exchange import Call, Exchange, Origin
from .loop import drive, explain
from .measure import measure
from .prompts import salted
from .targets import Target

TRIES = 3  # of a request that was refused for now (429, 503)
PAUSE_S = 5.0  # before the next try, where the server names no time
LONGEST_PAUSE_S = 60.0  # a server that asks for more has refused
GIVE_UP_AFTER = 3  # failures in a row and no success yet: the rest would only cost time
WARM_UP = 0  # the round of the request that is not counted


@dataclass(frozen=True, slots=True)
class Job:
    """One request of the race: target number, round (from 1; 0 = warm-up), prompt name, try, and when it may go."""

    target: int
    round: int
    prompt: str
    tries: int = 1
    not_before: float = 0.0


Row = dict[str, Any]
OnRow = Callable[[Job, Row], None]
OnOut = Callable[[int, str], None]


def schedule(targets: int, prompts: Sequence[str], rounds: int, seed: int, back_to_back: bool) -> list[Job]:
    """The jobs in order, warm-ups first. The same arguments give the same order.

    Interleaved: every prompt of every round goes to all targets one after another, in an order drawn anew each time, so
    that a slow quarter of an hour is everyone's. Back to back: all of one target, then the next, as the seeds did.
    """
    rng = random.Random(seed)
    warm = [Job(t, WARM_UP, prompts[0]) for t in range(targets)]
    if back_to_back:
        per_target = [[Job(t, r, p) for r in range(1, rounds + 1) for p in prompts] for t in range(targets)]
        return [job for first, rest in zip(warm, per_target, strict=True) for job in [first, *rest]]
    jobs = list(warm)
    for number in range(1, rounds + 1):
        for prompt in prompts:
            jobs += [Job(t, number, prompt) for t in rng.sample(range(targets), targets)]
    return jobs


class Race:
    """Runs jobs against targets. `on_row` gets each counted or warm-up row; `on_out` a target that is out and why.

    `resumed` counts the earlier runs of the same result, whose salted prompts may not come again.
    """

    def __init__(
        self, targets: Sequence[Target], settings: dict[str, Any], on_row: OnRow, on_out: OnOut, resumed: int = 0
    ) -> None:
        self._targets, self._settings, self._on_row, self._on_out = targets, settings, on_row, on_out
        self._resumed = resumed
        self._origins: dict[int, Origin] = {}
        self._out: set[int] = set()
        self._failures = dict.fromkeys(range(len(targets)), 0)
        self._jobs: list[Job] = []
        self._begun = time.perf_counter()

    def run(self, jobs: Sequence[Job], succeeded: Sequence[int] = ()) -> None:
        """Send the jobs; targets in `succeeded` have answered before (a resumed race) and are not given up.

        Raises KeyboardInterrupt when interrupted; every row so far has then been handed over.
        """
        for number in succeeded:
            self._failures[number] = -1
        for number, target in enumerate(self._targets):
            if target.unusable:
                self._drop(number, target.unusable)
                continue
            try:
                self._origins[number] = target.resolve()
            except OSError as error:
                self._drop(number, f"cannot resolve {target.address()[0]}: {explain(error)}")
        self._jobs = list(jobs)
        drive(self._pull, self._done)

    def _pull(self, in_flight: int) -> Call | float | None:
        if in_flight >= self._settings["concurrency"]:
            return None
        self._jobs = [job for job in self._jobs if job.target not in self._out]
        now = time.perf_counter()
        for index, job in enumerate(self._jobs):
            if job.not_before <= now:
                del self._jobs[index]
                return self._call(job)
        return min((job.not_before for job in self._jobs), default=None)

    def _call(self, job: Job) -> Call:
        target, settings = self._targets[job.target], self._settings
        place = (target.name, job.round, job.prompt, job.tries, self._resumed)
        text = salted(settings["prompts"][job.prompt], settings["salt"], *place)
        return target.call(self._origins[job.target], text, settings, job)

    def _done(self, exchange: Exchange) -> None:
        job = exchange.call.tag
        assert isinstance(job, Job)
        target = self._targets[job.target]
        row = measure(exchange, target.provider)
        if row.error and row.status in (429, 503) and job.tries < TRIES:
            pause = PAUSE_S if row.retry_after_s is None else row.retry_after_s
            if pause <= LONGEST_PAUSE_S:
                self._jobs.insert(0, Job(job.target, job.round, job.prompt, job.tries + 1, time.perf_counter() + pause))
                return
        told: Row = {"prompt": job.prompt, "round": job.round, "tries": job.tries}
        told |= {"started_s": round((exchange.started or exchange.begun) - self._begun, 3)}
        if job.round == WARM_UP:
            told["dns_ms"] = round(exchange.call.origin.dns_ms, 3)
        error = target.mask(row.error) if row.error else None
        self._on_row(job, told | row.as_json() | {"error": error})
        if not error:
            self._failures[job.target] = -1
        elif self._failures[job.target] >= 0:
            self._failures[job.target] += 1
            refused = row.status is not None and 300 <= row.status < 500 and row.status not in (408, 425, 429)
            if refused or self._failures[job.target] >= GIVE_UP_AFTER:
                self._drop(job.target, error)

    def _drop(self, number: int, why: str) -> None:
        self._out.add(number)
        self._on_out(number, why)
