"""OpenRouter's list of who serves a model, and a target per provider, pinned so that no other may answer.

Source: openrouter.ai/docs, "Provider routing" and "List endpoints for a model". What it publishes as throughput is
whole requests on live traffic, TTFT included: kept beside the measured speed, never compared with it.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote, urlsplit

from .exchange import Call, Exchange
from .loop import drive
from .refusal import refusal
from .targets import Target

BASE_URL = "https://openrouter.ai/api/v1"
LIST_LIMIT = 4 * 2**20
LIST_TIMEOUT_S = 30.0
# Providers whose hardware is not a GPU, by their own accounts; everyone else's is unknown here unless told.
OTHER_CHIPS = {"cerebras": "wafer-scale chip", "groq": "LPU", "sambanova": "RDU"}


class ListError(Exception):
    """The list of endpoints could not be had; the text says why in one sentence."""


def list_endpoints(model: str, key: str | None, base_url: str = BASE_URL) -> list[dict[str, Any]]:
    """The endpoints that serve `model` (AUTHOR/SLUG). Raises ListError."""
    probe = Target("OpenRouter", base_url, model, key)
    host, _, _, path = probe.address()
    path = path.removesuffix("/chat/completions") + f"/models/{quote(model)}/endpoints"
    authority = urlsplit(base_url).netloc or host
    head = [f"GET {path} HTTP/1.1", f"Host: {authority}", "User-Agent: sluicegate-race", "Accept-Encoding: identity"]
    head += [f"Authorization: Bearer {key}"] if key else []
    try:
        origin = probe.resolve()
    except OSError as error:
        raise ListError(f"the list of providers cannot be asked for: {error.strerror or error}") from error
    seen: list[Exchange] = []
    todo = [Call(origin, "\r\n".join([*head, "", ""]).encode("latin-1"), LIST_LIMIT, LIST_TIMEOUT_S)]
    drive(lambda _: todo.pop() if todo else None, seen.append)
    response, fault = seen[0].response, seen[0].fault
    if response is None or fault or response.status != 200:
        why = fault or (refusal(response) if response else None)
        raise ListError(probe.mask(f"the list of providers for {model} cannot be had: {why}"))
    try:
        found = json.loads(response.body)["data"]["endpoints"]
        named = [e for e in found if all(isinstance(e.get(key), str) and e[key] for key in ("tag", "provider_name"))]
        if found and not named:
            raise ValueError("no endpoint with a name")
        return named
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ListError(f"the list of providers for {model} is not in the form this program knows") from error


def pick(endpoints: list[dict[str, Any]], wished: str) -> list[dict[str, Any]]:
    """The endpoints a name stands for: a provider's name or slug (all its endpoints), or one endpoint's full tag."""
    name = wished.lower()
    exact = [e for e in endpoints if e["tag"].lower() == name]
    return exact or [e for e in endpoints if name in (e["provider_name"].lower(), e["tag"].lower().split("/")[0])]


def pinned(
    endpoint: dict[str, Any], model: str, key: str | None, base_url: str = BASE_URL, full_name: bool = False
) -> Target:
    """The target of one endpoint: it alone may answer, to every parameter, and the answer's `provider` is checked."""
    tag, provider = endpoint["tag"], endpoint["provider_name"]
    supported = endpoint.get("supported_parameters")
    silent = isinstance(supported, list) and "reasoning" not in supported
    precision = endpoint.get("quantization")
    return Target(
        name=f"{provider} ({tag})" if full_name else provider,
        url=base_url,
        model=model,
        key=key,
        precision=precision if isinstance(precision, str) and precision != "unknown" else None,
        hardware=OTHER_CHIPS.get(provider.lower()),
        price=_per_million(endpoint.get("pricing")),
        thinking="unasked" if silent else "reasoning",
        own=False,
        provider=provider,
        published_tok_s=_published(endpoint.get("throughput_last_30m")),
        extra={"provider": {"order": [tag], "only": [tag], "allow_fallbacks": False, "require_parameters": True}},
        note="takes no word on thinking" if silent else None,
    )


def provider_targets(model: str, providers: str, key: str | None, base_url: str = BASE_URL) -> list[Target]:
    """A target per endpoint of the comma-separated `providers`, or of `all`.

    A name that is not in the list, or a list that cannot be had, gives a target whose `unusable` says so: its row is in
    the race's table, and the others go on.
    """
    wished = [name.strip() for name in providers.split(",") if name.strip()]
    try:
        endpoints = list_endpoints(model, key, base_url)
    except ListError as error:
        return [Target(name, base_url, model, own=False, unusable=str(error)) for name in wished]
    targets: list[Target] = []
    for name in wished:
        found = endpoints if name.lower() == "all" else pick(endpoints, name)
        if not found:
            listed = ", ".join(sorted({e["provider_name"] for e in endpoints}))
            why = f"serves {model} by no endpoint in the list, which has: {listed or 'nobody'}"
            targets.append(Target(name, base_url, model, own=False, unusable=why))
        counts = [e["provider_name"] for e in found]
        targets += [pinned(e, model, key, base_url, counts.count(e["provider_name"]) > 1) for e in found]
    return targets


def _per_million(pricing: Any) -> float | None:
    """USD per million output tokens from a price per token, which the API gives as a string."""
    try:
        return _known(round(float(pricing["completion"]) * 1e6, 6))
    except (TypeError, KeyError, ValueError, OverflowError):
        return None


def _published(throughput: Any) -> float | None:
    value = throughput.get("p50") if isinstance(throughput, dict) else None
    return _known(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _known(value: float) -> float | None:
    """A figure of the list, None for what can be none: -1 stands for `it depends` there."""
    return float(value) if 0 <= value < 1e12 else None
