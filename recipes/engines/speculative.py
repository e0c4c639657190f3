"""Reading vLLM's `--speculative-config` as it arrives: as JSON, or as what a shell, a page or a file made of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..faults import Faults

EDIT = "correct the command line"
ALLOWED = 'one JSON object as {"method":"dflash","model":"REPO","revision":"COMMIT","num_speculative_tokens":7}'
_CURLY = str.maketrans({"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "\u00a0": " "})  # noqa: RUF001 (from pages)
_ESCAPED = ('\\\\"', '\\"', '`"', '""', "''", "'")  # what stands for a quote inside another quote, shell by shell
_TEXT = ("method", "model", "revision", "code_revision")
# vLLM's older names of the head that lies in the target's own checkpoint
_MTP = re.compile(r"(?:\w+_)?mtp")


def read_object(text: str) -> dict[str, Any] | None:
    """The JSON object that `text` was before its quotes were kept, escaped, doubled, curled or lost; None if none."""
    for tried in _readings(text.translate(_CURLY).strip()):
        try:
            found = json.loads(tried, object_pairs_hook=_once)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            return found
    return _bare(text.strip())


def _readings(text: str) -> Iterator[str]:
    yield text
    inner = text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text
    yield inner
    for escaped in _ESCAPED:
        yield inner.replace(escaped, '"')


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(found := dict(pairs)) != len(pairs):
        raise ValueError("a key twice")
    return found


def _bare(text: str) -> dict[str, Any] | None:
    """An object whose quotes are all gone, as PowerShell passes it on: `{method:dflash,num_speculative_tokens:7}`."""
    if not (text.startswith("{") and text.endswith("}")) or re.search(r"[\"'\[\]{}\\]", text[1:-1]):
        return None
    found: dict[str, Any] = {}
    for pair in text[1:-1].split(","):
        key, colon, value = (part.strip() for part in pair.partition(":"))
        if not (re.fullmatch(r"\w+", key) and colon and value) or key in found:
            return None
        found[key] = value if key in _TEXT else scalar(value)
    return found


def scalar(text: str) -> Any:
    """A value of a dotted flag, as vLLM reads it: JSON where it is some, else the text."""
    try:
        return json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        return text


def to_speculation(
    spec: Mapping[str, Any], repo: object, revision: object, flag: str, faults: Faults
) -> tuple[dict[str, Any] | None, list[str]]:
    """vLLM's settings as a recipe's `speculation`, and as words of `args` for what is no field of it.

    `repo` and `revision` are the target's: the head of `mtp` lies in it and has no others.
    """
    rest = dict(spec)
    method, model, commit = (rest.pop(key, None) for key in ("method", "model", "revision"))
    tokens = rest.pop("num_speculative_tokens", None)
    if method is None and "dflash" in str(model).lower():
        method = "dflash"  # as vLLM takes it from the drafter's name
    if isinstance(method, str) and _MTP.fullmatch(method):
        method = "mtp"
        for key, said, own in (("model", model, repo), ("revision", commit, revision)):
            if said not in (None, own):
                faults.add(
                    f"{flag} {key}", said, f"{own or 'none'}, the target's own, or nothing: mtp drafts with it", EDIT
                )
        model = commit = None
    if type(tokens) is not int:
        faults.add(f"{flag} num_speculative_tokens", tokens, "a whole number: the length of a draft is pinned", EDIT)
    if method is None:
        faults.add(f"{flag} method", None, "the method that drafts", EDIT)
    if "code_revision" in rest:
        faults.add(f"{flag} code_revision", rest.pop("code_revision"), "none: a drafter runs no code of its own", EDIT)
    found = {"method": method, "repo": model, "revision": commit, "tokens": tokens}
    return {key: value for key, value in found.items() if value is not None}, [_word(*item) for item in rest.items()]


def _word(key: str, value: object) -> str:
    plain = isinstance(value, str) and scalar(value) == value
    return f"--speculative-config.{key}={value if plain else json.dumps(value, separators=(',', ':'))}"
