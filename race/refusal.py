"""Answers that are no event stream: refusals, redirects, compressed or whole answers."""

from __future__ import annotations

import json
import re

from .http1 import Response
from .stream import error_text


def refusal(response: Response) -> str | None:
    """Why this is no event stream at all, or None."""
    kind = response.headers.get("content-type", "").split(";")[0].strip().lower()
    if response.status is not None and 300 <= response.status < 400:
        return f"HTTP {response.status}: redirects to {response.headers.get('location', 'nowhere')[:200]}, not followed"
    if response.status is not None and response.status != 200:
        text = response.body.decode(errors="replace")
        try:
            body = json.loads(text)
            text = error_text(body["error"] if isinstance(body, dict) and "error" in body else body)
        except (ValueError, RecursionError):
            text = " ".join(text.split())[:200]
        return f"HTTP {response.status}: {text}" if text else f"HTTP {response.status}"
    if (coding := response.headers.get("content-encoding", "identity")) != "identity":
        return f"the answer is compressed ({coding[:40]}), which was not asked for and hides when a token came"
    if response.status == 200 and kind != "text/event-stream":
        return f"the answer is {kind[:80] or 'of no stated type'}, not an event stream"
    return None


def retry_after(response: Response) -> float | None:
    """Seconds to wait as the server asks. The date form is rare with APIs and would need its clock: not read."""
    value = response.headers.get("retry-after", "")
    return float(value) if re.fullmatch(r"[0-9]{1,9}", value) else None
