from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.provider.host.kit import Stack


@pytest.fixture
def new_stack() -> Iterator[Callable[[], Stack]]:
    """Makes stacks that are ended, with all they run, when the test is over."""
    made: list[Stack] = []

    def make() -> Stack:
        made.append(Stack())
        return made[-1]

    yield make
    for stack in made:
        stack.end()


@pytest.fixture
def stack(new_stack: Callable[[], Stack]) -> Stack:
    return new_stack()
