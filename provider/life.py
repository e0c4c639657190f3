"""The life of a machine, by rules that hold in every cloud: what is bought, adopted, superseded, and who may end it.

A run can be killed between any two calls. So a machine carries its stack's id, its resource's name, a fresh token and a
phase from the purchase on; Create adopts what no state knows or what serves no more, never what is `owned`; and nothing
is ended by a token that it does not carry. (Adopting by name alone ended a serving machine in a trial.)
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from .clouds.calls import CREATING, OWNED, SUPERSEDED, Cloud, Found, Place, Refused, Tags
from .resource import FailedError, Run, UnreachableError, Values


@dataclass
class Obtained:
    machine: Found
    attempts: list[Values]
    trouble: str | None = None  # why it cannot be asked yet, though it was bought


def obtain(cloud: Cloud, wish: Values, tags: Tags, run: Run) -> Obtained:
    """A machine that fits the wish: one that can be adopted, else one that is bought. `own` has to follow.

    Raises FailedError, with every refusal in it, when there is none; whatever was bought for it is gone then.
    """
    places, attempts = cloud.places(wish), list[Values]()
    for machine in _adoptable(cloud.machines(wish), wish, places, tags["name"]):
        began = time.monotonic()
        place = Place(machine["zone"], machine["market"])
        try:
            taken = cloud.ready(machine, run.gave_up)
        except Refused as e:
            attempts.append(_refused(run, place, began, e))
            if machine["phase"] == CREATING:  # no state knows it; a superseded one may serve
                cloud.release(machine["host"], machine["token"])
            continue
        # Its new token is written by `own`, with the phase: killed before that, this run has changed nothing.
        return Obtained(taken | {"token": tags["token"]}, [*attempts, _attempt(place, began, "adopted")])
    for place in places:
        if why := run.gave_up():
            raise FailedError(f"{why} before a machine was asked for in {place.zone}; none was bought.")
        began = time.monotonic()
        try:
            machine = cloud.make(wish, place, tags)
        except Refused as e:
            attempts.append(_refused(run, place, began, e))
            if e.next == "stop":
                break
            continue
        try:
            ready = cloud.ready(machine, run.gave_up)
            return Obtained(ready, [*attempts, _attempt(place, began, "accepted")])
        except Refused as e:
            attempts.append(_refused(run, place, began, e))
            cloud.release(machine["host"], tags["token"])
            if e.next == "stop":
                break
        except FailedError as e:
            return Obtained(machine, [*attempts, _attempt(place, began, "accepted")], str(e))
    raise FailedError(_none_accepts(wish, attempts))


def own(cloud: Cloud, wish: Values, mine: Found) -> None:
    """Say that the stack's state knows this machine. Comes last in a Create, also in one that ends with InitFailed.

    The older ones are superseded after it: killed in between, the one that the state holds still is `owned`, and no
    Create takes it over. (The other way round, a walk of kills had a serving machine adopted and then lost.)
    """
    others = [m for m in cloud.machines(wish) if m["name"] == mine["name"] and m["id"] != mine["id"]]
    cloud.mark(mine | {"phase": OWNED})
    for other in others:
        if other["phase"] != SUPERSEDED:
            cloud.mark(other | {"phase": SUPERSEDED})


def resume(cloud: Cloud, outputs: Values, run: Run) -> Found:
    """The machine of before, ready and owned: a Create may have ended before it was. Raises FailedError."""
    machine = next((m for m in cloud.machines(outputs) if m["token"] == outputs["token"]), None)
    if machine is None:
        raise FailedError(f"machine {outputs['machineId']} is not to be found; run `pulumi up --refresh`")
    try:
        machine = cloud.ready(machine, run.gave_up)
    except Refused as e:
        raise FailedError(f"machine {outputs['machineId']} cannot be used: {e}") from e
    if machine["phase"] != OWNED:
        own(cloud, outputs, machine)
    return machine


def is_there(cloud: Cloud, outputs: Values) -> bool:
    """Whether the machine of this token is there. Raises UnreachableError when that cannot be told."""
    try:
        machine = cloud.find(outputs["host"])
    except UnreachableError:
        raise
    except FailedError as e:
        raise UnreachableError(f"cannot tell whether the machine is there: {e}") from e
    return machine is not None and machine["token"] == outputs["token"]


def _adoptable(there: list[Found], wish: Values, places: list[Place], name: str) -> list[Found]:
    """What no state knows comes first: it costs, and nobody would end it."""
    fit = [
        m for m in there
        if m["name"] == name and m["gpu"] == wish["gpu"] and (m["zone"], m["market"]) in places
    ]  # fmt: skip
    return [m for phase in (CREATING, SUPERSEDED) for m in fit if m["phase"] == phase]


def _attempt(place: Place, began: float, outcome: str, reason: str | None = None, next: str | None = None) -> Values:
    seconds = round(time.monotonic() - began, 3)
    return {
        "place": place.zone, "market": place.market, "outcome": outcome, "reason": reason, "next": next, "s": seconds,
    }  # fmt: skip


def _refused(run: Run, place: Place, began: float, error: Refused) -> Values:
    run.say(f"refused in {place.zone} ({place.market}): {error}")
    return _attempt(place, began, "refused", str(error), error.next)


def _none_accepts(wish: Values, attempts: list[Values]) -> str:
    asked = [f"{a['place']} ({a['market']}): {a['reason']}" for a in attempts] or ["the search space is empty"]
    first = f"no place has a machine with {wish['gpu'].get('count')} x {wish['gpu'].get('type')}; none was bought."
    return "\n".join([first, *asked, "next: widen sluicegate:machine (regions, markets, maxPrice), or try again later"])
