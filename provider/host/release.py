"""A release: one lock made ready on this machine, in an immutable folder named by it."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .files import Busy, files_in, link_atomic, locked, read_json, write_json
from .places import Places, short
from .service import Service

ROLES = ("weights", "tokenizer", "drafter")


class NotPrepared(Exception):
    """No complete release of this lock is here; nothing was stopped for it."""

    kind, transient = "not prepared", True


@dataclass(frozen=True)
class Release:
    places: Places
    digest: str

    @property
    def folder(self) -> Path:
        return self.places.release(self.digest)

    @property
    def spec(self) -> dict[str, Any]:
        """What `prepare` wrote down: lock, engine facts, command. Raises NotPrepared when there is no such release."""
        value = read_json(self.folder / "complete")
        if value is None:
            raise NotPrepared(f"release {short(self.digest)} is not complete here; prepare it first")
        return value

    @property
    def service(self) -> Service:
        return Service(self.folder / "engine")

    @property
    def socket(self) -> Path:
        return self.places.socket(self.digest)

    def open(self) -> None:
        """Let the front's held requests through to this release's engine. Raises RuntimeError when it is gone."""
        self.service.keep()
        link_atomic(self.folder.relative_to(self.places.home), self.places.current)
        link_atomic(self.socket.name, self.places.current_sock)


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
        return re.sub(r"\{(\w+)\}", lambda match: fill.get(match[1], match[0]), text)

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
    return Release(places, value["digest"]) if value and "digest" in value else None


def services(places: Places) -> list[Service]:
    """Every release's service, running or not."""
    return [Service(folder) for folder in sorted((places.home / "releases").glob("*/engine"))]


def collect(places: Places, keep: set[str]) -> None:
    """Remove the releases that are not in `keep` (digests), that nothing runs from, and that are not just prepared."""
    wanted = (read_json(places.home / "wanted.json") or {}).get("digest")
    names = {short(d) for d in (*keep, wanted) if d}
    for folder in _folders(places.home / "releases"):
        if folder.name not in names and not Service(folder / "engine").supervisor():
            shutil.rmtree(folder, ignore_errors=True)


def collect_sources(root: Path) -> list[str]:
    """Remove every source that no stack needs or is fetching, and compile caches once no stack is left; their names."""
    used, gone = _used_sources(root), []
    for folder in _folders(root / "sources"):
        lock = folder.with_name(folder.name.removesuffix(".part") + ".lock")
        if folder.name.removesuffix(".part") in used:
            continue
        with suppress(Busy), locked(lock, "collect", 0):
            shutil.rmtree(folder, ignore_errors=True)
            lock.unlink(missing_ok=True)
            gone.append(folder.name)
    if not _folders(root / "stacks"):
        shutil.rmtree(root / "compile", ignore_errors=True)
    for empty in (root / "sources", root):
        with suppress(OSError):
            empty.rmdir()
    return gone


def _folders(place: Path) -> list[Path]:
    return sorted(p for p in place.iterdir() if p.is_dir()) if place.is_dir() else []


def cache_bytes(root: Path) -> int:
    """Bytes of every fetched source and compile cache."""
    return sum(stat.st_size for name in ("sources", "compile") for _, stat in files_in(root / name))


def note_wanted(places: Places, digest: str, lock: dict[str, Any]) -> None:
    """Say what is about to be made ready, so that nobody takes it for unused before it serves."""
    write_json(places.home / "wanted.json", {"digest": digest, "lock": lock})


def _used_sources(root: Path) -> set[str]:
    """Names of the sources that a stack's releases, running `prepare` or front need."""
    where, used = Places(root, root, ""), set()
    for note in (*root.glob("stacks/*/releases/*/complete"), *root.glob("stacks/*/wanted.json")):
        lock = (read_json(note) or {}).get("lock")
        if lock:
            refs = [lock["engine"]["source"], *(e["ref"] for e in sources_of(lock).values())]
            used |= {where.source(r).name for r in refs}
    return used | {where.source(note.read_text()).name for note in root.glob("stacks/*/front/source")}
