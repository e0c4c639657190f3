"""What a result does not show, said from the result itself, so that a page cannot be quoted without it."""

from __future__ import annotations

from typing import Any


def race_caveats(document: dict[str, Any]) -> list[str]:
    """One sentence or two per limit of a race, those that apply to this one."""
    settings, targets = document["settings"], document["targets"]
    most = max((target["summary"]["requests"] for target in targets), default=0)
    said = [
        f"Other days and places: this is one run from one place, {most} requests a target at most.",
        "Other texts: speculative decoding is quicker on predictable text such as code; other prompts, other numbers.",
        "Published speeds: output speed here leaves out the wait for the first token; theirs are mostly over whole "
        "requests, and not comparable.",
    ]
    if settings["concurrency"] == 1:
        said.append("Load: one request at a time. An own machine served only this, providers others at the same time.")
    if any(not target["own"] for target in targets):
        said.append("The network: behind a router there is one more hop in the first token, though not in the speed.")
    unknown = [target["name"] for target in targets if target["precision"] is None]
    told = sorted({target["precision"] for target in targets if target["precision"]})
    if len(told) + bool(unknown) > 1:
        names = f"; not told: {', '.join(unknown)}" if unknown else ""
        said.append(f"Equal answers: precision differs ({', '.join(told) or 'none told'}{names}).")
    if settings["salt"] is None:
        said.append("Cold prompts: they were not salted, so all but the first round may have come from a prefix cache.")
    if any(target["summary"]["thought"] for target in targets):
        said.append("Like for like: some targets thought although they were asked not to.")
    return said + _sittings(document)


def load_caveats(document: dict[str, Any]) -> list[str]:
    """One sentence or two per limit of a load curve, those that apply to this one."""
    settings, points = document["settings"], document["points"]
    said = [
        "Other days, places and prompts: one run from one place.",
        "Prompts are short and answers capped, so a prompt-heavy load has another curve.",
    ]
    if settings["hourly"]:
        said.append("The whole bill: input tokens, cold starts, spare machines and traffic out are not in the cost.")
    if any(point["concurrency"] for point in points):
        said.append(
            "Waiting under overload: with a fixed number in flight a slow server is asked less; a given rate shows it."
        )
    if settings["salt"] is None:
        said.append("Cold prompts: they were not salted and may have come from a prefix cache.")
    return said + _sittings(document)


def _sittings(document: dict[str, Any]) -> list[str]:
    times = document["resumed"]
    return [f"One sitting: it was interrupted and gone on with later ({times} times)."] if times else []
