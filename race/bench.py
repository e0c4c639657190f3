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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .exchange import Exchange
from .loop import drive
from .measure import Measurement, measure
from .targets import Target

STAGE = Path(__file__).resolve().parents[1] / "tests" / "race" / "stage.py"
SETTINGS = {"max_tokens": 512, "temperature": 0.7, "top_p": 0.8, "timeout_s": 60.0}
TTFT_MS, TOKENS = 221, 512
LATE_S = 0.002
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


def ours(base: str, in_flight: int, requests: int) -> list[Measurement]:
    """Our client's rows, in the order in which the answers ended."""
    target, rows = Target("bench", base, "m"), list[Measurement]()
    origin = target.resolve()
    calls = [target.call(origin, str(i), SETTINGS) for i in range(requests)]

    def done(exchange: Exchange) -> None:
        rows.append(measure(exchange))

    drive(lambda busy: calls.pop() if calls and busy < in_flight else None, done)
    return rows


def theirs(base: str, in_flight: int, requests: int) -> list[Measurement]:
    """The same figures as a script with the asynchronous OpenAI client takes them: a stamp per parsed event."""
    import asyncio

    from openai import AsyncOpenAI

    async def run() -> list[Measurement]:
        client, slots, rows = AsyncOpenAI(base_url=base, api_key="x"), asyncio.Semaphore(in_flight), list[Measurement]()

        async def one(number: int) -> None:
            async with slots:
                start = time.perf_counter()
                answer = await client.chat.completions.create(
                    model="m",
                    messages=[{"role": "user", "content": str(number)}],
                    stream=True,
                    stream_options={"include_usage": True},
                )
                times, tokens = list[float](), 0
                async for event in answer:
                    at = time.perf_counter()
                    tokens = event.usage.completion_tokens if event.usage else tokens
                    if event.choices and event.choices[0].delta.content:
                        times.append(at)
                row = Measurement(ttft_ms=(times[0] - start) * 1000, end_ms=(time.perf_counter() - start) * 1000)
                row.output_speed = (tokens - 1) / (times[-1] - times[0])
                rows.append(row)

        await asyncio.gather(*(one(number) for number in range(requests)))
        return rows

    return asyncio.run(run())


def sample(client: str, root: str, in_flight: int, requests: int) -> dict[str, float]:
    """One client in this process: its errors against the server's log, its CPU and its memory."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    run: Callable[[str, int, int], list[Measurement]] = {"ours": ours, "theirs": theirs}[client]
    cpu = time.process_time()
    rows = run(f"{root}/spec/{TTFT_MS}/{TOKENS}/v1", in_flight, requests)
    cpu = time.process_time() - cpu
    with urllib.request.urlopen(f"{root}/log", timeout=60) as answer:
        log = json.load(answer)
    late = sorted(s for *_, each in log for s in each)
    sends = [(arrival, [s for s in sent if s[1]]) for _, _, arrival, sent, _ in log]
    ttft = statistics.median((sent[0][0] - arrival) * 1000 for arrival, sent in sends)
    speed = statistics.median((sum(s[1] for s in sent) - 1) / (sent[-1][0] - sent[0][0]) for _, sent in sends)
    return {
        "late_s": late[int(0.99 * (len(late) - 1))],
        "ttft_ms": abs(statistics.median(row.ttft_ms or 0 for row in rows) - ttft),
        "speed_pct": abs(statistics.median(row.output_speed or 0 for row in rows) / speed - 1) * 100,
        "cpu_ms": cpu * 1000 / sum((row.end_ms or 0) / 1000 for row in rows),
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def apart(client: str, root: str, in_flight: int, requests: int, runs: int = 4) -> dict[str, float]:
    """A sample in a process of its own, repeated while the server was late; the last one if it always was."""
    found: dict[str, float] = {}
    for _ in range(runs):
        words = ["--sample", client, root, str(in_flight), str(requests)]
        command = [sys.executable, "-m", __spec__.name if __spec__ else "sluicegate.race.bench", *words]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
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
    """Print the figures; with --sample, one sample as JSON (what `apart` runs)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--sample", nargs=4, metavar=("CLIENT", "ROOT", "IN_FLIGHT", "REQUESTS"), help=argparse.SUPPRESS
    )
    args = parser.parse_args()
    if args.sample:
        client, root, in_flight, requests = args.sample
        print(json.dumps(sample(client, root, int(in_flight), int(requests))))
        return
    if not STAGE.is_file():
        sys.exit("the bench needs a checkout: its server is among the tests")
    bounds: list[tuple[int, int, float, float]] = [
        (1, 4, 0.5, 0.1),
        (16, 32, 1.0, 0.2),
        (64, 128, 1.0, 0.2),
        (256, 512, 5.0, 0.5),
    ]
    with stage() as root:
        found: dict[str, Any] = {}
        for in_flight, requests, ttft, speed in bounds:
            found = apart("ours", root, in_flight, requests)
            late = "" if found["late_s"] <= LATE_S else "  (the server was late in every run)"
            print(line(f"TTFT error, ms, {in_flight} in flight", found["ttft_ms"], ttft) + late)
            print(line(f"output speed error, %, {in_flight} in flight", found["speed_pct"], speed))
        again = [found, *(apart("ours", root, 256, 512, 1) for _ in range(2))]
        for key, name, bound in BOUNDS:
            print(line(name, min(each[key] for each in again), bound))
        mine, other = apart("ours", root, 64, 128), apart("theirs", root, 64, 128)
    print(line("import of the whole room, s", import_s(), 0.2))
    print(line("the race extra on disk, MB", extra_mb(), 70.0))
    print("Beside the OpenAI client in this run, 64 in flight on one core (theirs / ours):")
    for key, name in (("cpu_ms", "CPU"), ("rss_mb", "memory"), ("ttft_ms", "TTFT error")):
        print(f"  {name:<12} {other[key]:.3f} / {mine[key]:.3f} = {other[key] / mine[key]:.1f}")


if __name__ == "__main__":
    main()
