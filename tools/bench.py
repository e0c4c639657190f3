"""`make bench`: the figures of this project, as ratios within one run, with date and machine.

Rounds are interleaved, so that a machine that slows down slows both sides of a ratio. Nothing here is a test: a noisy
machine gives noisy figures, and the spread is printed beside each.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from sluicegate.provider.host.completion import complete
from sluicegate.provider.host.engine_http import Target, Unanswered, get
from tests.stack.harness import Project
from tools.bench_figures import figure, say
from tools.bench_swap import cancel_to_revert, random_walk, swap_pause
from tools.console import start
from tools.paths import ROOT

ROUNDS = 7
EMPTY = "import pulumi\n"
ONE_VOLUME = """from sluicegate.components import WeightCache, WeightCacheArgs

WeightCache("cache", WeightCacheArgs(cloud="local", size_gb=1))
"""
PROMPT = "Write a short story about a lock keeper and the sea."


def main(only: list[str]) -> None:
    """Every figure, or `only` the named ones."""
    say(f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, {_cpu()}, Python {platform.python_version()}")
    with tempfile.TemporaryDirectory() as folder, project(Path(folder) / "bench") as p:
        figures: dict[str, Callable[[], None]] = {
            "preview": lambda: preview_over_empty(p, Path(folder)),
            "start": lambda: start_to_url(p),
            "front": lambda: front_over_engine(p),
            "swap": lambda: swap_pause(p),
            "cancel": lambda: cancel_to_revert(p),
            "walk": lambda: random_walk(p),
            "second_up": second_up,
        }
        for name in only or figures:
            figures[name]()


@contextmanager
def project(folder: Path) -> Iterator[Project]:
    """A stack of its own, gone at the end."""
    made = Project(folder)
    try:
        yield made.setup()
    finally:
        made.clean()


def preview_over_empty(p: Project, folder: Path) -> None:
    """`pulumi preview` of an empty program, of one resource of ours, and of the whole dev stack."""
    programs = {"empty": EMPTY, "our plugin alone": ONE_VOLUME}
    projects = {}
    for i, (name, text) in enumerate(programs.items()):
        projects[name] = Project(folder / f"preview{i}").setup()
        (projects[name].folder / "__main__.py").write_text(text)
    projects["dev stack"] = p
    times: dict[str, list[float]] = {name: [] for name in projects}
    for _ in range(ROUNDS):
        for name, each in projects.items():
            times[name].append(timed(partial(each.pulumi, "preview", "--stack", each.name)))
    empty = times.pop("empty")
    for name, seconds in times.items():
        ratios = [a / b for a, b in zip(seconds, empty, strict=True)]
        figure(f"preview, {name}, over an empty program", ratios, "x", "1.60" if "alone" in name else None)
    figure("preview of an empty program", empty, "s")


def start_to_url(p: Project) -> None:
    """From the first completion that the engine can give to the url resolved by `up`; what the checks take of it.

    The first completion is the gate's own: it is sent within 20 ms of the first `/health` that says 200.
    """
    seconds, checks_s, first = [], [], []
    for _ in range(ROUNDS):
        ready = threading.Thread(target=_when_ready, args=(p, found := list[float]()), daemon=True)
        ready.start()
        up = p.start_up()
        assert up.stdout is not None
        resolved = next(time.monotonic() for line in up.stdout if ":Front serve-endpoint created" in line)
        up.communicate()
        ready.join(5)
        checks = {c["check"]: c["s"] for c in [*p.outputs()["record"]["gate"], *_front_checks(p)]}
        first.append(checks["completion"])
        seconds.append(resolved - found[0] - first[-1])
        checks_s.append(sum(checks[name] for name in ("steady", "public")))
        p.destroy()
    figure("the engine's first completion to the resolved url", seconds, "s", "0.5")
    figure("of it the checks after that completion (steady, public)", checks_s, "s")
    figure("the first completion itself, from /health 200", first, "s")
    p.up()


def _front_checks(p: Project) -> list[dict[str, Any]]:
    events = sorted((p.home / "jobs").glob("*-front/events.jsonl"))[-1]
    return list(json.loads(events.read_text().splitlines()[-1])["gate"])


def _when_ready(p: Project, found: list[float]) -> None:
    for _ in range(60_000):
        for sock in _sockets(p):
            try:
                if get(Target(socket=sock), "/health", 1)[0] == 200:
                    found.append(time.monotonic())
                    return
            except Unanswered:
                continue
        time.sleep(0.005)


def _sockets(p: Project) -> list[Path]:
    try:
        run = Path(json.loads((p.home / "machine.json").read_text())["run"])
    except (OSError, ValueError):
        return []
    return [s for s in run.glob("*.sock") if len(s.stem) == 12]


def front_over_engine(p: Project) -> None:
    """Tokens a second of one stream through the front, over an engine of the same release started by hand."""
    service = json.loads((p.home / "current" / "engine" / "service.json").read_text())
    out = p.outputs()
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        sock = Path(folder) / "hand.sock"
        argv = [str(sock) if a == service["sockets"][0] else a for a in service["argv"]]
        with subprocess.Popen(argv, env=service["env"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as engine:
            try:
                by_hand = Target(socket=sock)
                while not _healthy(by_hand):
                    time.sleep(0.1)
                front = Target(url=out["url"], key=out["api_key"])
                ratios, speeds = [], []
                for i in range(2 * ROUNDS + 1):
                    order = (front, by_hand) if i % 2 else (by_hand, front)
                    speed = {target: _speed(target, out["model"]) for target in order}
                    a, b = speed[front], speed[by_hand]
                    ratios.append(a / b)
                    speeds.append(b)
            finally:
                engine.kill()
    figure("tokens/s through the front over xllamacpp by hand", ratios[1:], "x", "0.98 or more")
    figure("tokens/s of xllamacpp by hand", speeds[1:], "tok/s")


def _healthy(target: Target) -> bool:
    try:
        return get(target, "/health", 1)[0] == 200
    except Unanswered:
        return False


def _speed(target: Target, model: str) -> float:
    seen = complete(target, model, PROMPT, 200, 120)
    return ((seen.completion_tokens or 1) - 1) / (seen.total_s - (seen.first_s or 0))


def second_up() -> None:
    """`make up` when everything is there: set-up, refresh, one answer, status."""
    run = ["make", "up"]
    subprocess.run(run, cwd=ROOT, check=True, capture_output=True)
    seconds = [timed(lambda: subprocess.run(run, cwd=ROOT, check=True, capture_output=True)) for _ in range(3)]
    figure("second make up", seconds, "s", "6")
    subprocess.run(["make", "down"], cwd=ROOT, check=True, capture_output=True)


def timed(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def _cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())


if __name__ == "__main__":
    start(main)
