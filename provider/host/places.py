"""Where things lie on the machine."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .units import Units


def default_root() -> Path:
    """`/var/lib/sluicegate` as root, else the user's data folder."""
    if os.geteuid() == 0:
        return Path("/var/lib/sluicegate")
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "sluicegate"


def run_folder(root: Path, stack: str, units: bool = False) -> Path:
    """A short folder for sockets: a Unix socket path has 107 characters at most, and roots can be deep.

    With `units` and as root it lies in /run: the folder of a login goes with that login, and is not there at boot.
    """
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    if units and os.geteuid() == 0:
        base = "/run"
    if len(base) > 50 or not Path(base).is_dir():
        base = "/tmp"
    short = hashlib.sha256(f"{root.resolve()}\0{stack}".encode()).hexdigest()[:10]
    return Path(base) / f"sluicegate-{os.geteuid()}" / short


def stack_name(name: str) -> str:
    """The name of a stack's folder. Raises ValueError for one that would lead out of the folder of stacks."""
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*", name):
        raise ValueError(f"{name!r} is no name of a stack: letters, digits and . _ - only, and no . or - in front")
    return name


def short(digest: str) -> str:
    """The 12 hex digits that name a release: `sha256:0123…` -> `0123…`. Raises ValueError for what is no digest."""
    if not re.fullmatch(r"sha256:[0-9a-f]{64}", digest):
        raise ValueError(f"{digest!r} is no digest of a lock: sha256: and 64 hex digits")
    return digest.removeprefix("sha256:")[:12]


@dataclass(frozen=True)
class Places:
    """The folders of one stack on one machine. `run` was chosen when the machine was claimed and is kept.

    With `units` supervisors are units of systemd, else detached processes.
    """

    root: Path
    run: Path
    stack: str
    units: Units | None = None

    @classmethod
    def of(cls, spec: dict[str, Any]) -> Places:
        p = spec["places"]
        stack = stack_name(p["stack"])
        return cls(Path(p["root"]), Path(p["run"]), stack, Units.asked(p.get("units"), stack))

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
        private_folder(self.run)


def private_folder(run: Path) -> None:
    """Make the socket folder, private, and refuse one that somebody else made first."""
    for folder in (run.parent, run):
        # The parent is shared by this user's stacks: the last of another's may just be taking it away.
        for _ in range(10):
            with suppress(FileNotFoundError):
                folder.mkdir(mode=0o700, exist_ok=True)
                break
            run.parent.mkdir(mode=0o700, exist_ok=True)
        if folder.stat().st_uid != os.geteuid() or folder.is_symlink():
            raise PermissionError(f"{folder} belongs to another user; remove it or set XDG_RUNTIME_DIR")
