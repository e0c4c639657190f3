"""Fixtures of the recipe tests: right pins, and a copy of the shipped recipes that a test may break."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from sluicegate.recipes.files import read_lock
from sluicegate.recipes.pins import pins_of
from tests.recipes.recipe_cases import SHIPPED, shipped_lock


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A recipes folder of its own, with what is shipped of the local family."""
    copy = tmp_path / "recipes"
    shutil.copytree(SHIPPED / "smollm2-135m", copy / "smollm2-135m")
    return copy


@pytest.fixture
def pins() -> dict[str, Any]:
    """The right pins of smollm2-135m/q4-ngram, as they stand in stack config."""
    return dict(pins_of(*read_lock(shipped_lock("smollm2-135m/q4-ngram"))).as_config())
