"""What is wrong with a recipe, a lock or the pins, said in one message a person can act on."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_SHOWN = 120  # characters of a bad value that are shown: enough to recognise it, never a page


@dataclass(frozen=True)
class Fault:
    """One fault: the dotted key, the value found, what is allowed instead, and the command or edit that mends it."""

    key: str
    value: object
    allowed: str
    mend: str

    def __str__(self) -> str:
        shown = "nothing" if self.value is None else repr(self.value)
        if len(shown) > _SHOWN:
            shown = shown[: _SHOWN - 1] + "…"
        key = self.key if self.key.isprintable() else repr(self.key)[1:-1]  # one line a fault, whatever a key holds
        return f"{key}: found {shown}; allowed: {self.allowed}; to mend: {self.mend}"


class RecipeError(ValueError):
    """A recipe, lock or pin that cannot be deployed as it stands; `faults` holds every fault, not only the first."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults: tuple[Fault, ...] = tuple(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))


def step(name: str) -> str:
    """A key below another as `pulumi config … --path` reads it: `.name`, or `["a.b"]` for what is no plain word."""
    return f".{name}" if re.fullmatch(r"\w+", name) else '["{}"]'.format(name.replace('"', '\\"'))


class Faults:
    """Collects faults over several checks, so that one run shows them all."""

    def __init__(self) -> None:
        self.found: list[Fault] = []

    def add(self, key: str, value: object, allowed: str, mend: str) -> None:
        """Note one fault."""
        self.found.append(Fault(key, value, allowed, mend))

    def extend(self, error: RecipeError) -> None:
        """Note every fault of an error that was caught."""
        self.found.extend(error.faults)

    def raise_any(self) -> None:
        """Raise one `RecipeError` with everything noted; nothing noted, nothing raised."""
        if self.found:
            raise RecipeError(self.found)
