"""A chat completion's event stream, read after the fact: what came when, in words every server of the kind uses."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from .http1 import Response
from .sse import events

NAME_LIMIT = 100  # characters of a name that a server gives
COUNT_LIMIT = 10**9
_raw_decode = json.JSONDecoder().raw_decode


@dataclass(slots=True)
class Stream:
    """What an event stream said. Times in seconds of the stamps' clock; None = that never came.

    `tokens` holds, for every chunk with text in it, its time and the count of completion tokens so far where the server
    tells it in each chunk (vLLM's and SGLang's `continuous_usage_stats`).
    """

    role_at: float | None = None
    first_reasoning_at: float | None = None
    first_answer_at: float | None = None
    usage_at: float | None = None
    tokens: list[tuple[float, int | None]] = field(default_factory=list)
    usage: dict[str, Any] | None = None
    finish_reason: str | None = None
    providers: set[str] = field(default_factory=set)
    model: str | None = None
    done: bool = False
    error: str | None = None  # what the server said in the stream
    unreadable: str | None = None  # what is wrong with an event


def read_stream(response: Response) -> Stream:
    """Read a 200 answer's events. Never raises: what cannot be read is in `unreadable`, and reading stops there."""
    stream = Stream()
    try:
        for event in events(bytes(response.body), response.ends, response.stamps):
            if event.data.startswith(b"[DONE]"):
                stream.done = True
                break
            _take(stream, event.at, _json(event.data.decode()))
            if event.kind == b"error" and stream.error is None:
                stream.error = f"the stream said: {event.data[:300].decode(errors='replace')}"
            if stream.error or stream.unreadable:
                break
    except UnicodeDecodeError:
        stream.unreadable = "the stream holds bytes that are not UTF-8"
    except (ValueError, RecursionError):
        stream.unreadable = "the stream holds an event that is not whole JSON"
    return stream


def _json(text: str) -> Any:
    """What json.loads gives, in half of its time for the short texts that events are. Raises ValueError."""
    text = text.strip(" \t\r\n")
    value, end = _raw_decode(text)
    if end < len(text):
        raise ValueError("more than one value")
    return value


def _take(stream: Stream, at: float, event: Any) -> None:
    if not isinstance(event, dict):
        stream.unreadable = f"the stream holds an event that is no object: {str(event)[:100]}"
        return
    if event.get("error"):
        stream.error = f"error in the stream: {error_text(event['error'])}"
    if isinstance(name := event.get("provider"), str):
        stream.providers.add(name[:NAME_LIMIT])
    if isinstance(name := event.get("model"), str):
        stream.model = name[:NAME_LIMIT]
    count = None
    if isinstance(usage := event.get("usage"), dict):
        stream.usage, stream.usage_at = usage, at
        count = whole(usage.get("completion_tokens"))
    choices = event.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        return
    if isinstance(reason := choice.get("finish_reason"), str):
        stream.finish_reason = reason[:NAME_LIMIT]
    delta = choice.get("delta")
    if not isinstance(delta, dict):
        return
    if delta.get("role") and stream.role_at is None:
        stream.role_at = at
    answer, thought = delta.get("content"), delta.get("reasoning") or delta.get("reasoning_content")
    if thought and isinstance(thought, str) and stream.first_reasoning_at is None:
        stream.first_reasoning_at = at
    if answer and isinstance(answer, str) and stream.first_answer_at is None:
        stream.first_answer_at = at
    if answer or thought:
        stream.tokens.append((at, count))


def error_text(error: Any) -> str:
    """An API's error as one line, whichever of the usual shapes it has."""
    if isinstance(error, dict):
        code, message = error.get("code"), error.get("message") or error.get("type") or json.dumps(error)
        return " ".join(f"{message} ({code})".split())[:300] if code else " ".join(str(message).split())[:300]
    return " ".join(str(error).split())[:300]


def whole(value: Any) -> int | None:
    """A count as an API tells it, or None for anything that is not a whole number, or is larger than any answer."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= COUNT_LIMIT else None
