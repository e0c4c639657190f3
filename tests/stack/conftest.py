from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.stack.harness import Project


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Callable[..., Project]]:
    """Make projects that are destroyed, with all they run, when the test ends."""
    made: list[Project] = []

    def make(recipe: str = "smollm2-135m/q4", root: Path | None = None, **config: Any) -> Project:
        p = Project(tmp_path / f"p{len(made)}", **({"root": root} if root else {}))
        made.append(p)
        return p.setup(recipe, **config)

    yield make
    for p in made:
        p.clean()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """One deployed stack for the tests of a module; each leaves it serving."""
    p = Project(tmp_path_factory.mktemp("served"))
    try:
        p.setup()
        p.up()
        yield p
    finally:
        p.clean()
