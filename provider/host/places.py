"""Where things lie on the machine."""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any


def default_root() -> Path:
    """`/var/lib/sluicegate` as root, else the user's data folder."""
    if os.geteuid() == 0:
        return Path("/var/lib/sluicegate")
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "sluicegate"


def run_folder(root: Path, stack: str) -> Path:
    """A short folder for sockets: a Unix socket path has 107 characters at most, and roots can be deep."""
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    if len(base) > 50:
        base = "/tmp"
    short = hashlib.sha256(f"{root.resolve()}\0{stack}".encode()).hexdigest()[:10]
    return Path(base) / f"sluicegate-{os.geteuid()}" / short


def short(digest: str) -> str:
    """The 12 hex digits that name a release: `sha256:0123…` -> `0123…`."""
    return digest.removeprefix("sha256:")[:12]


@dataclass(frozen=True)
class Places:
    """The folders of one stack on one machine. `run` was chosen when the machine was claimed and is kept."""

    root: Path
    run: Path
    stack: str

    @classmethod
    def of(cls, spec: dict[str, Any]) -> Places:
        p = spec["places"]
        return cls(Path(p["root"]), Path(p["run"]), p["stack"])

    @property
    def home(self) -> Path:
        return self.root / "stacks" / self.stack

    @property
    def current(self) -> Path:
        return self.home / "current"

    @property
    def current_sock(self) -> Path:
        return self.run / "current.sock"

    @property
    def front(self) -> Path:
        return self.home / "front"

    @property
    def jobs(self) -> Path:
        return self.home / "jobs"

    def release(self, digest: str) -> Path:
        return self.home / "releases" / short(digest)

    def socket(self, digest: str) -> Path:
        return self.run / f"{short(digest)}.sock"

    def failed(self, digest: str) -> Path:
        return self.home / "failed" / f"{short(digest)}.json"

    def source(self, ref: str) -> Path:
        return self.root / "sources" / hashlib.sha256(ref.encode()).hexdigest()[:16]

    def compile_cache(self, digest: str) -> Path:
        return self.root / "compile" / short(digest)

    def make_run(self) -> None:
        """Make the socket folder, private, and refuse one that somebody else made first."""
        for folder in (self.run.parent, self.run):
            folder.mkdir(mode=0o700, exist_ok=True)
            if folder.stat().st_uid != os.geteuid() or folder.is_symlink():
                raise PermissionError(f"{folder} belongs to another user; remove it or set XDG_RUNTIME_DIR")
