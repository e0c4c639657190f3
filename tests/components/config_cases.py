"""A config that deploys, and its faults read back from the one message."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

import pytest

from sluicegate.components.settings import Settings, SettingsError, load
from sluicegate.recipes.files import read_lock
from sluicegate.recipes.pins import pins_of
from tests.recipes.recipe_cases import shipped_lock

NAME = "smollm2-135m/q4-ngram"
PINS = pins_of(*read_lock(shipped_lock(NAME))).as_config()
GOOD: dict[str, Any] = {"recipe": NAME, "cloud": "local", "runtime": "process", "pins": PINS}
_LINE = re.compile(r"  (.+?): found (.*); allowed: (.*); to mend: (.*)")


def read(config: Mapping[str, Any], project: Path, secret: Set[str] = frozenset()) -> Settings:
    """The settings of stack `dev` of project `sluicegate`, from values as they stand in its file."""
    raw = {f"sluicegate:{k}": v if isinstance(v, str) else json.dumps(v) for k, v in config.items()}
    return load("dev", "sluicegate", project, raw, {f"sluicegate:{key}" for key in secret})


def message(config: Mapping[str, Any], project: Path, secret: Set[str] = frozenset()) -> str:
    with pytest.raises(SettingsError) as caught:
        read(config, project, secret)
    return str(caught.value)


def faults(
    config: Mapping[str, Any],
    project: Path,
    secret: Set[str] = frozenset(),
) -> dict[str, tuple[str, str, str]]:
    """Key -> (value as shown, what is allowed, what mends it). The head of the message counts them right."""
    head, *lines = message(config, project, secret).splitlines()
    found = [_LINE.fullmatch(line) for line in lines]
    assert all(found), lines
    count = f"{len(lines)} fault{'s' if len(lines) > 1 else ''}"
    assert head == f"stack dev cannot be deployed: {count} in its config"
    return {m[1]: (m[2], m[3], m[4]) for m in found if m}
