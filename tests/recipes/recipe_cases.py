"""Where the recipe tests find the shipped files, the example of each format and the golden cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sluicegate.recipes.files import recipe_folders

HERE = Path(__file__).parent
SHIPPED = recipe_folders(HERE)[-1]
EXAMPLES = HERE / "examples"
GOLDEN = sorted(path.stem for path in (HERE / "golden").glob("*.json"))
LOCAL = ("smollm2-135m/f16", "smollm2-135m/q4", "smollm2-135m/q4-ngram")
ZEROS = "0" * 64


def shipped_lock(name: str, folder: Path = SHIPPED) -> Path:
    """The one lock a recipe is shipped with."""
    model, short = name.split("/")
    (path,) = (folder / model / "locks").glob(f"{short}-{'[0-9a-f]' * 12}.json")
    return path


def golden(case: str) -> dict[str, Any]:
    """A golden case: a recipe and its sources in, the command line and environment out."""
    data: dict[str, Any] = json.loads((HERE / "golden" / f"{case}.json").read_text())
    return data
