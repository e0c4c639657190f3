"""How this program starts itself again, from a checkout, a wheel or a zipapp."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

PACKAGE = __package__ or ""

# What a detached process keeps of its starter's environment: never a passphrase or a cloud's keys, which anybody who
# may look at the process could read for as long as it lives.
_KEPT = re.compile(r"PATH|HOME|USER|LANG|LC_\w+|TMPDIR|XDG_\w+|PYTHON\w*|LD_LIBRARY_PATH")
_FETCHING = re.compile(r"PIP_\w+|SSL_CERT_\w+|(REQUESTS|CURL)_CA_BUNDLE|NETRC|(https?|no|all)_proxy", re.IGNORECASE)


def command(words: list[str]) -> list[str]:
    """The argv that runs `words` as verbs of this very program."""
    archive = Path(sys.argv[0])
    if archive.suffix == ".pyz":
        return [sys.executable, str(archive.resolve()), *words]
    safe_path = ["-P"] if sys.version_info >= (3, 11) else []
    return [sys.executable, *safe_path, "-m", PACKAGE, *words]


def detach(words: list[str], log: Path, spec: bytes | None = None) -> subprocess.Popen[bytes]:
    """Start a verb that outlives whoever asked for it: own session, nothing inherited, stderr into `log`.

    `spec` is what it reads on stdin, and makes it one that may fetch: it then keeps the settings of pip and proxies.
    It is handed over in memory: what may hold a key never lies on a disk.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    kept = [_KEPT] if spec is None else [_KEPT, _FETCHING]
    stdin = os.memfd_create("spec")
    fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        with os.fdopen(os.dup(stdin), "wb") as f:
            f.write(spec or b"")
            f.seek(0)
        return subprocess.Popen(
            command(words),
            env={k: v for k, v in os.environ.items() if any(p.fullmatch(k) for p in kept)},
            stdin=stdin,
            stdout=fd,
            stderr=fd,
            start_new_session=True,
        )
    finally:
        os.close(stdin)
        os.close(fd)
