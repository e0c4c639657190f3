"""The six prompts, how others are read from a file, and the salt that keeps a prefix cache out of the race."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

BUILT_IN = Path(__file__).with_name("prompts.json")  # code, writing, a summary, a comparison, an email, an explanation


def load_prompts(path: Path = BUILT_IN) -> dict[str, str]:
    """Prompts from a JSON file, an object of name to text. Raises ValueError with what is wrong, OSError."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path}: not JSON: {error}") from error
    if not isinstance(found, dict) or not found:
        raise ValueError(f"{path}: needs an object of prompt name to text, with at least one entry")
    for name, text in found.items():
        if not isinstance(text, str) or not text.strip():
            raise ValueError(f"{path}: prompt {name!r} is no text")
    return found


def salted(text: str, salt: str | None, *place: object) -> str:
    """`text` under a first line that no other request of any run has, so that no prefix of it was seen before.

    Six prompts in four rounds would else find 18 of 24 requests in the server's prefix cache. The line has the same
    length everywhere. Without a salt the text is sent as it is.
    """
    if salt is None:
        return text
    mark = hashlib.sha256("\0".join([salt, *map(str, place)]).encode(errors="surrogatepass")).hexdigest()[:12]
    return f"Reference {mark}.\n\n{text}"
