"""Small file habits everything here shares: atomic JSON, hashes, tails, locks between processes, times."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import signal
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from .processes import Proc

UTC = timezone.utc  # noqa: UP017 - datetime.UTC came with Python 3.11; hosts may have 3.10


def now() -> str:
    """The time as everything here writes it down: RFC 3339 in UTC, milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def said(e: Exception) -> str:
    """An unforeseen fault in words; a full disk and a refused file are named as what they are."""
    if isinstance(e, OSError) and e.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"no space left on the disk{f' of {e.filename}' if e.filename else ''}; free some, then run it again"
    if isinstance(e, OSError) and e.strerror and e.filename:
        return f"{e.filename}: {e.strerror}"
    return f"{type(e).__name__}: {e}"


def write_atomic(path: Path, data: str | bytes, mode: int = 0o600) -> None:
    """Write beside `path`, sync, rename: a reader sees the old file or the new one, never half of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        with os.fdopen(fd, "wb") as f:
            f.write(data.encode() if isinstance(data, str) else data)
            f.flush()
            os.fsync(f.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write_json(path: Path, value: Any, mode: int = 0o600) -> None:
    write_atomic(path, json.dumps(value, indent=1, sort_keys=True) + "\n", mode)


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in the file; None when it is absent or no JSON object (half-written as the machine lost power)."""
    try:
        value = json.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def link_atomic(target: Path | str, link: Path) -> None:
    """Point `link` at `target` in one step, replacing what it pointed at."""
    part = link.with_name(f".{link.name}.{os.getpid()}")
    part.unlink(missing_ok=True)
    part.symlink_to(target)
    os.replace(part, link)


def sha256_of(path: Path, tick: Callable[[int], None] | None = None) -> str:
    """Hex digest of a file; `tick` gets the bytes of each block as they are hashed."""
    digest = hashlib.sha256()
    with path.open("rb") as f:
        while block := f.read(1 << 20):
            digest.update(block)
            if tick:
                tick(len(block))
    return digest.hexdigest()


# Tokens that nobody told us of, as engines and libraries print them: of the hub, of APIs, of an Authorization header.
_TOKEN = re.compile(
    r"\b(?:hf_|sk-|ghp_|nvapi-)[A-Za-z0-9_-]{8,}|(?i:\bBearer\s+)\S{8,}|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"
)


def masked(text: str) -> str:
    """A log's text without what looks like a token or the login in a URL."""
    return _TOKEN.sub("[secret]", text)


def tail(path: Path, lines: int, limit: int = 1 << 16) -> list[str]:
    """The last `lines` lines of a log, masked, looking at its last `limit` bytes at most."""
    try:
        with path.open("rb") as f:
            f.seek(max(0, os.fstat(f.fileno()).st_size - limit))
            return masked(f.read().decode(errors="replace")).splitlines()[-lines:]
    except FileNotFoundError:
        return []


def files_in(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Every regular file below `folder`; what another process takes away meanwhile is left out, never an error."""
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place, name)
            with suppress(FileNotFoundError, NotADirectoryError):
                found = path.stat()
                if stat.S_ISREG(found.st_mode):
                    yield path, found


class Busy(Exception):
    """Another process holds the lock; the message says which."""

    kind, transient = "busy", True


@contextmanager
def locked(
    path: Path, owner: str, wait_s: float, waiting: Callable[[], object] = lambda: None, limit_s: float | None = None
) -> Iterator[None]:
    """Hold an advisory lock that the kernel frees when its owner dies, so that none is ever left behind.

    Raises Busy, naming the owner, after `wait_s` seconds. `waiting` is called while it waits, and may raise. An owner
    that gave a `limit_s` and is still at it when that has passed hangs: whoever waits then ends it.
    """
    end = time.monotonic() + wait_s
    while (fd := _lock(path)) is None:
        holder = read_json(path) or {}
        if (until := holder.get("until")) and uptime() > until and (proc := Proc.read(holder.get("process"))):
            proc.kill(signal.SIGKILL)
        elif time.monotonic() >= end:
            raise Busy(f"{path} is held by {holder.get('owner') or 'an unnamed process'}")
        waiting()
        time.sleep(0.05)
    try:
        me = Proc.of(os.getpid())
        said = {"owner": owner, "process": me and me.dump(), "until": limit_s and uptime() + limit_s}
        os.ftruncate(fd, 0)
        os.pwrite(fd, json.dumps(said).encode(), 0)
        yield
    finally:
        os.close(fd)


def uptime() -> float:
    """Seconds since boot: one clock for all processes, which nobody sets back."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _lock(path: Path) -> int | None:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:  # the folder was removed since
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Whoever held it may have removed the file: a lock on what no name leads to keeps nobody out.
        if os.stat(path).st_ino == os.fstat(fd).st_ino:
            return fd
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(fd)
    return None
