"""Fetching what a lock names: every byte checked, complete or absent, one owner at a time.

A source is a folder named by the hash of its reference: `files/` and `complete`, written last. It is made beside its
place and takes it when whole, so that a fetch that fails never costs what is there. Nothing reads one without marker.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .errand import Errand, FetchError
from .files import files_in, locked, read_json, sha256_of, write_json
from .jobs import Job
from .places import Places
from .pypi import from_pypi


def fetch(job: Job, places: Places, phase: str, ref: str, entry: dict[str, Any], base: Path | None) -> Path:
    """The folder with the files of `ref`, fetched if it is not complete yet.

    `entry` has the lock's `files` (path, bytes, sha256) where it lists them; `base` is the folder that `file:`
    references are relative to. Raises FetchError.
    """
    place = places.source(ref)
    with locked(place.with_name(place.name + ".lock"), job.id, 3600, job.check_cancel):
        job.check_cancel()
        if not _is_complete(place, entry):
            kind = ref.partition(":")[0]
            if kind not in _FETCHERS:
                raise FetchError("unsupported", f"{ref}: this runtime fetches {', '.join(_FETCHERS)} sources only")
            job.emit(phase, "note", text=f"fetching {ref}")
            new = place.with_name(place.name + ".part")
            shutil.rmtree(new, ignore_errors=True)
            try:
                (new / "files").mkdir(parents=True)
                _FETCHERS[kind](Errand(job, phase, ref, new, base, entry.get("bytes")))
                _verify(new / "files", ref, entry)
                write_json(new / "complete", {"ref": ref, "have": _have(new / "files")})
                shutil.rmtree(place, ignore_errors=True)
                new.rename(place)
            except OSError as e:
                raise FetchError("disk", f"{ref}: {e}", transient=True) from e
            finally:
                shutil.rmtree(new, ignore_errors=True)
    return place / "files"


def _is_complete(place: Path, entry: dict[str, Any]) -> bool:
    """Every file, listed in the lock or not, is as it was when its hash was checked: none gone, changed or added."""
    marker = read_json(place / "complete") or {}
    if marker.get("have") != _have(place / "files"):
        return False
    return all(_size(place / "files" / f["path"]) == f["bytes"] for f in entry.get("files", []))


def _have(files: Path) -> dict[str, list[int]]:
    """Path -> bytes, time of the last change (ns) and inode of each file: what a write to it cannot leave alike."""
    kept = ((path.relative_to(files), stat) for path, stat in files_in(files))
    return {str(path): [stat.st_size, stat.st_mtime_ns, stat.st_ino] for path, stat in sorted(kept)}


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except (FileNotFoundError, NotADirectoryError):
        return -1


def _verify(files: Path, ref: str, entry: dict[str, Any]) -> None:
    for want in entry.get("files", []):
        path, size = files / want["path"], _size(files / want["path"])
        if size < 0:
            raise FetchError("missing file", f"{ref}: no file {want['path']} in it")
        if size != want["bytes"]:
            raise FetchError("wrong hash", f"{ref}: {want['path']} has {size} bytes, the lock says {want['bytes']}")
        if want.get("sha256") and (got := sha256_of(path)) != want["sha256"]:
            raise FetchError("wrong hash", f"{ref}: {want['path']} has sha256 {got}, the lock says {want['sha256']}")


def _from_file(errand: Errand) -> None:
    """Copy a file that lies in the project; the copy is what is checked and served."""
    ref, base = errand.ref, errand.base
    match = re.fullmatch(r"file:([^#]+)#sha256:([0-9a-f]{64})", ref)
    if base is None or not match or Path(match[1]).is_absolute() or ".." in Path(match[1]).parts:
        raise FetchError("bad reference", f"{ref}: expected file:PATH#sha256:<64 hex>, PATH inside the project")
    path, digest = match.groups()
    source, target = base / path, errand.place / "files" / Path(path).name
    if not source.is_file():
        raise FetchError("missing file", f"{ref}: no file {path} in the project; `make setup` makes the shipped ones")
    began, done = time.monotonic(), 0
    with source.open("rb") as src, target.open("wb") as dst:
        while block := src.read(4 << 20):
            dst.write(block)
            done += len(block)
            if time.monotonic() - began > 0.2:
                errand.job.check_cancel()
                errand.progress(done)
                began = time.monotonic()
    if (got := sha256_of(target)) != digest:
        raise FetchError("wrong hash", f"{ref}: {path} has sha256 {got}")


_FETCHERS: dict[str, Callable[[Errand], None]] = {"pypi": from_pypi, "file": _from_file}
