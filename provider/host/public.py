"""The front's own check: what a client at the public address sees."""

from __future__ import annotations

import time
from typing import Any

from .caddyfile import FrontFailed
from .completion import ask
from .engine_http import Target, Unanswered, get
from .files import read_json
from .jobs import Job
from .places import Places
from .service import Service


def note_of(places: Places) -> dict[str, Any] | None:
    """What the front was opened as: `port`, `url`, `token`; None when it was not, or its note makes no sense."""
    kept = read_json(places.front / "front.json") or {}
    wanted = (("port", int), ("url", str), ("token", str))
    return kept if all(isinstance(kept.get(name), kind) for name, kind in wanted) else None


def refuses_strangers(url: str) -> str | None:
    """None when a request without a key is answered 401, else what was seen instead."""
    try:
        status, _ = get(Target(url=url), "/v1/chat/completions", 5)
    except Unanswered as e:
        return str(e)
    return None if status == 401 else f"a request without a key was answered {status}, expected 401"


def public(job: Job, service: Service, url: str, spec: dict[str, Any]) -> str:
    """One completion through the public address, with the key, as a client would ask it. Raises FrontFailed."""
    deadline_s = float(spec["deadline_s"])
    target = Target(url=url, key=spec["key"], give_up=job.cancelled)
    end, last = time.monotonic() + deadline_s, "nothing asked yet"
    while (left := end - time.monotonic()) > 0:
        job.check_cancel()
        if service.exited():
            raise FrontFailed("caddy exited; see its log", True)
        try:
            seen = ask(target, spec["model"], "Say hello.", 4, min(60.0, left))
        except Unanswered as e:
            last = str(e)
            job.sleep(0.1)
            continue
        if why := refuses_strangers(url):
            raise FrontFailed(why)
        return f"{seen.completion_tokens} tokens, first after {seen.first_s or 0:.2f} s"
    raise FrontFailed(f"no completion through {url} within {deadline_s:.0f} s; last answer: {last}", True)
