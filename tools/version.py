"""Version texts as the tools print them, compared as numbers."""

from __future__ import annotations

import re

_NUMBERS = re.compile(r"(?:^|[\s v]|go)(\d+)\.(\d+)(?:\.(\d+))?(-?[A-Za-z][\w.]*)?")


def parse(text: str) -> tuple[int, int, int] | None:
    """The first version in what a tool printed (`v3.274.1`, `go version go1.26.8 linux/amd64`), or None.

    A pre-release counts as older than its release (Go writes go1.27rc1, Pulumi v3.275.0-alpha.1), so it is None here:
    nothing pinned by this project was tried on one.
    """
    found = _NUMBERS.search(text)
    if found is None or found[4]:
        return None
    return int(found[1]), int(found[2]), int(found[3] or 0)


def at_least(text: str, minimum: str) -> bool:
    """Whether what a tool printed is a release of `minimum` or newer."""
    seen, wanted = parse(text), parse(minimum)
    if wanted is None:
        raise ValueError(f"not a version: {minimum!r}")
    return seen is not None and seen >= wanted
