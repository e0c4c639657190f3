"""The rules of RandomPassword: which inputs there are, their defaults, and how a text that meets them is drawn."""

from __future__ import annotations

import secrets
import string
from collections.abc import Mapping
from typing import Any

from tools.plugins.values import UNKNOWN

SPECIAL = "!@#$%&*()-_=+[]{}<>:?"
_DEFAULTS: dict[str, Any] = {
    "lower": True,
    "minLower": 0,
    "minNumeric": 0,
    "minSpecial": 0,
    "minUpper": 0,
    "special": True,
    "upper": True,
}
# Each kind of character, the input that allows it and the one that asks for some.
_KINDS = (("lower", "minLower"), ("upper", "minUpper"), ("numeric", "minNumeric"), ("special", "minSpecial"))


def filled(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs with the defaults; `number` is an old name of `numeric`, and both are in the state."""
    numeric = inputs.get("numeric", inputs.get("number", True))
    return {**_DEFAULTS, **inputs, "numeric": numeric, "number": inputs.get("number", numeric)}


def alphabets(inputs: Mapping[str, Any]) -> dict[str, str]:
    """The characters of each kind."""
    return {
        "lower": string.ascii_lowercase,
        "upper": string.ascii_uppercase,
        "numeric": string.digits,
        "special": inputs.get("overrideSpecial") or SPECIAL,
    }


def faults(inputs: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What can't be met, as (input, sentence); unknown inputs are not judged."""
    given = filled(inputs)
    numbers = ["length", *(minimum for _, minimum in _KINDS)]
    if any(given.get(key) == UNKNOWN for key in (*numbers, *(kind for kind, _ in _KINDS))):
        return []
    bad = [(key, f"{key} is {given.get(key)!r}: give a whole number") for key in numbers if not _whole(given.get(key))]
    if bad:
        return bad
    least = sum(given[minimum] for _, minimum in _KINDS)
    if given["length"] < max(1, least):
        return [("length", f"length is {given['length']:g}: give {max(1, least):g} or more, the sum of the minimums")]
    if given["number"] != given["numeric"]:
        return [("number", "number and numeric differ: give numeric alone, number is its old name")]
    if not any(given[kind] for kind, _ in _KINDS):
        return [("numeric", "numeric, upper, lower and special are all false: set at least one to true")]
    return []


def generate(given: Mapping[str, Any]) -> str:
    """A text of `length` characters that holds each minimum, in random order."""
    letters = alphabets(given)
    drawn = [secrets.choice(letters[kind]) for kind, minimum in _KINDS for _ in range(int(given[minimum]))]
    allowed = "".join(letters[kind] for kind, _ in _KINDS if given[kind])
    drawn += [secrets.choice(allowed) for _ in range(int(given["length"]) - len(drawn))]
    secrets.SystemRandom().shuffle(drawn)
    return "".join(drawn)


def _whole(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == int(value) and value >= 0
