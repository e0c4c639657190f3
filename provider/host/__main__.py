"""`python -m sluicegate.provider.host VERB`: JSON in on stdin, JSON lines out.

Answers to a verb are one line; `{"error": "…", "kind": "…"}` and exit code 1 when it could not be done (2: not asked
rightly).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .verbs import AFTER_KILL, JOBS, Unusable, fault, lines


def _spec(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as e:
        raise Unusable(f"stdin is not JSON: {e}") from None


def _lines(verb: str, words: list[str]) -> Iterator[str]:
    if verb != "follow" or not words:
        return lines(verb, _spec(sys.stdin.read()))
    if len(words) != 2 or not words[1].isdecimal():
        raise Unusable("usage: follow JOB_FOLDER OFFSET")
    from .jobs import follow

    return follow(Path(words[0]), int(words[1]))


def main(argv: list[str]) -> int:
    verb, *words = argv or [""]
    if verb == "supervise":
        from .keyfile import retire_key
        from .supervise import supervise

        folder = Path(words[0])
        return supervise(folder, lambda: retire_key(folder))
    if verb == "job":
        from .jobs import run

        return run(Path(words[0]), JOBS, AFTER_KILL)
    try:
        for line in _lines(verb, words):
            print(line, flush=True)
    except Unusable as e:
        print(json.dumps({"error": str(e), "kind": "usage"}))
        return 2
    except Exception as e:  # noqa: BLE001 - the caller gets every fault as an answer
        print(json.dumps({"error": fault(e), "kind": type(e).__name__}))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
