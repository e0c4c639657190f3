"""Speaking to an engine: plain HTTP over a Unix socket or an address, with a budget of seconds a request."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


class Unanswered(Exception):
    """No usable answer: the message says what came instead."""


@dataclass(frozen=True)
class Target:
    """Where to ask: a Unix socket, or a URL with a key."""

    socket: Path | None = None
    url: str = ""
    key: str = field(default="", repr=False)

    def connect(self, budget_s: float) -> http.client.HTTPConnection:
        if self.socket:
            return _UnixConnection(self.socket, budget_s)
        parts = urlsplit(self.url)
        if parts.scheme == "https":
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(parts.netloc, timeout=budget_s, context=context)
        return http.client.HTTPConnection(parts.netloc, timeout=budget_s)

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"} if self.key else {}


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, budget_s: float) -> None:
        super().__init__("engine", timeout=budget_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def get(target: Target, path: str, budget_s: float) -> tuple[int, bytes]:
    """Status and body. Raises Unanswered when nothing answers within the budget."""
    connection = target.connect(budget_s)
    try:
        connection.request("GET", path, headers=target.headers())
        response = connection.getresponse()
        return response.status, response.read(8 << 20)
    except (OSError, http.client.HTTPException) as e:
        raise Unanswered(f"GET {path}: {_why(e)}") from e
    finally:
        connection.close()


def get_json(target: Target, path: str, budget_s: float) -> Any:
    status, body = get(target, path, budget_s)
    if status != 200:
        raise Unanswered(f"GET {path}: HTTP {status} {_head(body)}")
    try:
        return json.loads(body)
    except ValueError:
        raise Unanswered(f"GET {path}: not JSON: {_head(body)}") from None


def metrics(target: Target, path: str, budget_s: float = 5) -> dict[str, float]:
    """Prometheus samples summed over their labels."""
    status, body = get(target, path, budget_s)
    if status != 200:
        raise Unanswered(f"GET {path}: HTTP {status}")
    found: dict[str, float] = {}
    for line in body.decode(errors="replace").splitlines():
        name, _, value = line.rpartition(" ")
        if name and not line.startswith("#"):
            try:
                found[name.partition("{")[0]] = found.get(name.partition("{")[0], 0.0) + float(value)
            except ValueError:
                continue
    return found


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
    began = time.monotonic()
    seen = Completion()
    connection = target.connect(budget_s)
    try:
        connection.request(
            "POST",
            "/v1/chat/completions",
            json.dumps(body).encode(),
            target.headers() | {"Content-Type": "application/json"},
        )
        response = connection.getresponse()
        if response.status != 200:
            raise Unanswered(f"completion: HTTP {response.status} {_head(response.read(4096))}")
        while line := response.readline():
            left = budget_s - (time.monotonic() - began)
            if left <= 0:
                raise Unanswered(f"completion: the stream had not ended after {budget_s:.0f} s ({seen.chunks} chunks)")
            if connection.sock:
                connection.sock.settimeout(left)
            if line.startswith(b"data:"):
                _take(seen, line[5:].strip(), time.monotonic() - began)
    except (OSError, http.client.HTTPException) as e:
        raise Unanswered(f"completion: {_why(e)} after {seen.chunks} chunks") from e
    finally:
        connection.close()
    seen.total_s = time.monotonic() - began
    return seen


def _take(seen: Completion, data: bytes, at_s: float) -> None:
    if data == b"[DONE]":
        seen.done = True
        return
    try:
        event = json.loads(data)
    except ValueError:
        raise Unanswered(f"completion: a chunk that is not JSON: {_head(data)}") from None
    if not isinstance(event, dict) or event.get("error"):
        raise Unanswered(f"completion: an error in the stream: {_head(data)}")
    seen.model = event.get("model") or seen.model
    seen.fingerprint = event.get("system_fingerprint") or seen.fingerprint
    if usage := event.get("usage"):
        seen.completion_tokens = usage.get("completion_tokens")
        seen.prompt_tokens = usage.get("prompt_tokens")
    for choice in event.get("choices") or []:
        delta = choice.get("delta") or {}
        text = (delta.get("content") or "") + (delta.get("reasoning") or delta.get("reasoning_content") or "")
        if text:
            seen.chunks += 1
            seen.first_s = at_s if seen.first_s is None else seen.first_s
            seen.text += text
        seen.finish = choice.get("finish_reason") or seen.finish


def _why(e: Exception) -> str:
    if isinstance(e, TimeoutError):
        return "no answer in time"
    return getattr(e, "strerror", None) or str(e) or type(e).__name__


def _head(body: bytes) -> str:
    return body[:300].decode(errors="replace").strip()
