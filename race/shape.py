"""What a result file must hold before anything is built on it, so that a file of another make is one plain sentence."""

from __future__ import annotations

import typing
from types import UnionType
from typing import Any

from .measure import Measurement

Shape = Any  # a type or a union of types; {key: shape}, {...: shape} for any key; [shape of each item], or of a pair
_NUMBER, _TEXT = int | float | None, str | None
_ROW: Shape = {"prompt": str, "started_s": int | float} | typing.get_type_hints(Measurement)
_POINT = {"median": int | float, "median_low": _NUMBER, "median_high": _NUMBER, "n": int}
_LOW, _HIGH = (_POINT | {p: int | float, f"{p}_low": _NUMBER, f"{p}_high": _NUMBER} for p in ("p10", "p90"))
_TARGET: Shape = {
    **dict.fromkeys(("name", "url", "model", "thinking"), str),
    **dict.fromkeys(("provider", "precision", "hardware", "note", "error"), _TEXT),
    **dict.fromkeys(("price", "hourly", "published_tok_s"), _NUMBER),
    "own": bool,
}
_SETTINGS: Shape = {
    "prompts": {...: str},
    "salt": _TEXT,
    **dict.fromkeys(("max_tokens", "seed"), int),
    **dict.fromkeys(("temperature", "top_p", "timeout_s"), int | float),
    "thinking": str,
}


def _or_null(shape: Shape) -> Shape:
    return (shape, None)


_SUMMARY: Shape = {
    **dict.fromkeys(("requests", "failed", "thought"), int),
    **dict.fromkeys(("client_lag_ms", "cost_per_million", "cached_tokens", "prompt_tokens"), _NUMBER),
    "output_speed": _or_null(_LOW),
    "ttft_ms": _or_null(_HIGH),
}
RACE: Shape = {
    "started": str,
    "resumed": int,
    "settings": _SETTINGS | {"rounds": int, "concurrency": int, "order": str},
    "verdicts": [str],
    "targets": [
        _TARGET | {"warm_up": _or_null({}), "summary": _SUMMARY, "requests": [_ROW | {"round": int, "tries": int}]},
    ],
}
LOAD: Shape = {
    "started": str,
    "resumed": int,
    "settings": _SETTINGS
    | dict.fromkeys(("limit_ttft_ms", "limit_speed", "hourly", "against"), _NUMBER)
    | {"steps": [{"requests": int, "concurrency": int | None, "rate": _NUMBER}]},
    "target": _TARGET,
    "points": [
        {
            "mode": str,
            "whole": bool,
            "concurrency": int | None,
            **dict.fromkeys(("requests", "failed"), int),
            **dict.fromkeys(("rate", "total_speed", "product", "cost_per_million", "client_lag_ms"), _NUMBER),
            **dict.fromkeys(("steady_speed", "per_request_speed"), _or_null(_LOW)),
            **dict.fromkeys(("ttft_ms", "ttft_from_plan_ms"), _or_null(_HIGH)),
            "goodput": _or_null({"per_s": int | float, "share": int | float}),
            "gap": _or_null({"waiting": int | float, "idle": int | float}),
            "errors": [str],
            "rows": [_ROW],
        }
    ],
    "knee": int | None,
    "capacity": _or_null({"concurrency": int | None, "rate": _NUMBER, "total_speed": int | float}),
    "break_even": _or_null(
        {"tokens_per_day": int | float, "tok_s": int | float, "share": _or_null([int | float, int | float])},
    ),
}


def misfit(value: Any, shape: Shape, place: str = "it") -> str | None:
    """Where and how `value` does not have the shape, in words, or None. Keys it does not name are let by."""
    if isinstance(shape, tuple):
        return None if value is None else misfit(value, shape[0], place)
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return f"{place} is no object"
        every = shape.get(...)
        named = dict.fromkeys(value, every) if every is not None else shape
        if missing := [key for key in named if key not in value]:
            return f"{place} has no {missing[0]}"
        return next((bad for key, part in named.items() if (bad := misfit(value[key], part, f"{place}.{key}"))), None)
    if isinstance(shape, list):
        if not isinstance(value, list):
            return f"{place} is no list"
        if len(shape) > 1 and len(value) != len(shape):
            return f"{place} has {len(value)} items, not {len(shape)}"
        return next((bad for i, v in enumerate(value) if (bad := misfit(v, shape[0], f"{place}[{i}]"))), None)
    allowed = set(typing.get_args(shape)) if isinstance(shape, UnionType) else {shape}
    if type(value) in allowed or (type(value) is int and float in allowed):
        return None
    return f"{place} is {value!r:.40}"
