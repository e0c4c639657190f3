"""`sluicegate ask "…"`: one streamed answer as a client gets it, and its speed."""

from __future__ import annotations

import json
import time
from argparse import Namespace
from collections.abc import Iterator
from typing import Any

import requests

from .stack import CliError, outputs

CONNECT_S, SILENCE_S = 5, 300  # a request may be held while an engine is being changed


def run(options: Namespace) -> int:
    found = outputs(options.stack)
    body = {
        "model": found["model"], "messages": [{"role": "user", "content": options.question}], "stream": True,
        "max_tokens": options.max_tokens, "stream_options": {"include_usage": True},
    }  # fmt: skip
    began = time.monotonic()
    try:
        answer = requests.post(
            f"{found['url']}/v1/chat/completions", json=body, stream=True, timeout=(CONNECT_S, SILENCE_S),
            headers={"Authorization": f"Bearer {found['api_key']}"},
        )  # fmt: skip
        if answer.status_code != 200:
            raise CliError(f"{found['url']} answered {answer.status_code}: {answer.text[:300].strip()}")
        first, last, usage = _print_stream(answer)
    except requests.RequestException as e:
        reason = e.args[0] if e.args else e
        raise CliError(f"{found['url']} does not answer ({reason}): run `sluicegate status`") from e
    if first is None or last is None:
        raise CliError(f"{found['url']} ended its answer without a token")
    tokens = usage.get("completion_tokens")
    speed = f", {(tokens - 1) / (last - first):.1f} tokens a second" if tokens and tokens > 1 and last > first else ""
    print(f"\n[{tokens} tokens{speed}, first after {(first - began) * 1000:.0f} ms]")
    return 0


def _print_stream(answer: requests.Response) -> tuple[float | None, float | None, dict[str, Any]]:
    """Print text as it arrives; the times of the first and last of it, and the usage."""
    first = last = None
    usage: dict[str, Any] = {}
    for event in _events(answer):
        if event.get("error"):
            raise CliError(f"an error in the answer: {json.dumps(event['error'])[:300]}")
        usage = event.get("usage") or usage
        for choice in event.get("choices") or []:
            delta = choice.get("delta") or {}
            if text := delta.get("content") or delta.get("reasoning") or delta.get("reasoning_content"):
                last = time.monotonic()
                first = first or last
                print(text, end="", flush=True)
    return first, last, usage


def _events(answer: requests.Response) -> Iterator[dict[str, Any]]:
    for line in answer.iter_lines(chunk_size=None):
        data = line.removeprefix(b"data:").strip()
        if line.startswith(b"data:") and data != b"[DONE]":
            try:
                yield json.loads(data)
            except ValueError:
                raise CliError(f"not JSON in the answer: {data[:200].decode(errors='replace')}") from None
