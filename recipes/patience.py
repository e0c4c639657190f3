"""Asking again: what a hub or a registry cannot answer now is asked for a few times more, and never for long."""

from __future__ import annotations

import email.utils
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

TRIES = 4
LONGEST_S = 60.0  # somebody waits at a terminal: a service that wants more is named, with its wish
_PAUSES_S = (0.5, 1.0, 2.0)

_REASONS = (
    "name or service not known", "temporary failure in name resolution", "connection refused", "timed out",
    "certificate_verify_failed", "connection reset", "no route to host", "wrong version number",
)  # fmt: skip

T = TypeVar("T")


class LaterError(Exception):
    """Not now: the text says what was answered, `after_s` how long the other side wants to be left alone, if it said.

    `network` when nothing was answered at all.
    """

    def __init__(self, text: str, after_s: float | None = None, *, network: bool = False) -> None:
        super().__init__(text)
        self.after_s = after_s
        self.network = network


def patiently(ask: Callable[[], T], sleep: Callable[[float], None] = time.sleep) -> T:
    """The answer of `ask`, asked again where it raises LaterError; the last LaterError is raised."""
    waited = 0.0
    for pause in _PAUSES_S[: TRIES - 1]:
        try:
            return ask()
        except LaterError as error:
            wait = pause if error.after_s is None else error.after_s
            if waited + wait > LONGEST_S:
                raise
            waited += wait
            sleep(wait)
    return ask()


def retry_after(headers: Mapping[str, str], now: Callable[[], float] = time.time) -> float | None:
    """Seconds that a `Retry-After` asks for, written as a number or a date; None where it says nothing readable."""
    text = (headers.get("Retry-After") or "").strip()
    if text.isascii() and text.isdecimal():
        return float(text[:9])
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - now())
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def reason_of(error: BaseException) -> str:
    """Why nothing was answered, in a few words; the libraries say it inside several layers of their own."""
    text = str(error).lower()
    return next((known for known in _REASONS if known in text), type(error).__name__)
