"""`make test`: the whole suite with coverage, in two runs; with arguments, one run of pytest with those."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tools.console import start
from tools.paths import ROOT

# Two workers: a test of a stack mostly waits. A file's tests share one deployed stack, so a file is not split.
TOGETHER = ["-m", "not needs_quiet", "-n", "2", "--dist", "loadfile", "--cov", "--cov-report="]
ALONE = ["-m", "needs_quiet", "--cov", "--cov-append", "--cov-report=term"]


def main(arguments: list[str]) -> int:
    """Pytest's exit status; of two runs the first that is not 0."""
    pytest = [str(Path(sys.executable).with_name("pytest"))]
    if arguments:
        return subprocess.run([*pytest, *arguments], cwd=ROOT, check=False).returncode
    codes = [subprocess.run([*pytest, *run], cwd=ROOT, check=False).returncode for run in (TOGETHER, ALONE)]
    return next((code for code in codes if code), 0)


if __name__ == "__main__":
    start(main)
