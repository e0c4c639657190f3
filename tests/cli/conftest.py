"""A project with a `pulumi` that answers from files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.fake_pulumi import Fake


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    return Fake(tmp_path)
