"""One streamed completion: asked, read line by line, and held against what a whole one is."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from .engine_http import Cut, Target, Unanswered, exchange, head


@dataclass
class Completion:
    """What one streamed completion was seen to be. Seconds count from the sending of the request."""

    text: str = ""
    chunks: int = 0
    first_s: float | None = None
    total_s: float = 0.0
    finish: str | None = None
    completion_tokens: int | None = None
    prompt_tokens: int | None = None
    model: str | None = None
    fingerprint: str | None = None
    done: bool = False


def complete(target: Target, model: str, prompt: str, max_tokens: int, budget_s: float) -> Completion:
    """One streamed chat completion, read to its end within `budget_s` seconds in all. Raises Unanswered."""
    body = {
        "model": model,
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": max_tokens,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    began, seen = time.monotonic(), Completion()
    try:
        with exchange(target, "POST", "/v1/chat/completions", budget_s, body) as response:
            if response.status != 200:
                raise Unanswered(f"completion: HTTP {response.status} {head(response.read(4096))}")
            while line := response.readline(1 << 20):
                take_line(seen, line, time.monotonic() - began)
    except Cut as e:
        raise Unanswered(f"completion: {e} after {seen.chunks} chunks") from e
    seen.total_s = time.monotonic() - began
    return seen


def take_line(seen: Completion, line: bytes, at_s: float) -> None:
    """One line of the event stream into `seen`. Raises Unanswered for an error, and for what is no chunk."""
    field, _, data = line.partition(b":")
    if field == b"event" and data.strip() == b"error":
        raise Unanswered("completion: an error event in the stream")
    if field != b"data":
        return
    try:
        _take(seen, data.strip(), at_s)
    except (AttributeError, TypeError, RecursionError):
        raise Unanswered(f"completion: a chunk of another shape: {head(data)}") from None


def _take(seen: Completion, data: bytes, at_s: float) -> None:
    if data == b"[DONE]":
        seen.done = True
        return
    try:
        event = json.loads(data)
    except ValueError:
        raise Unanswered(f"completion: a chunk that is not JSON: {head(data)}") from None
    if event.get("error") is not None or event.get("object") == "error":
        raise Unanswered(f"completion: an error in the stream: {head(data)}")
    seen.model = event.get("model") or seen.model
    seen.fingerprint = event.get("system_fingerprint") or seen.fingerprint
    if usage := event.get("usage"):
        seen.completion_tokens = _count(usage.get("completion_tokens"))
        seen.prompt_tokens = _count(usage.get("prompt_tokens"))
    for choice in event.get("choices") or []:
        delta = choice.get("delta") or {}
        text = (delta.get("content") or "") + (delta.get("reasoning") or delta.get("reasoning_content") or "")
        if text:
            seen.chunks += 1
            seen.first_s = at_s if seen.first_s is None else seen.first_s
            seen.text += text
        seen.finish = choice.get("finish_reason") or seen.finish


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) else None


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
