"""The order of a race, what is tried again, and when a target is given up. Servers on loopback, no time judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.race import run
from sluicegate.race.run import WARM_UP, Job, Race, schedule
from sluicegate.race.targets import Target
from tests.race.asking import SETTINGS
from tests.race.servers import Asked, Server, events, refuse, serving, stream

PROMPTS = {"code": "Write code.", "email": "Write an email."}


@given(st.integers(1, 6), st.integers(1, 5), st.integers(0, 9), st.booleans())
def test_every_target_gets_every_prompt_of_every_round_once_and_one_warm_up(
    n: int, rounds: int, seed: int, back: bool
) -> None:
    jobs = schedule(n, list(PROMPTS), rounds, seed, back)
    assert Counter((j.target, j.round, j.prompt) for j in jobs if j.round != WARM_UP) == Counter(
        {(t, r, p): 1 for t in range(n) for r in range(1, rounds + 1) for p in PROMPTS}
    )
    assert [j.target for j in jobs if j.round == WARM_UP] == list(range(n))
    assert jobs == schedule(n, list(PROMPTS), rounds, seed, back)


def test_interleaved_targets_take_turns_in_an_order_drawn_anew() -> None:
    jobs = [j for j in schedule(5, list(PROMPTS), 4, 1, False) if j.round != WARM_UP]
    turns = [[j.target for j in jobs[i : i + 5]] for i in range(0, len(jobs), 5)]
    assert all(sorted(turn) == [0, 1, 2, 3, 4] for turn in turns)
    assert len({tuple(turn) for turn in turns}) > 1


def test_back_to_back_ends_one_target_before_the_next() -> None:
    order = [j.target for j in schedule(3, list(PROMPTS), 2, 1, True)]
    assert order == sorted(order)


class Seen:
    def __init__(self) -> None:
        self.rows: list[tuple[Job, dict[str, Any]]] = []
        self.out: dict[int, str] = {}


def raced(handlers: list[Callable[[Asked], Iterable[bytes | float | None]]], **more: Any) -> tuple[Seen, list[Server]]:
    seen, servers = Seen(), list[Server]()

    def nested(rest: list[Any]) -> None:
        if rest:
            with serving(rest[0]) as server:
                servers.append(server)
                nested(rest[1:])
            return
        targets = [Target(f"t{i}", server.url, "m", "k3y") for i, server in enumerate(servers)]
        settings = SETTINGS | {"prompts": PROMPTS, "salt": "s", "concurrency": 1} | more
        race = Race(targets, settings, lambda j, r: seen.rows.append((j, r)), lambda n, w: seen.out.update({n: w}))
        race.run(schedule(len(targets), list(PROMPTS), 2, 0, False))

    nested(handlers)
    return seen, servers


def good(_: Asked) -> Iterable[bytes | float | None]:
    return stream(*events(), pause=0.0)


def test_no_two_requests_of_a_race_begin_alike() -> None:
    _, servers = raced([good, good])
    firsts = [asked.body["messages"][0]["content"].split("\n")[0] for server in servers for asked in server.asked]
    assert len(firsts) == len(set(firsts)) == 10


def test_a_refusal_for_good_puts_that_target_out_and_the_others_go_on() -> None:
    seen, servers = raced([lambda _: refuse("401 No", {"message": "bad key k3y"}), good])
    assert seen.out == {0: "HTTP 401: bad key ***"}
    assert len(servers[0].asked) == 1
    assert sum(job.target == 1 and row["error"] is None for job, row in seen.rows) == 5


def test_three_failures_and_no_success_put_a_target_out() -> None:
    seen, servers = raced([lambda _: stream(events()[0]), good])
    assert len(servers[0].asked) == run.GIVE_UP_AFTER
    assert "[DONE]" in seen.out[0]


def test_a_target_that_has_answered_is_not_given_up_for_later_failures() -> None:
    count = Counter[str]()

    def once(asked: Asked) -> Iterable[bytes | float | None]:
        count["asked"] += 1
        return good(asked) if count["asked"] == 1 else stream(events()[0])

    seen, servers = raced([once])
    assert seen.out == {}
    assert len(servers[0].asked) == 5


def test_a_limit_is_waited_out_as_the_server_asks_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "PAUSE_S", 0.05)
    count = Counter[str]()

    def limited(asked: Asked) -> Iterable[bytes | float | None]:
        count["asked"] += 1
        if count["asked"] == 2:
            return refuse("429 Slow down", {"message": "rate"}, "retry-after: 0")
        return refuse("503 Busy", "busy") if count["asked"] == 4 else good(asked)

    seen, _ = raced([limited])
    assert [row["error"] for _, row in seen.rows] == [None] * 5
    assert sum(row["tries"] for _, row in seen.rows) == count["asked"] == 7


def test_a_limit_that_stays_or_asks_for_too_long_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "PAUSE_S", 0.01)
    seen, servers = raced([lambda _: refuse("429 Slow down", {"message": "rate"})])
    assert seen.out == {0: "HTTP 429: rate"}
    assert run.TRIES * run.GIVE_UP_AFTER <= len(servers[0].asked) <= run.TRIES * 5
    seen, servers = raced([lambda _: refuse("429 Slow down", {"message": "rate"}, "retry-after: 3600")])
    assert len(servers[0].asked) == run.GIVE_UP_AFTER


def test_a_name_that_does_not_resolve_is_that_target_s_own_trouble() -> None:
    seen = Seen()
    targets = [
        Target("nowhere", "http://no-such-host.invalid/v1", "m"),
        Target("dead", "http://127.0.0.1:1/v1", "m", unusable="not listed"),
    ]
    race = Race(
        targets,
        SETTINGS | {"prompts": PROMPTS, "salt": None, "concurrency": 1},
        lambda *_: None,
        lambda n, w: seen.out.update({n: w}),
    )
    race.run(schedule(2, list(PROMPTS), 1, 0, False))
    assert "cannot resolve no-such-host.invalid" in seen.out[0]
    assert seen.out[1] == "not listed"
