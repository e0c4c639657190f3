"""`python -m sluicegate.race.bench`: the race's own figures beside their bounds, from a checkout on two cores.

The scripted server of the tests has one core, the client the other. Each figure is printed with its bound and their
ratio (below 1 = kept); the OpenAI client does the same work in the same run, so that the ratio to it means something on
any machine. A run in which the server was late is repeated.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import resource
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .exchange import Exchange
from .loop import drive
from .measure import measure
from .targets import Target

STAGE = Path(__file__).resolve().parents[1] / "tests" / "race" / "stage.py"
SETTINGS = {"max_tokens": 512, "temperature": 0.7, "top_p": 0.8, "timeout_s": 60.0}
TTFT_MS, TOKENS = 221, 512
LATE_S = 0.002
PEER = STAGE.with_name("openai_peer.py")
# Requests in flight, requests, and the bounds of the two errors, in ms and %.
ERRORS = ((1, 4, 0.5, 0.1), (16, 32, 1.0, 0.2), (64, 128, 1.0, 0.2), (256, 512, 5.0, 0.5))
BOUNDS = (
    ("cpu_ms", "client CPU, ms per request-second, 256 in flight, of 3", 2.0),
    ("rss_mb", "client memory, MB, 256 in flight, of 3", 60.0),
)


@contextmanager
def stage() -> Iterator[str]:
    """The scripted server on the first core; its root URL."""
    core = str(min(os.sched_getaffinity(0)))
    process = subprocess.Popen([sys.executable, STAGE, core], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin
    assert process.stdout
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.stdin.close()
        process.wait(10)


def ours(base: str, in_flight: int, requests: int) -> dict[str, Any]:
    """Our client's figures in this process, as `judged` takes them."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    target, rows, cpu = Target("bench", base, "m"), list[list[Any]](), time.process_time()
    origin = target.resolve()
    calls = [target.call(origin, str(i), SETTINGS, str(i)) for i in range(requests)]

    def done(exchange: Exchange) -> None:
        row = measure(exchange)
        rows.append([exchange.call.tag, row.ttft_ms, row.output_speed, row.end_ms])

    drive(lambda busy: calls.pop() if calls and busy < in_flight else None, done)
    cpu = time.process_time() - cpu
    return {"rows": rows, "cpu_s": cpu, "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def judged(root: str, said: dict[str, Any]) -> dict[str, float]:
    """A client's figures beside the server's log: median errors, CPU per request-second, memory, the server's lateness.

    `said` has rows of [prompt, ttft_ms, tok/s, end_ms], cpu_s and rss_mb.
    """
    with urllib.request.urlopen(f"{root}/log", timeout=60) as answer:
        log = {
            mark: (arrival, [send for send in sends if send[1]], late)
            for _, mark, arrival, sends, late in json.load(answer)
        }
    ttft, speed = [], []
    for mark, ttft_ms, tok_s, _ in said["rows"]:
        arrival, sends, _ = log[mark]
        ttft.append(ttft_ms - (sends[0][0] - arrival) * 1000)
        speed.append(tok_s / ((sum(s[1] for s in sends) - 1) / (sends[-1][0] - sends[0][0])) - 1)
    late = sorted(s for *_, each in log.values() for s in each)
    return {
        "late_s": late[int(0.99 * (len(late) - 1))],
        "ttft_ms": abs(statistics.median(ttft)),
        "speed_pct": abs(statistics.median(speed)) * 100,
        "cpu_ms": said["cpu_s"] * 1000 / sum(row[3] / 1000 for row in said["rows"]),
        "rss_mb": said["rss_mb"],
    }


def apart(command: list[str], root: str, in_flight: int, requests: int, runs: int = 4) -> dict[str, float]:
    """A sample in a process of its own, repeated while the server was late; the last one if it always was."""
    found: dict[str, float] = {}
    for _ in range(runs):
        words = [*command, f"{root}/spec/{TTFT_MS}/{TOKENS}/v1", str(in_flight), str(requests)]
        said = subprocess.run([sys.executable, *words], check=True, capture_output=True, text=True).stdout
        found = judged(root, json.loads(said))
        if found["late_s"] <= LATE_S:
            break
    return found


def import_s() -> float:
    """Seconds that importing the room's commands adds to a bare start: the fastest of 5, the least disturbed."""

    def start(code: str) -> float:
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - begin

    code = "import sluicegate.race.race_command, sluicegate.race.load_command"
    return min(start(code) for _ in range(5)) - min(start("pass") for _ in range(5))


def extra_mb() -> float | None:
    """What the plotting library and its requirements take on disk; None when it is not installed."""
    try:
        files = [f for name in ("plotly", "narwhals", "packaging") for f in importlib.metadata.files(name) or ()]
    except importlib.metadata.PackageNotFoundError:
        return None
    return sum(path.stat().st_size for f in files if (path := Path(str(f.locate()))).is_file()) / 2**20


def line(name: str, value: float | None, bound: float) -> str:
    """One figure, its bound and their ratio."""
    return f"{name:<56} {'unknown' if value is None else f'{value:9.3f}'}  bound {bound:g}" + (
        "" if value is None else f"  ratio {value / bound:.2f}"
    )


def main() -> None:
    """Print the figures; with --sample, one sample of our client as JSON (what `apart` runs)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", nargs=3, metavar=("BASE", "IN_FLIGHT", "REQUESTS"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.sample:
        base, in_flight, requests = args.sample
        print(json.dumps(ours(base, int(in_flight), int(requests))))
        return
    if not STAGE.is_file():
        sys.exit("the bench needs a checkout: its server is among the tests")
    own, peer = ["-m", "sluicegate.race.bench", "--sample"], [str(PEER)]
    with stage() as root:
        found: dict[str, float] = {}
        for in_flight, requests, ttft, speed in ERRORS:
            found = apart(own, root, in_flight, requests)
            late = "" if found["late_s"] <= LATE_S else "  (the server was late in every run)"
            print(line(f"TTFT error, ms, {in_flight} in flight", found["ttft_ms"], ttft) + late)
            print(line(f"output speed error, %, {in_flight} in flight", found["speed_pct"], speed))
        again = [found, *(apart(own, root, 256, 512, 1) for _ in range(2))]
        for key, name, bound in BOUNDS:
            print(line(name, min(each[key] for each in again), bound))
        mine, other = apart(own, root, 64, 128), apart(peer, root, 64, 128)
    print(line("import of the whole room, s", import_s(), 0.2))
    print(line("the race extra on disk, MB", extra_mb(), 70.0))
    print("Beside the OpenAI client in this run, 64 in flight on one core (theirs / ours):")
    for key, name in (("cpu_ms", "CPU"), ("rss_mb", "memory"), ("ttft_ms", "TTFT error")):
        print(f"  {name:<12} {other[key]:.3f} / {mine[key]:.3f} = {other[key] / mine[key]:.1f}")


if __name__ == "__main__":
    main()
