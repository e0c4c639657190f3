"""How this program starts itself again, from a checkout, a wheel or a zipapp."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PACKAGE = __package__ or ""


def command(words: list[str]) -> list[str]:
    """The argv that runs `words` as verbs of this very program."""
    archive = Path(sys.argv[0])
    if archive.suffix == ".pyz":
        return [sys.executable, str(archive), *words]
    return [sys.executable, "-P", "-m", PACKAGE, *words]


def detach(words: list[str], log: Path) -> subprocess.Popen[bytes]:
    """Start a verb that outlives whoever asked for it: own session, nothing inherited, stderr into `log`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        return subprocess.Popen(
            command(words),
            stdin=subprocess.DEVNULL,
            stdout=fd,
            stderr=fd,
            start_new_session=True,
            close_fds=True,
        )
    finally:
        os.close(fd)
