"""Decides once which Pulumi toolchain is used and remembers it until something it depends on changes."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tools import go_build, official, stamps
from tools.console import say
from tools.paths import GO_MODULES, TOOLS, VERSIONS_FILE, versions
from tools.pulumi_cli import Toolchain, find, suits, users_path

RECORD = TOOLS / "stamps" / "toolchain.json"


def wanted() -> str:
    """The pins, and the pulumi found on PATH as it is now: its place, size and time."""
    files = [VERSIONS_FILE, *(GO_MODULES / name / "go.sum" for name in ("cli", "language-python"))]
    pulumi, host = find(users_path(os.environ.get("PATH", os.defpath)))
    facts: list[object] = []
    for program in (pulumi, host):
        status = Path(program).stat() if program else None
        facts.append((program, status.st_size, status.st_mtime_ns) if status else None)
    return stamps.fingerprint(files, facts)


def recorded() -> Toolchain | None:
    """The toolchain chosen earlier, if all it was chosen from is unchanged and it is still there."""
    if not RECORD.is_file():
        return None
    record = json.loads(os.fsdecode(RECORD.read_bytes()))
    chosen = Toolchain(**record["toolchain"])
    return chosen if record["wanted"] == wanted() and chosen.present() else None


def prepare(*, retry_downloads: bool) -> Toolchain:
    """The toolchain, fetched or built where need be."""
    chosen = recorded()
    if chosen is not None and not (retry_downloads and chosen.how == "build"):
        return chosen
    chosen = _choose()
    record = {"wanted": wanted(), "toolchain": chosen.as_dict()}
    stamps.write(RECORD, json.dumps(record, indent=1, ensure_ascii=False))
    return chosen


def _choose() -> Toolchain:
    pinned = versions()
    pulumi, host = find(users_path(os.environ.get("PATH", os.defpath)))
    installed = suits(pulumi, host, pinned)
    if isinstance(installed, Toolchain):
        return installed
    say(f"pulumi: {installed}; trying the official download (gives up within 10 s)")
    downloaded = official.download_cli(pinned)
    if isinstance(downloaded, Toolchain):
        return downloaded
    say(f"pulumi: {downloaded}; building from the published Go modules")
    return go_build.build(pinned)
