"""`sluicegate load`: from options to a curve, files and an exit code."""

from __future__ import annotations

import shutil
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from .entry import show, tell
from .load import Interrupted, Load, Row, Step
from .load_table import load_table
from .loop import explain
from .options import check_outputs, settings_from, targets_from
from .point import break_even_at, capacity, knee
from .progress import Progress
from .results import SCHEMA, Document, claimed, describe, now, resumed, save, write_csv
from .table import number
from .targets import Target


def run_load(args: Namespace, more: Sequence[Target] = ()) -> int:
    """Run it. 0 = every request succeeded, 1 = some did not, 130 = interrupted, finished steps kept.

    Raises ValueError (what is wrong with the options) before anything is sent, OSError when a file cannot be written.
    """
    check_outputs(args)
    targets = targets_from(args, more)
    if len(targets) != 1:
        raise ValueError("load measures one endpoint: give exactly one --target or --stack")
    target, steps = targets[0], _steps(args)
    settings = settings_from(args) | {
        "limit_ttft_ms": args.limit_ttft_ms,
        "limit_speed": args.limit_speed,
        "hourly": args.hourly or target.hourly,
        "against": args.against,
        "steps": [asdict(step) for step in steps],
    }
    with claimed(args.json):
        kept = resumed(args.json, "load", settings, [target], args.seed) if args.resume else None
        document = kept or _new(settings, target)
        document["points"] = [point for point in document["points"] if point["whole"]]
        save(args.json, _concluded(document))
        interrupted = _run(document, target, steps, args)
        document["finished"] = None if interrupted else now()
        save(args.json, _concluded(document))
    show(load_table(document, shutil.get_terminal_size((160, 24)).columns))
    if args.csv:
        write_csv(args.csv, {"targets": [{"name": target.name, "requests": _rows(document)}]})
    if args.html:
        from .report import write_page

        write_page(args.html, [document])
    if interrupted:
        tell(f"Interrupted; {args.json} has what was measured, and --resume does the steps that are not whole.")
        return 130
    points = document["points"]
    return int(bool(document["target"]["error"]) or not points or any(point["failed"] for point in points))


def _new(settings: dict[str, Any], target: Target) -> Document:
    return {
        "schema": SCHEMA,
        "kind": "load",
        "started": now(),
        "finished": None,
        "resumed": 0,
        "settings": settings,
        "target": {key: value for key, value in describe(target).items() if key not in ("summary", "requests")},
        "points": [],
    }


def _steps(args: Namespace) -> list[Step]:
    """The closed steps, then the open ones. Without any option 1, 2, 4, 8, 16 in flight."""
    if args.up_to and args.levels:
        raise ValueError("--up-to and --levels both say how many at once: give one")
    levels = args.levels or []
    if args.up_to or (not args.levels and not args.rates):
        top = args.up_to or 16
        levels = sorted({*(2**i for i in range(top.bit_length()) if 2**i <= top), top})
    if args.requests and levels and args.requests < max(levels):
        raise ValueError(f"--requests {args.requests} can never be {max(levels)} in flight: give at least as many")
    closed = [Step(args.requests or max(24, 4 * level), concurrency=level) for level in levels]
    return closed + [Step(args.requests or 48, rate=rate) for rate in args.rates or []]


def _run(document: Document, target: Target, steps: list[Step], args: Namespace) -> bool:
    """Measure the steps that are not there yet; True when interrupted. What makes the target unusable is told in it."""
    there = {(point["concurrency"], point["rate"]) for point in document["points"]}
    steps = [step for step in steps if (step.concurrency, step.rate) not in there]
    if not steps:
        return False
    progress = Progress(sum(step.requests for step in steps))
    try:
        origin = target.resolve()
    except OSError as error:
        document["target"]["error"] = f"cannot resolve {target.address()[0]}: {explain(error)}"
        return False
    try:
        load = Load(target, origin, document["settings"], document["resumed"])
        document["target"]["warm_up"] = warm = load.warm_up()
        if warm["error"]:
            document["target"]["error"] = warm["error"]
            return False
        for step in steps:

            def on_row(row: Row, step: Step = step) -> None:
                speed = f"{number(row['output_speed'])} tok/s, {number(row['ttft_ms'])} ms"
                progress.step(f"{step}  {row['error'] or speed}")

            document["points"].append(load.step(step, on_row))
            save(args.json, _concluded(document))
            if document["points"][-1]["failed"] == step.requests:
                progress.say(f"nothing succeeded at {step}: the steps after it are left out")
                break
    except Interrupted as stop:
        document["points"].append(stop.point)
        return True
    except KeyboardInterrupt:
        return True
    finally:
        progress.close()
    return False


def _concluded(document: Document) -> Document:
    points, settings = document["points"], document["settings"]
    best = capacity(points, settings)
    found = break_even_at(best, settings["hourly"], settings["against"])
    document["knee"] = knee(points)
    document["capacity"] = best and {key: best[key] for key in ("concurrency", "rate", "total_speed", "steady_speed")}
    document["break_even"] = found and asdict(found)
    return document


def _rows(document: Document) -> list[dict[str, Any]]:
    return [
        {"concurrency": point["concurrency"], "rate": point["rate"]} | row
        for point in document["points"]
        for row in point["rows"]
    ]
