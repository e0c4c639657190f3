from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.stack.harness import Project

# (cloud, runtime): every behaviour is shown for each; another place or runtime is one more line here.
TARGETS = [("local", "process")]


@pytest.fixture(scope="session", params=TARGETS, ids="+".join)
def target(request: pytest.FixtureRequest) -> tuple[str, str]:
    cloud, runtime = request.param
    return cloud, runtime


@pytest.fixture
def project(tmp_path: Path, target: tuple[str, str]) -> Iterator[Callable[..., Project]]:
    """Make projects that are destroyed, with all they run, when the test ends."""
    made: list[Project] = []

    def make(recipe: str = "smollm2-135m/q4", root: Path | None = None, **config: Any) -> Project:
        p = Project(tmp_path / f"p{len(made)}", target=target, **({"root": root} if root else {}))
        made.append(p)
        return p.setup(recipe, **config)

    yield make
    for p in made:
        p.clean()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, target: tuple[str, str]) -> Iterator[Project]:
    """One deployed stack for the tests of a module; each leaves it serving."""
    p = Project(tmp_path_factory.mktemp("served"), target=target)
    try:
        p.setup()
        p.up()
        yield p
    finally:
        p.clean()
