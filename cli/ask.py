"""`sluicegate ask "…"`: one streamed answer as a client gets it, and its speed."""

from __future__ import annotations

import json
import time
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import requests

from .stack import CliError, as_typed, named, one_line, outputs

CONNECT_S, SILENCE_S = 5, 300  # a request may be held while an engine is being changed


@dataclass
class Heard:
    """What came of a stream: times of the first and last text, the server's own count, and whether it ended well."""

    first: float | None = None
    last: float | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    finished: bool = False


class AskError(CliError):
    """No whole answer; `see` is the subcommand that tells more of the stack."""

    def __init__(self, said: str, see: str, stack: str | None = None) -> None:
        super().__init__(f"{said}: run `sluicegate {see}{named(stack)}`")
        self.said, self.see = said, see


def run(options: Namespace) -> int:
    found = outputs(options.stack)
    try:
        return ask(found["url"], found["model"], found["api_key"], as_typed(options.question), options.max_tokens)
    except AskError as e:
        raise AskError(e.said, e.see, options.stack) from e


def ask(url: str, model: str, key: str, question: str, max_tokens: int) -> int:
    """Print the streamed answer and its speed. Raises AskError for anything but a whole answer."""
    body = {
        "model": model, "messages": [{"role": "user", "content": question}], "stream": True,
        "max_tokens": max_tokens, "stream_options": {"include_usage": True},
    }  # fmt: skip
    session = requests.Session()
    # No proxy knows this machine's loopback, and a login in ~/.netrc would take the key's place.
    session.trust_env = urlsplit(url).hostname not in ("127.0.0.1", "::1", "localhost")
    session.auth = _Bearer(key)
    began = time.monotonic()
    try:
        with session.post(
            f"{url}/v1/chat/completions", json=body, stream=True, timeout=(CONNECT_S, SILENCE_S), allow_redirects=False
        ) as answer:
            if answer.status_code != 200:
                said = ": ".join(filter(None, [f"{url} answered {answer.status_code}", one_line(answer.text)]))
                raise AskError(said, "status")
            heard = _print_stream(answer)
    except requests.RequestException as e:
        reason = one_line(str(e.args[0] if e.args else e))
        raise AskError(f"{url} does not answer ({reason})", "status") from e
    if heard.first is None or heard.last is None:
        raise AskError(f"{url} ended its answer without a token", "logs")
    print(f"\n[{_speed(heard)}, first after {(heard.first - began) * 1000:.0f} ms]")
    if not heard.finished:
        raise AskError(f"{url} ended its answer in the middle", "logs")
    return 0


class _Bearer(requests.auth.AuthBase):
    def __init__(self, key: str) -> None:
        self._key = key

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._key}"
        return request


def _speed(heard: Heard) -> str:
    tokens = heard.usage.get("completion_tokens")
    if type(tokens) is not int:
        return "tokens not counted by the server"
    seconds = (heard.last or 0) - (heard.first or 0)
    return f"{tokens} tokens" + (
        f", {(tokens - 1) / seconds:.1f} tokens a second" if tokens > 1 and seconds > 0 else ""
    )


def _print_stream(answer: requests.Response) -> Heard:
    """Print text as it arrives."""
    heard = Heard()
    for event in _events(answer):
        if event.get("error"):
            raise AskError(f"an error in the answer: {one_line(json.dumps(event['error']))}", "logs")
        if isinstance(event.get("usage"), dict):
            heard.usage = event["usage"]
        for choice in event.get("choices") or []:
            heard.finished = heard.finished or bool(choice.get("finish_reason"))
            delta = choice.get("delta")
            if not isinstance(delta, dict):
                continue
            if text := delta.get("content") or delta.get("reasoning") or delta.get("reasoning_content"):
                heard.last = time.monotonic()
                heard.first = heard.first or heard.last
                print(text, end="", flush=True)
    return heard


def _events(answer: requests.Response) -> Iterator[dict[str, Any]]:
    for line in answer.iter_lines(chunk_size=None):
        data = line.removeprefix(b"data:").strip()
        if line.startswith(b"data:") and data != b"[DONE]":
            yield _event(data)


def _event(data: bytes) -> dict[str, Any]:
    try:
        event = json.loads(data)
        if isinstance(event, dict) and all(isinstance(choice, dict) for choice in event.get("choices") or []):
            return event
    except (ValueError, TypeError):
        pass
    said = one_line(data[:200].decode(errors="replace"))
    raise AskError(f"not an event of the OpenAI API in the answer: {said}", "logs")
