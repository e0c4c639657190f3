"""The `prepare` job: everything a lock names is fetched and checked beside the serving engine."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

from .files import read_json, write_json
from .jobs import Job
from .places import Places
from .processes import die_with_parent
from .release import Release, command_of, note_wanted, sources_of
from .sources import fetch

CHECK_S = 60


class CheckFailed(Exception):
    """The engine refuses the command line; nothing was stopped for it."""

    kind, transient = "command line", False


def prepare(job: Job, spec: dict[str, Any]) -> dict[str, Any]:
    places, digest, lock = Places.of(spec), spec["digest"], spec["lock"]
    release = Release(places, digest)
    for pattern in spec["engine"]["patterns"]:
        re.compile(pattern["match"])  # a bad one is told now, not in the middle of a swap
    places.make_run()
    note_wanted(places, digest, lock)
    base = Path(spec["files_base"]) if spec.get("files_base") else None
    engine = lock["engine"]
    size = sum(p.get("bytes") or 0 for p in engine.get("platforms", {}).values()) or None
    with job.phase("image"):
        fetch(job, places, "image", engine["source"], engine | {"bytes": size}, base)
    with job.phase("weights"):
        for entry in sources_of(lock).values():
            total = sum(f["bytes"] for f in entry.get("files", [])) or None
            fetch(job, places, "weights", entry["ref"], entry | {"bytes": total}, base)
    places.compile_cache(digest).mkdir(parents=True, exist_ok=True)
    # How this lock is run here (which Python, which facts to gate by) can change while the lock stays the same.
    kept = {k: spec[k] for k in ("digest", "lock", "engine", "command", "model")}
    if read_json(release.folder / "complete") != kept:
        with job.phase("check"):
            _check(job, places, digest, spec)
        write_json(release.folder / "complete", kept)
    return {"result": "prepared", "lock": digest}


def _check(job: Job, places: Places, digest: str, spec: dict[str, Any]) -> None:
    """Let the pinned engine look at its own command line before anything is stopped for it."""
    if not spec["engine"].get("check"):
        return
    argv, env = command_of(places, digest, spec)
    name = os.path.basename(spec["command"][-1])
    try:
        process = subprocess.Popen(
            [*argv, *spec["engine"]["check"]],
            env=env,
            cwd=places.run,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            preexec_fn=die_with_parent(),
        )
    except OSError as e:
        raise CheckFailed(f"{name} cannot be started: {e}") from e
    try:
        said, _ = process.communicate(timeout=CHECK_S)
    except subprocess.TimeoutExpired:
        raise CheckFailed(f"{name} had not checked its command line after {CHECK_S} s") from None
    finally:
        process.kill()
        process.wait()
    job.check_cancel()
    if process.returncode:
        last = said.strip().splitlines()[-1:] or [f"exit code {process.returncode}"]
        raise CheckFailed(f"{name} refuses its command line: {last[0]}")
