"""Many requests at once: N kept in flight (closed loop), or arriving at random at a given rate (open loop, Poisson)."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .exchange import Call, Exchange, Origin
from .loop import drive
from .measure import Measurement, measure
from .point import summarise_point
from .prompts import salted
from .targets import Target

Row = dict[str, Any]
OnRow = Callable[[Row], None]
MAX_IN_FLIGHT = 512  # of an open loop: an arrival beyond it is not sent and counts as failed


@dataclass(frozen=True, slots=True)
class Step:
    """One point of a load curve: `concurrency` requests kept in flight, or `rate` arrivals per second; either one."""

    requests: int
    concurrency: int | None = None
    rate: float | None = None

    def __str__(self) -> str:
        return f"{self.concurrency} in flight" if self.concurrency else f"{self.rate:g}/s"


class Interrupted(KeyboardInterrupt):
    """The user stopped a step; `point` is what its finished requests say."""

    def __init__(self, point: dict[str, Any]) -> None:
        super().__init__()
        self.point = point


class Load:
    """Runs steps against one target. `settings` has prompts, max_tokens, temperature, top_p, timeout_s, salt, seed.

    `resumed` counts the earlier runs of the same result, whose salted prompts may not come again.
    """

    def __init__(self, target: Target, origin: Origin, settings: dict[str, Any], resumed: int = 0) -> None:
        self._target, self._origin, self._settings, self._resumed = target, origin, settings, resumed
        self._texts = self._prompts()

    def warm_up(self) -> Row:
        """One request that counts nowhere."""
        rows: list[Row] = []
        self._go([None], 1, rows.append)
        return rows[0]

    def step(self, step: Step, on_row: OnRow) -> dict[str, Any]:
        """Measure one step; `on_row` sees each request as it ends. Raises Interrupted on ^C."""
        rows: list[Row] = []

        def keep(row: Row) -> None:
            rows.append(row)
            on_row(row)

        begun = time.perf_counter()
        planned = self._arrivals(step, begun)
        limit = step.concurrency or MAX_IN_FLIGHT
        try:
            self._go(planned, limit, keep, begun)
        except KeyboardInterrupt as stop:
            raise Interrupted(summarise_point(step.concurrency, step.rate, rows, self._settings, whole=False)) from stop
        return summarise_point(step.concurrency, step.rate, rows, self._settings)

    def _arrivals(self, step: Step, begun: float) -> list[float | None]:
        if step.rate is None:
            return [None] * step.requests
        rng, at, planned = random.Random(f"{self._settings['seed']} {step.rate}"), begun, list[float | None]()
        for _ in range(step.requests):
            planned.append(at)
            at += rng.expovariate(step.rate)
        return planned

    def _prompts(self) -> Iterator[tuple[str, str]]:
        number, prompts = 0, self._settings["prompts"]
        while True:
            for name, text in prompts.items():
                number += 1
                yield name, salted(text, self._settings["salt"], "load", self._resumed, number)

    def _call(self) -> Call:
        name, text = next(self._texts)
        return self._target.call(self._origin, text, self._settings, name)

    def _go(self, planned: Sequence[float | None], limit: int, on_row: OnRow, begun: float = 0.0) -> None:
        todo = list(reversed(planned))

        def pull(in_flight: int) -> Call | float | None:
            while todo:
                due = todo[-1]
                if due is None and in_flight >= limit:
                    return None
                if due is not None and due > time.perf_counter():
                    return due
                todo.pop()
                call = self._call()
                call.due = due
                if due is None or in_flight < limit:
                    return call
                on_row(_not_sent(call, due - begun, limit))
            return None

        def done(exchange: Exchange) -> None:
            row = measure(exchange, self._target.provider)
            error = self._target.mask(row.error) if row.error else None
            at = round((exchange.started or exchange.begun) - begun, 6)
            on_row({"prompt": exchange.call.tag, "started_s": at} | row.as_json() | {"error": error})

        drive(pull, done)


def _not_sent(call: Call, at: float, limit: int) -> Row:
    row = Measurement(error=f"not sent: {limit} requests were in flight already, this client's limit")
    return {"prompt": call.tag, "started_s": round(at, 6)} | row.as_json()
