"""Detached jobs: started by a verb, followed by anyone, finished alone.

A job is a folder `jobs/<id>/`: `events.jsonl` (its last line is the result), `job.json` (which process), `worker.json`
(its child, which does the work), and `revert` once somebody asked it to give up. What it is to do comes on its stdin.

Two processes, so that no single death leaves a change half done: a worker whose job is killed goes on alone; a worker
that is killed is answered for by the job, which takes back what it had begun.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from .files import UTC, now, read_json, said, write_json
from .places import Places
from .processes import Proc
from .self import detach

STAMP = "%Y%m%dT%H%M%S.%f"
MICROSECOND = timedelta(microseconds=1)
KEEP = 20  # folders of ended jobs


class Cancelled(Exception):
    """Somebody asked this job to give up."""


@dataclass
class Job:
    """A running job as its own code sees it."""

    folder: Path
    phases: dict[str, float] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return self.folder.name

    def emit(
        self, phase: str, event: str, text: str | None = None, done: int | None = None, total: int | None = None
    ) -> None:
        """One event line: `event` is start, progress, end, note or fail; `done` and `total` are bytes."""
        line = {"t": now(), "job": self.id, "phase": phase, "event": event, "bytes": done, "total": total, "text": text}
        with suppress(OSError):  # a full disk costs a line of progress, never the change
            _append(self.folder / "events.jsonl", line)

    def phase(self, name: str) -> _Phase:
        """Time a phase: start and end events, seconds summed in `phases`."""
        return _Phase(self, name)

    def cancelled(self) -> bool:
        return (self.folder / "revert").exists()

    def check_cancel(self) -> None:
        if self.cancelled():
            raise Cancelled("asked to give up")

    def sleep(self, seconds: float) -> None:
        self.check_cancel()
        time.sleep(seconds)


@dataclass
class _Phase:
    job: Job
    name: str
    began: float = 0.0

    def __enter__(self) -> _Phase:
        self.began = time.monotonic()
        self.job.emit(self.name, "start")
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        seconds = time.monotonic() - self.began
        self.job.phases[self.name] = round(self.job.phases.get(self.name, 0.0) + seconds, 3)
        self.job.emit(self.name, "end" if kind is None else "fail", text=f"{seconds:.2f} s")


def start(places: Places, verb: str, spec: dict[str, Any]) -> str:
    """Write the job down and start it; its id. Ids sort in the order of the starts, also by a clock set back."""
    folder = _new_folder(places.jobs, verb)
    job = folder.name
    (folder / "events.jsonl").touch(mode=0o600)
    process = Proc.of(detach(["job", str(folder)], folder / "stderr", json.dumps(spec).encode()).pid)
    # Written here and not by the job: it can be seen, and asked to give up, from the moment its id is known.
    write_json(folder / "job.json", {"process": process.dump() if process else None, "started": now()})
    _forget(places.jobs)
    return job


Work = Callable[[Job, dict[str, Any]], dict[str, Any]]


def _new_folder(jobs: Path, verb: str) -> Path:
    jobs.mkdir(parents=True, exist_ok=True, mode=0o700)
    at = datetime.now(UTC)
    for last in sorted((f.name for f in jobs.iterdir() if f.name[:1].isdigit()), reverse=True)[:1]:
        with suppress(ValueError):
            at = max(at, datetime.strptime(last.partition("-")[0], STAMP).replace(tzinfo=UTC) + MICROSECOND)
    while True:
        try:
            folder = jobs / f"{at:{STAMP}}-{verb}"
            folder.mkdir(mode=0o700)
            return folder
        except FileExistsError:
            at += MICROSECOND


def run(folder: Path, verbs: dict[str, Work], after_kill: dict[str, Work]) -> int:
    """The body of the detached process: run the verb, write its result whatever happens.

    `after_kill` has, for a verb that can leave something half done, what puts it right once its worker was killed.
    """
    for sig in (signal.SIGINT, signal.SIGHUP):
        signal.signal(sig, signal.SIG_IGN)
    verb, spec = folder.name.rpartition("-")[2], json.load(sys.stdin)
    if (worker := os.fork()) == 0:
        with _ending():
            if me := Proc.of(os.getpid()):
                write_json(folder / "worker.json", me.dump())
            _answer(Job(folder), verbs[verb], spec)
    os.waitpid(worker, 0)
    if result_of(folder) is None:
        _end_line(folder / "events.jsonl")  # it may have been killed in the middle of one
        _answer(Job(folder), after_kill.get(verb, _killed), spec)
    return 0


def _killed(job: Job, _spec: dict[str, Any]) -> dict[str, Any]:
    return {"result": "down", "cause": {"kind": "killed", "text": f"job {job.id} was killed", "transient": True}}


@contextmanager
def _ending() -> Iterator[None]:
    """For a forked child: whatever happens, it ends here and never returns into its parent's code."""
    try:
        yield
    except BaseException:  # noqa: BLE001 - its own stderr file gets the trace; nobody else is there to
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _answer(job: Job, work: Work, spec: dict[str, Any]) -> None:
    """Do the work and write its result down, whatever happens."""
    try:
        result = work(job, spec)
    except Cancelled as e:
        result = {"result": "failed", "cause": {"kind": "cancelled", "text": str(e), "transient": True}}
    except Exception as e:  # noqa: BLE001 - a job answers in every case; the trace goes to its own stderr file
        traceback.print_exc()
        text = str(e) if hasattr(e, "kind") else said(e)
        kind = getattr(e, "kind", "disk" if isinstance(e, OSError) and e.errno == errno.ENOSPC else "internal")
        cause = {"kind": kind, "text": text, "transient": getattr(e, "transient", True)}
        result = {"result": "failed", "cause": cause}
    answer: dict[str, Any] = {"phases": job.phases, "gate": [], "cause": None, "log_tail": [], "serving": None} | result
    _append(job.folder / "events.jsonl", answer)


def follow(folder: Path, offset: int) -> Iterator[str]:
    """Event lines from byte `offset` on, the result last. A job that died without one is answered for: `down`."""
    events = folder / "events.jsonl"
    if not events.exists():
        yield _down("lost", f"no job {folder.name} here")
        return
    with events.open("rb") as f:
        f.seek(offset)
        while True:
            dead = not alive(folder)
            while line := f.readline():
                if not line.endswith(b"\n"):
                    f.seek(-len(line), os.SEEK_CUR)
                    break
                if (value := _object(line)) is None:
                    continue  # what a killed worker had half written
                yield line.decode(errors="replace").rstrip("\n")
                if "result" in value:
                    return
            if dead:
                yield _down("killed", f"job {folder.name} ended without an answer")
                return
            time.sleep(0.02)


def process(folder: Path) -> Proc | None:
    return Proc.read((read_json(folder / "job.json") or {}).get("process"))


def alive(folder: Path) -> bool:
    """The job's process, or its worker that goes on without it."""
    worker = Proc.read(read_json(folder / "worker.json"))
    return any(proc and proc.alive() for proc in (process(folder), worker))


def result_of(folder: Path) -> dict[str, Any] | None:
    try:
        last = _object((folder / "events.jsonl").read_bytes().splitlines()[-1])
    except (FileNotFoundError, IndexError):
        return None
    return last if last and "result" in last else None


def running(places: Places) -> list[str]:
    """Ids of the jobs that run now, oldest first."""
    if not places.jobs.is_dir():
        return []
    return [f.name for f in sorted(places.jobs.iterdir()) if alive(f)]


def _forget(jobs: Path) -> None:
    for old in sorted(jobs.iterdir())[:-KEEP]:
        if not alive(old):
            shutil.rmtree(old, ignore_errors=True)


def _end_line(path: Path) -> None:
    with path.open("rb+") as f:
        if f.seek(0, os.SEEK_END) and f.seek(-1, os.SEEK_END) is not None and f.read(1) != b"\n":
            f.write(b"\n")


def _append(path: Path, value: dict[str, Any]) -> None:
    with path.open("a") as f:
        f.write(_line(value) + "\n")


def _line(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _down(kind: str, text: str) -> str:
    return _line({"result": "down", "cause": {"kind": kind, "text": text, "transient": True}})
