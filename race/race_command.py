"""`sluicegate race`: from options to a table, files and an exit code."""

from __future__ import annotations

import shutil
import time
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from .entry import show, tell
from .openrouter import provider_targets
from .options import check_outputs, distinct, settings_from, targets_from
from .progress import Progress
from .results import SCHEMA, Document, claimed, describe, now, resumed, save, write_csv
from .run import WARM_UP, Job, Race, schedule
from .summary import summarise, verdicts
from .table import number, race_table
from .targets import Target, key_from

SAVE_EVERY_S = 2.0


def run_race(args: Namespace, more: Sequence[Target] = ()) -> int:
    """Run it. 0 = every request of every target succeeded, 1 = some did not, 130 = interrupted, result kept.

    Raises ValueError (what is wrong with the options) before anything is sent, OSError when a file cannot be written.
    """
    check_outputs(args)
    settings = _settings(args)
    targets = _targets(args, more)
    with claimed(args.json):
        kept = resumed(args.json, "race", settings, targets, args.seed) if args.resume else None
        document = kept or _new(settings, targets)
        jobs, succeeded = _left(document)
        save(args.json, _finished(document, targets, None))
        interrupted = _run(args, document, targets, jobs, succeeded)
        save(args.json, _finished(document, targets, None if interrupted else now()))
    show(race_table(document, shutil.get_terminal_size((160, 24)).columns))
    if args.csv:
        write_csv(args.csv, document)
    if args.html:
        from .report import write_page

        write_page(args.html, [document])
    if interrupted:
        tell(f"Interrupted; {args.json} has what was measured, and --resume goes on with it.")
        return 130
    return int(any(t["error"] or t["summary"]["failed"] for t in document["targets"]))


def _settings(args: Namespace) -> dict[str, Any]:
    order = "back to back" if args.back_to_back else "interleaved"
    return settings_from(args) | {"rounds": args.rounds, "concurrency": args.concurrency, "order": order}


def _targets(args: Namespace, more: Sequence[Target]) -> list[Target]:
    targets = targets_from(args, more)
    if bool(args.openrouter) != bool(args.providers):
        raise ValueError("--openrouter MODEL and --providers A,B (or all) go together")
    if args.openrouter:
        key = key_from(args.openrouter_key_env, "--openrouter")
        targets += provider_targets(args.openrouter, args.providers, key, args.openrouter_url)
    if not targets:
        raise ValueError("nothing to race: give --target, --openrouter or --stack")
    distinct([target.name for target in targets])
    return targets


def _new(settings: dict[str, Any], targets: Sequence[Target]) -> Document:
    return {
        "schema": SCHEMA,
        "kind": "race",
        "started": now(),
        "finished": None,
        "resumed": 0,
        "settings": settings,
        "targets": [describe(target) for target in targets],
        "verdicts": [],
    }


def _left(document: Document) -> tuple[list[Job], list[int]]:
    settings, targets = document["settings"], document["targets"]
    jobs = schedule(
        len(targets),
        list(settings["prompts"]),
        settings["rounds"],
        settings["seed"],
        settings["order"] == "back to back",
    )
    done = {(n, row["round"], row["prompt"]) for n, t in enumerate(targets) for row in t["requests"]}
    jobs = [job for job in jobs if (job.target, job.round, job.prompt) not in done]
    open_targets = {job.target for job in jobs if job.round != WARM_UP}
    succeeded = [n for n, t in enumerate(targets) if any(row["error"] is None for row in t["requests"])]
    return [job for job in jobs if job.target in open_targets], succeeded


def _run(args: Namespace, document: Document, targets: list[Target], jobs: list[Job], succeeded: list[int]) -> bool:
    """Send the jobs; True when interrupted."""
    progress, saved = Progress(len(jobs)), time.monotonic()
    told = document["targets"]

    def on_row(job: Job, row: dict[str, Any]) -> None:
        nonlocal saved
        if job.round == WARM_UP:
            told[job.target]["warm_up"] = row
        else:
            told[job.target]["requests"].append(row)
        speed = f"{number(row['output_speed'])} tok/s, {number(row['ttft_ms'])} ms"
        place = "warm-up" if job.round == WARM_UP else f"round {job.round} {job.prompt}"
        progress.step(f"{targets[job.target].name}  {place}  {row['error'] or speed}")
        if time.monotonic() - saved > SAVE_EVERY_S:
            save(args.json, _finished(document, targets, None))
            saved = time.monotonic()

    def on_out(number: int, why: str) -> None:
        told[number]["error"] = why
        sent = len(told[number]["requests"]) + (told[number]["warm_up"] is not None)
        planned = sum(job.target == number for job in jobs)
        progress.say(f"{targets[number].name} is out: {why}")
        progress.step(f"{targets[number].name} is out", max(planned - sent, 0))

    try:
        Race(targets, document["settings"], on_row, on_out, document["resumed"]).run(jobs, succeeded)
    except KeyboardInterrupt:
        return True
    finally:
        progress.close()
    return False


def _finished(document: Document, targets: Sequence[Target], finished: str | None) -> Document:
    document["finished"] = finished
    for target, said in zip(targets, document["targets"], strict=True):
        said["summary"] = summarise(said["requests"], target.hourly)
    document["verdicts"] = verdicts(document["targets"])
    return document
