"""What this machine is. Looks only; changes nothing."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from pathlib import Path
from typing import Any

from .places import default_root


def probe(spec: dict[str, Any]) -> dict[str, Any]:
    root = Path(spec["root"]) if spec.get("root") else default_root()
    there = next(p for p in (root, *root.parents) if p.exists())
    return {
        "python": platform.python_version(),
        "executable": sys.executable,
        "machine": platform.machine(),
        "system": platform.system(),
        "cpus": os.cpu_count(),
        "memory_bytes": _memory(),
        "disk_free_bytes": shutil.disk_usage(there).free,
        "root": str(root),
        "writable": os.access(there, os.W_OK),
    }


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
