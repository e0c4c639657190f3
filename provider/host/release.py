"""A release: one lock made ready on this machine, in an immutable folder named by it."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .files import link_atomic, read_json
from .places import Places, short
from .service import Service

ROLES = ("weights", "tokenizer", "drafter")


@dataclass(frozen=True)
class Release:
    places: Places
    digest: str

    @property
    def folder(self) -> Path:
        return self.places.release(self.digest)

    @property
    def spec(self) -> dict[str, Any]:
        """What `prepare` wrote down: lock, engine facts, command. Raises KeyError when there is no such release."""
        value = read_json(self.folder / "complete")
        if value is None:
            raise KeyError(f"release {short(self.digest)} is not complete here; prepare it first")
        return dict(value)

    @property
    def ready(self) -> bool:
        return read_json(self.folder / "complete") is not None

    @property
    def service(self) -> Service:
        return Service(self.folder / "engine")

    @property
    def socket(self) -> Path:
        return self.places.socket(self.digest)

    def open(self) -> None:
        """Let the front's held requests through to this release's engine."""
        link_atomic(self.folder.relative_to(self.places.home), self.places.current)
        link_atomic(self.socket.name, self.places.current_sock)
        self.service.keep()


def sources_of(lock: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Role -> its entry, `same_as` followed."""
    sources = lock["sources"]
    found = {}
    for role in ROLES:
        entry = sources.get(role)
        if entry:
            found[role] = sources[entry["same_as"]] if "same_as" in entry else entry
    return found


def argv_of(places: Places, digest: str, lock: dict[str, Any]) -> tuple[list[str], dict[str, str]]:
    """The lock's argument list and environment with this machine's places filled in."""
    fill = {role: str(places.source(e["ref"]) / "files") for role, e in sources_of(lock).items()}
    fill |= {"socket": str(places.socket(digest)), "cache": str(places.compile_cache(digest)), "lock": digest}

    def put(text: str) -> str:
        for name, value in fill.items():
            text = text.replace("{" + name + "}", value)
        return text

    return [put(a) for a in lock["argv"]], {k: put(v) for k, v in lock["env"].items()}


def command_of(places: Places, digest: str, spec: dict[str, Any]) -> tuple[list[str], dict[str, str]]:
    """What the process runtime executes: the spec's command with the pinned wheel first on the import path."""
    argv, env = argv_of(places, digest, spec["lock"])
    wheel = places.source(spec["lock"]["engine"]["source"]) / "files"
    base = {k: os.environ[k] for k in ("PATH", "HOME", "LANG", "TMPDIR") if k in os.environ}
    own = {"PYTHONPATH": str(wheel), "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    return [*spec["command"], *argv], base | env | own


def current(places: Places) -> Release | None:
    """The release that is meant to serve, by the `current` link; None when there is none or the link leads nowhere."""
    try:
        name = os.readlink(places.current)
    except OSError:
        return None
    value = read_json(places.home / name / "complete")
    return Release(places, value["digest"]) if value else None


def collect(places: Places, keep: set[str]) -> None:
    """Remove the releases that are not in `keep` (digests) and that nothing runs from."""
    releases = places.home / "releases"
    for folder in sorted(releases.iterdir()) if releases.is_dir() else []:
        if folder.name not in {short(d) for d in keep} and not Service(folder / "engine").supervisor():
            shutil.rmtree(folder, ignore_errors=True)


def collect_sources(root: Path) -> list[str]:
    """Remove every source that no stack's release needs, and compile caches once no stack is left; their names."""
    used, gone = _used_sources(root), []
    for folder in sorted((root / "sources").glob("*/")):
        if folder.name not in used:
            shutil.rmtree(folder, ignore_errors=True)
            folder.with_name(folder.name + ".lock").unlink(missing_ok=True)
            gone.append(folder.name)
    if not list((root / "stacks").glob("*/")):
        shutil.rmtree(root / "compile", ignore_errors=True)
    for empty in (root / "sources", root):
        with suppress(OSError):
            empty.rmdir()
    return gone


def cache_bytes(root: Path) -> int:
    """Bytes of every fetched source and compile cache."""
    files = (p for name in ("sources", "compile") for p in (root / name).rglob("*"))
    return sum(p.stat().st_size for p in files if p.is_file())


def _used_sources(root: Path) -> set[str]:
    used = set()
    for complete in root.glob("stacks/*/releases/*/complete"):
        try:
            lock = json.loads(complete.read_text())["lock"]
        except (ValueError, KeyError):
            continue
        refs = [lock["engine"]["source"], *(e["ref"] for e in sources_of(lock).values())]
        places = Places(root, root, "")
        used |= {places.source(r).name for r in refs}
    for front in root.glob("stacks/*/front/source"):
        used.add(Places(root, root, "").source(front.read_text()).name)
    return used
