"""Prints this room's figures: `python -m sluicegate.recipes.bench`. Nothing here asks anyone on the network.

Each figure is a median of several runs with the range; seconds of this machine, so compare within one run.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from .check import check_all
from .files import locks_of, read_lock, read_recipe, recipe_folders, write_lock
from .model import LockFile
from .pins import load_locked, pins_of

SHIPPED = recipe_folders(Path(__file__).parents[1])[-1]
RUNS = 5
MANY = 1000
MANY_OF = "smollm2-135m/q4"
_IMPORT = "import sluicegate.recipes, sluicegate.recipes.pins, sluicegate.recipes.files"


def timed(work: Callable[[], object], runs: int = RUNS) -> list[float]:
    """Seconds of each run, after one that warms up."""
    work()
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return seconds


def python(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)


def many_files(folder: Path, count: int = MANY) -> tuple[dict[str, object], list[Path]]:
    """Pins and folders of a recipe whose lock has so many files of weights more."""
    recipe = folder / f"{MANY_OF}.yaml"
    recipe.parent.mkdir(parents=True)
    recipe.write_bytes((SHIPPED / f"{MANY_OF}.yaml").read_bytes())
    _, sha256 = read_recipe(recipe)
    locks = (read_lock(path)[0] for path in locks_of(SHIPPED / f"{MANY_OF}.yaml"))
    lock = next(lock for lock in locks if lock.recipe_sha256 == sha256)
    weights = lock.sources.weights
    more = tuple(LockFile(path=f"part-{n:05}.safetensors", bytes=n, sha256=f"{n:064x}") for n in range(count))
    weights = weights.model_copy(update={"files": (*weights.files, *more)})
    lock = lock.model_copy(update={"sources": lock.sources.model_copy(update={"weights": weights})})
    return pins_of(*read_lock(write_lock(folder, lock))).as_config(), [folder]


def figures() -> Iterator[tuple[str, list[float], float | None]]:
    """Each figure's name, its seconds run by run, and its aim in seconds, if it has one."""
    yield "`recipe check` of everything shipped", timed(lambda: check_all([SHIPPED])), 1.0
    empty = statistics.median(timed(lambda: python("pass")))
    yield "import sluicegate.recipes, over an empty Python", [s - empty for s in timed(lambda: python(_IMPORT))], 0.15
    with tempfile.TemporaryDirectory() as folder:
        pins, folders = many_files(Path(folder))
        yield f"a lock of {MANY} files, read and checked", timed(lambda: load_locked(MANY_OF, pins, folders)), None


def main() -> None:
    print(f"recipes (median of {RUNS} runs, and their range, in seconds)")
    for name, seconds, aim in figures():
        wanted = f"  aim: under {aim:g}" if aim else ""
        print(f"  {name:<52}{statistics.median(seconds):.3f} ({min(seconds):.3f} to {max(seconds):.3f}){wanted}")
    print("  requests of a pin: one per repository revision, one per config.json, one more where it is gated")


if __name__ == "__main__":
    main()
