"""Whom to measure: one endpoint that speaks OpenAI's chat completions, and how it wants to be asked."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from .exchange import Call, Origin, resolve

THINKING_OFF: dict[str, dict[str, Any]] = {
    "template": {"chat_template_kwargs": {"enable_thinking": False}},  # vLLM, SGLang, llama.cpp
    "reasoning": {"reasoning": {"enabled": False}},  # OpenRouter
    "unasked": {},  # for APIs that refuse both
}
_KEYS = "model, key-env, precision, hardware, price, hourly, thinking, chunk-usage"


@dataclass(slots=True)
class Target:
    """One row of a race. `price` USD per million output tokens, `hourly` USD per hour; None = not told."""

    name: str
    url: str
    model: str
    key: str | None = field(default=None, repr=False)
    precision: str | None = None
    hardware: str | None = None
    price: float | None = None
    hourly: float | None = None
    thinking: str = "template"
    chunk_usage: bool = False  # ask for the token count in every chunk (vLLM, SGLang)
    own: bool = True  # asked directly; False = through a router, pinned to `provider`
    provider: str | None = None
    published_tok_s: float | None = None  # what the router publishes: another definition, never compared
    extra: dict[str, Any] = field(default_factory=dict)
    note: str | None = None
    unusable: str | None = None  # why nothing will be sent to it

    def address(self) -> tuple[str, int, bool, str]:
        """Host, port, whether TLS, and path of the completions. Raises ValueError on a URL that cannot be asked."""
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
            raise ValueError(
                f"{self.name}: {parts.scheme}://{parts.hostname or ''} is no base URL like https://HOST/v1"
            )
        tls = parts.scheme == "https"
        path = parts.path.rstrip("/") or "/v1"
        if not f"{path}{parts.hostname}".isascii() or any(c.isspace() for c in path):
            raise ValueError(f"{self.name}: the URL must be written in plain ASCII without spaces")
        return parts.hostname, parts.port or (443 if tls else 80), tls, f"{path}/chat/completions"

    def body(self, prompt: str, settings: dict[str, Any]) -> dict[str, Any]:
        """The request as JSON; `settings` has max_tokens, temperature, top_p."""
        options: dict[str, Any] = {"include_usage": True}
        if self.chunk_usage:
            options["continuous_usage_stats"] = True
        asked = {
            "model": self.model,
            "messages": [{"role": "user", "content": prompt}],
            "stream": True,
            "stream_options": options,
            "max_tokens": settings["max_tokens"],
            "temperature": settings["temperature"],
            "top_p": settings["top_p"],
        }
        return asked | THINKING_OFF[self.thinking] | self.extra

    def call(self, origin: Origin, prompt: str, settings: dict[str, Any], tag: object = None) -> Call:
        """The request in bytes, to be sent to `origin`; `settings` also has timeout_s."""
        host, port, tls, path = self.address()
        payload = json.dumps(self.body(prompt, settings)).encode()
        where = f"[{host}]" if ":" in host else host
        head = [
            f"POST {path} HTTP/1.1",
            f"Host: {where}" if port == (443 if tls else 80) else f"Host: {where}:{port}",
            "User-Agent: sluicegate-race",
            "Accept: text/event-stream",
            "Accept-Encoding: identity",
            "Content-Type: application/json",
            f"Content-Length: {len(payload)}",
            *([f"Authorization: Bearer {self.key}"] if self.key else []),
        ]
        request = "\r\n".join([*head, "", ""]).encode("latin-1") + payload
        limit = 2**20 + 4096 * int(settings["max_tokens"])  # a chunk of one token is some 250 bytes; more is no answer
        return Call(origin, request, limit, settings["timeout_s"], tag)

    def resolve(self) -> Origin:
        """Look the host up. Raises OSError with the resolver's words."""
        host, port, tls, _ = self.address()
        return resolve(host, port, tls)

    def mask(self, text: str) -> str:
        """`text` without the key, which some servers repeat in their refusals."""
        return text.replace(self.key, "***") if self.key else text


def parse_target(spec: str) -> Target:
    """A `--target`: NAME=URL,model=NAME and any of key-env, precision, hardware, price, hourly, thinking, chunk-usage.

    Raises ValueError that says what is wrong; the key itself comes from the environment variable named by key-env.
    """
    name, _, rest = spec.partition("=")
    url, *pairs = rest.split(",")
    told: dict[str, str] = {}
    for pair in pairs:
        key, found, value = pair.partition("=")
        if not found or key in told or key not in _KEYS.split(", "):
            raise ValueError(f"--target {name}: {pair!r} is not one of {_KEYS}, each once, as KEY=VALUE")
        told[key] = value
    if not name or not url or not told.get("model"):
        raise ValueError(f"--target {spec.split(',')[0]}: needs NAME=URL,model=MODEL")
    if told.get("thinking", "template") not in THINKING_OFF:
        raise ValueError(f"--target {name}: thinking is one of {', '.join(THINKING_OFF)}")
    if told.get("chunk-usage", "no") not in ("yes", "no"):
        raise ValueError(f"--target {name}: chunk-usage is yes or no")
    target = Target(
        name=name,
        url=url,
        model=told["model"],
        key=key_from(told["key-env"], f"--target {name}") if "key-env" in told else None,
        precision=told.get("precision"),
        hardware=told.get("hardware"),
        price=money(told["price"], f"--target {name}: price") if "price" in told else None,
        hourly=money(told["hourly"], f"--target {name}: hourly") if "hourly" in told else None,
        thinking=told.get("thinking", "template"),
        chunk_usage=told.get("chunk-usage") == "yes",
    )
    target.address()
    return target


def key_from(variable: str, asker: str) -> str:
    """The key in an environment variable. Raises ValueError when it is unset, empty, or holds what no header may."""
    key = os.environ.get(variable, "")
    if not key:
        raise ValueError(f"{asker}: the environment variable {variable} is not set")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ValueError(f"{asker}: the key in {variable} holds characters that no header may (a line end, a space?)")
    return key


def money(text: str, asker: str) -> float:
    """A price in USD. Raises ValueError unless it is a positive number."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 1e-4 <= value <= 1e6:
        raise ValueError(f"{asker}: {text!r} is no price in USD")
    return value
