"""The `prepare` job: everything a lock names is fetched and checked beside the serving engine."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from .files import write_json
from .jobs import Job
from .places import Places
from .release import Release, command_of, sources_of
from .sources import fetch


class CheckFailed(Exception):
    """The engine refuses the command line; nothing was stopped for it."""

    kind, transient = "command line", False


def prepare(job: Job, spec: dict[str, Any]) -> dict[str, Any]:
    places, digest, lock = Places.of(spec), spec["digest"], spec["lock"]
    release = Release(places, digest)
    places.make_run()
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
    if not release.ready:
        with job.phase("check"):
            _check(job, places, digest, spec)
        shutil.rmtree(release.folder, ignore_errors=True)
        release.folder.mkdir(parents=True)
        kept = ("digest", "lock", "engine", "command", "model")
        write_json(release.folder / "complete", {k: spec[k] for k in kept})
    return {"result": "prepared", "lock": digest}


def _check(job: Job, places: Places, digest: str, spec: dict[str, Any]) -> None:
    """Let the pinned engine look at its own command line before anything is stopped for it."""
    if not spec["engine"].get("check"):
        return
    argv, env = command_of(places, digest, spec)
    process = subprocess.Popen(
        [*argv, *spec["engine"]["check"]],
        env=env,
        cwd=places.run,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        said, _ = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        said, _ = process.communicate()
    job.check_cancel()
    if process.returncode:
        last = said.strip().splitlines()[-1:] or [f"exit code {process.returncode}"]
        raise CheckFailed(f"{os.path.basename(spec['command'][-1])} refuses its command line: {last[0]}")
