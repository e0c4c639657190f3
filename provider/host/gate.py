"""The gate: what must be seen before traffic is let through.

Knows HTTP and processes; everything particular to an engine (paths, metric names, prompts, limits) comes in the spec.
Every check that ran is in the answer with what was seen. No check at all is a failure.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .engine_http import Completion, Target, Unanswered, complete, get, get_json, metrics

POLL_S = 0.02
LONG_PROMPT_TOKENS = 2100  # above 2,048, where another attention path can be taken


class GateFailed(Exception):
    """A check failed for good; `check` names it and the message says what was seen."""

    def __init__(self, check: str, seen: str) -> None:
        super().__init__(f"{check}: {seen}")
        self.check, self.seen = check, seen


@dataclass
class Watch:
    """What the gate may ask of its surroundings: time, patience, and whether the engine still lives."""

    deadline: float  # on the monotonic clock
    exited: Callable[[], str | None]  # why the engine is gone, or None
    identity: Callable[[], str]  # what the process runs, read back; raises GateFailed
    pause: Callable[[float], None]  # sleeps, and raises when asked to give up
    tell: Callable[[str], None] = lambda _: None
    results: list[dict[str, Any]] = field(default_factory=list)
    passed_at: dict[str, float] = field(default_factory=dict)  # check -> when it passed, on the monotonic clock

    def left_s(self) -> float:
        return self.deadline - time.monotonic()

    def passed(self, check: str, seen: str) -> None:
        self.results.append({"check": check, "ok": True, "seen": seen})
        self.passed_at[check] = time.monotonic()

    def fail(self, check: str, seen: str) -> GateFailed:
        self.results.append({"check": check, "ok": False, "seen": seen})
        return GateFailed(check, seen)


def open_gate(watch: Watch, target: Target, engine: dict[str, Any], model: str) -> Completion:
    """Run every check of the gate in order; returns the first completion. Raises GateFailed at the first that fails."""
    wait_for_port(watch, target, engine)
    watch.passed("identity", watch.identity())
    if want := engine.get("version"):
        _check(watch, "version", lambda: _version(target, want))
    _check(watch, "model", lambda: _model(target, engine, model))
    first = _completion(watch, target, engine, model)
    if engine.get("speculation"):
        _speculation(watch, target, engine, model)
    _steady(watch, target, engine)
    return first


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
    try:
        watch.passed(name, look())
    except Unanswered as e:
        raise watch.fail(name, str(e)) from e


def _version(target: Target, want: dict[str, Any]) -> str:
    got = get_json(target, want["path"], 5).get(want["field"])
    if got != want["value"]:
        raise Unanswered(f"version {got}, the lock says {want['value']}")
    return str(got)


def _model(target: Target, engine: dict[str, Any], model: str) -> str:
    entries = get_json(target, engine["models"], 5).get("data") or []
    ids = [e.get("id") for e in entries]
    if model not in ids:
        raise Unanswered(f"serves {ids}, the lock says {model!r}")
    want, place = engine.get("max_model_len"), engine.get("max_len_field")
    if want and place:
        got: Any = entries[ids.index(model)]
        for part in place.split("."):
            got = got.get(part) if isinstance(got, dict) else None
        if got != want:
            raise Unanswered(f"{model} with a context of {got} tokens, the lock says {want}")
        return f"{model}, {got} tokens of context"
    return model


def ask(target: Target, model: str, prompt: str, max_tokens: int, budget_s: float, at_least: int = 2) -> Completion:
    """One completion that must be whole: tokens, a finish reason, usage and [DONE]. Raises Unanswered.

    `at_least` counted tokens must come; a model may answer the long prompt with its end mark alone.
    """
    seen = complete(target, model, prompt, max_tokens, budget_s)
    missing = [
        name
        for name, there in (
            ("a finish reason", seen.finish),
            ("usage", seen.completion_tokens is not None),
            ("[DONE]", seen.done),
        )
        if not there
    ]
    if missing:
        raise Unanswered(f"completion: the stream ended without {', '.join(missing)}")
    if (seen.completion_tokens or 0) < at_least or (at_least > 1 and seen.chunks < 1):
        raise Unanswered(f"completion: {seen.completion_tokens} tokens and {seen.chunks} chunks of text")
    if seen.model != model:
        raise Unanswered(f"completion: answered by model {seen.model!r}, the lock says {model!r}")
    return seen


def _completion(watch: Watch, target: Target, engine: dict[str, Any], model: str) -> Completion:
    prompts = engine["prompts"]
    try:
        first = ask(target, model, prompts["plain"], 16, _budget(watch, 120))
        watch.passed("completion", f"{first.completion_tokens} tokens, first after {first.first_s or 0:.2f} s")
        if engine.get("fingerprint") and first.fingerprint != engine["fingerprint_value"]:
            raise Unanswered(f"fingerprint {first.fingerprint!r}, expected {engine['fingerprint_value']!r}")
        if (engine.get("max_model_len") or 0) > LONG_PROMPT_TOKENS + 64:
            words = "tide " * LONG_PROMPT_TOKENS  # at least one token a word
            long = ask(target, model, words, 8, _budget(watch, 300), at_least=1)
            if (long.prompt_tokens or 0) <= 2048:
                raise Unanswered(f"a prompt meant to be above 2,048 tokens was {long.prompt_tokens}")
            watch.passed("completion", f"a prompt of {long.prompt_tokens} tokens")
    except Unanswered as e:
        why = watch.exited()
        raise watch.fail("completion", f"{e}; the engine {why}" if why else str(e)) from e
    return first


def _speculation(watch: Watch, target: Target, engine: dict[str, Any], model: str) -> None:
    """Drafts and accepted tokens must rise on a prompt whose answer repeats itself."""
    names, floor = engine["metrics"], engine.get("acceptance_floor")
    try:
        before = metrics(target, names["path"])
        ask(target, model, engine["prompts"]["predictable"], 96, _budget(watch, 120))
        after = metrics(target, names["path"])
    except Unanswered as e:
        raise watch.fail("speculation", str(e)) from e
    drafted, accepted = (after.get(names[k], 0) - before.get(names[k], 0) for k in ("draft_tokens", "accepted"))
    if not drafted:
        raise watch.fail("speculation", "the engine is healthy, but nothing was drafted")
    rate = accepted / drafted
    seen = f"{accepted:.0f} of {drafted:.0f} drafted tokens accepted ({rate:.2f})"
    if accepted and (floor is None or rate >= floor):
        watch.passed("speculation", seen)
    elif engine.get("not_helping") == "warn":
        watch.passed("speculation", f"healthy, but the drafter is not helping: {seen}, floor {floor}")
        watch.tell(f"healthy, but the drafter is not helping: {seen}, the recipe's floor is {floor}")
    else:
        raise watch.fail("speculation", f"healthy, but the drafter is not helping: {seen}, floor {floor}")


def _steady(watch: Watch, target: Target, engine: dict[str, Any]) -> None:
    seconds = float(engine["steady_s"])
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if why := watch.exited():
            raise watch.fail("steady", f"the engine {why}")
        watch.pause(min(0.1, max(0.0, end - time.monotonic())))
    try:
        status, _ = get(target, engine["health"], 5)
    except Unanswered as e:
        raise watch.fail("steady", str(e)) from e
    if status != 200 or watch.exited():
        raise watch.fail("steady", f"HTTP {status} after {seconds} s")
    watch.passed("steady", f"same process, still answering {seconds} s later")


def _budget(watch: Watch, most_s: float) -> float:
    return max(1.0, min(most_s, watch.left_s()))
