"""A random walk of changes, faults and kills, short enough for every run of the suite; `make bench` has a long one."""

from __future__ import annotations

from collections.abc import Callable

from tests.stack.harness import Project, until
from tests.stack.walk import Walk, serves

STEPS = 25


def test_whatever_happens_in_any_order_state_and_machine_agree(project: Callable[..., Project]) -> None:
    p = project()
    p.up()
    walk = Walk(p, seed=20261130)
    walk.run(STEPS)
    assert serves(p)
    p.destroy()
    until("every process has ended", lambda: not p.processes(), 20)
    assert not p.home.exists()
