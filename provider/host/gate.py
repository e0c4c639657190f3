"""The gate: what must be seen before traffic is let through.

Knows HTTP and processes; everything particular to an engine (paths, metric names, prompts, limits) comes in the spec.
Every check that ran is in the answer with what was seen. No check at all is a failure.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .completion import Completion, ask
from .engine_http import Target, Unanswered, get, get_json, metrics

POLL_S = 0.02
LAST_WORDS_S = 0.2  # a connection breaks a moment before the process that held it is seen to be gone
AFTERMATH_S = 0.05  # what a completion breaks, it breaks at its end
LONG_PROMPT_TOKENS = 2100  # above 2,048, where another attention path can be taken


class GateFailed(Exception):
    """A check failed for good; `check` names it and the message says what was seen."""

    def __init__(self, check: str, seen: str) -> None:
        super().__init__(seen if seen.startswith(f"{check}: ") else f"{check}: {seen}")
        self.check, self.seen = check, seen


@dataclass
class Watch:
    """What the gate may ask of its surroundings: time, patience, and whether the engine still lives."""

    deadline: float  # on the monotonic clock
    exited: Callable[[], str | None]  # why the engine is gone, or None
    identity: Callable[[], str]  # what the process runs, read back; raises Unanswered
    pause: Callable[[float], None]  # sleeps, and raises when asked to give up
    tell: Callable[[str], None] = lambda _: None
    results: list[dict[str, Any]] = field(default_factory=list)
    passed_at: dict[str, float] = field(default_factory=dict)  # check -> when it passed, on the monotonic clock
    since: float = field(default_factory=time.monotonic)  # when the check that runs began

    def left_s(self) -> float:
        return self.deadline - time.monotonic()

    def passed(self, check: str, seen: str) -> None:
        self._note(check, True, seen)
        self.passed_at[check] = self.since

    def fail(self, check: str, seen: str) -> GateFailed:
        self._note(check, False, seen)
        return GateFailed(check, seen)

    def _note(self, check: str, ok: bool, seen: str) -> None:
        began, self.since = self.since, time.monotonic()
        self.results.append({"check": check, "ok": ok, "seen": seen, "s": round(self.since - began, 3)})


def open_gate(watch: Watch, target: Target, engine: dict[str, Any], model: str) -> Completion:
    """Run every check of the gate in order; returns the first completion. Raises GateFailed at the first that fails."""
    seen: list[Completion] = []
    wait_for_port(watch, target, engine)
    _check(watch, "identity", watch.identity)
    if want := engine.get("version"):
        _check(watch, "version", lambda: _version(target, want))
    _check(watch, "model", lambda: _model(target, engine, model))
    _check(watch, "completion", lambda: _completion(watch, target, engine, model, seen))
    if (engine.get("max_model_len") or 0) > LONG_PROMPT_TOKENS + 64:
        _check(watch, "completion", lambda: _long_completion(watch, target, model))
    if engine.get("speculation"):
        _check(watch, "speculation", lambda: _speculation(watch, target, engine, model))
    _check(watch, "steady", lambda: _steady(watch, target, engine))
    return seen[0]


def wait_for_port(watch: Watch, target: Target, engine: dict[str, Any]) -> None:
    """Ask for health until it is there, the engine is gone, or the deadline has passed."""
    last = "nothing asked yet"
    while watch.left_s() > 0:
        if why := watch.exited():
            raise watch.fail("port", f"the engine {why}")
        try:
            status, _ = get(target, engine["health"], min(5, max(0.1, watch.left_s())))
            last = f"HTTP {status}"
            if status == 200:
                watch.passed("port", f"{engine['health']} answered 200")
                return
        except Unanswered as e:
            last = str(e)
        watch.pause(POLL_S)
    raise watch.fail("port", f"not ready within its deadline; last answer: {last}")


def _check(watch: Watch, name: str, look: Callable[[], str]) -> None:
    if watch.left_s() <= 0:
        raise watch.fail(name, "the deadline had passed before this check")
    try:
        watch.passed(name, look())
    except Unanswered as e:
        watch.pause(0)  # an answer that was not waited for because somebody gave up is no fault of the engine
        end = time.monotonic() + LAST_WORDS_S
        while (why := watch.exited()) is None and time.monotonic() < end:
            time.sleep(POLL_S)
        raise watch.fail(name, f"{e}; the engine {why}" if why else str(e)) from e


def _version(target: Target, want: dict[str, Any]) -> str:
    answer = get_json(target, want["path"], 5)
    got = answer.get(want["field"]) if isinstance(answer, dict) else None
    if got != want["value"]:
        raise Unanswered(f"version {got}, the lock says {want['value']}")
    return str(got)


def _model(target: Target, engine: dict[str, Any], model: str) -> str:
    answer = get_json(target, engine["models"], 5)
    data = answer.get("data") if isinstance(answer, dict) else None
    entries = {e.get("id"): e for e in data if isinstance(e, dict)} if isinstance(data, list) else {}
    if model not in entries:
        raise Unanswered(f"serves {list(entries)}, the lock says {model!r}")
    want, place = engine.get("max_model_len"), engine.get("max_len_field")
    if not (want and place):
        return model
    got: Any = entries[model]
    for part in place.split("."):
        got = got.get(part) if isinstance(got, dict) else None
    if got != want:
        raise Unanswered(f"{model} with a context of {got} tokens, the lock says {want}")
    return f"{model}, {got} tokens of context"


def _completion(watch: Watch, target: Target, engine: dict[str, Any], model: str, keep: list[Completion]) -> str:
    seen = ask(target, model, engine["prompts"]["plain"], 4, _budget(watch, 120))
    if engine.get("fingerprint") and seen.fingerprint != engine["fingerprint_value"]:
        raise Unanswered(f"fingerprint {seen.fingerprint!r}, expected {engine['fingerprint_value']!r}")
    keep.append(seen)
    return f"{seen.completion_tokens} tokens, first after {seen.first_s or 0:.2f} s"


def _long_completion(watch: Watch, target: Target, model: str) -> str:
    words = "tide " * LONG_PROMPT_TOKENS  # at least one token a word
    seen = ask(target, model, words, 8, _budget(watch, 300), at_least=1)
    if (seen.prompt_tokens or 0) <= 2048:
        raise Unanswered(f"a prompt meant to be above 2,048 tokens was {seen.prompt_tokens}")
    return f"a prompt of {seen.prompt_tokens} tokens"


def _speculation(watch: Watch, target: Target, engine: dict[str, Any], model: str) -> str:
    """Drafts and accepted tokens must rise on a prompt whose answer repeats itself."""
    names, floor = engine["metrics"], engine.get("acceptance_floor")
    before = metrics(target, names["path"])
    ask(target, model, engine["prompts"]["predictable"], 96, _budget(watch, 120))
    after = metrics(target, names["path"])
    drafted, accepted = (after.get(names[k], 0) - before.get(names[k], 0) for k in ("draft_tokens", "accepted"))
    if drafted <= 0:
        raise Unanswered("the engine is healthy, but nothing was drafted")
    rate = accepted / drafted
    seen = f"{accepted:.0f} of {drafted:.0f} drafted tokens accepted ({rate:.2f})"
    if accepted > 0 and (floor is None or rate >= floor):
        return seen
    said = f"healthy, but the drafter is not helping: {seen}, the recipe's floor is {floor}"
    if engine.get("not_helping") != "warn":
        raise Unanswered(said)
    watch.tell(said)
    return said


def _steady(watch: Watch, target: Target, engine: dict[str, Any]) -> str:
    """Still the same process `steady_s` after it first answered, and a moment after its last completion."""
    first, last = watch.passed_at["port"], time.monotonic()
    end = max(first + float(engine["steady_s"]), last + AFTERMATH_S)
    while (left := end - time.monotonic()) > 0 and not watch.exited():
        watch.pause(min(0.1, left))
    status, _ = get(target, engine["health"], 5)
    since = f"{time.monotonic() - first:.1f} s after it first answered"
    if status != 200:
        raise Unanswered(f"HTTP {status} {since}")
    if watch.exited():
        raise Unanswered(f"{engine['health']} answered 200 without it")
    return f"same process, still answering {since}"


def _budget(watch: Watch, most_s: float) -> float:
    return max(0.1, min(most_s, watch.left_s()))
