"""The virtual environment: created by the standard library, filled by uv from requirements that carry hashes.

pip stays in it, since the process runtime fetches its pinned wheels with `python -m pip download`. No index is named
here or in the requirements: whatever the user's own pip and uv are set to use is used, and where only pip has settings
uv is given them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping

from tools import stamps
from tools.console import SetupError, say
from tools.paths import REQUIREMENTS, ROOT, VENV, VENV_PYTHON

UV = VENV / "bin" / "uv"
STAMP = VENV / "sluicegate-stamp"


def wanted() -> str:
    """All that the environment depends on. The folder counts: scripts in a venv hold its absolute path."""
    files = [REQUIREMENTS / "uv.txt", REQUIREMENTS / "dev.txt", ROOT / "pyproject.toml"]
    return stamps.fingerprint(files, [ROOT])


def is_ready() -> bool:
    """Whether the environment is the one the requirements ask for."""
    return stamps.holds(STAMP, wanted(), [VENV_PYTHON, UV])


def prepare() -> None:
    """Create or bring up to date `.venv`; nothing when its stamp holds."""
    if is_ready():
        return
    say("python: installing the pinned packages into .venv (seconds from a warm cache, else about a minute)")
    started = time.monotonic()
    STAMP.unlink(missing_ok=True)
    if not _usable():
        # --clear also mends a venv whose interpreter is gone or whose folder was moved.
        # By the interpreter behind a venv, if make runs inside this very one.
        python3 = getattr(sys, "_base_executable", sys.executable)
        create = [python3, "-m", "venv", "--clear", str(VENV)]
        _run(create, "creating .venv (Debian: apt-get install python3-venv)")
    pip = [str(VENV_PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*pip, "--require-hashes", "--requirement", str(REQUIREMENTS / "uv.txt")], "installing uv")
    told = uv_settings(_pip_config(), os.environ)
    uv = [str(UV), "pip"]
    python = ["--quiet", "--python", str(VENV_PYTHON)]
    # Compiled now, since a user's PYTHONDONTWRITEBYTECODE would have every run of pulumi compile the SDK anew: seconds.
    sync = ["sync", *python, "--compile-bytecode", "--require-hashes", str(REQUIREMENTS / "dev.txt")]
    _run([*uv, *sync], "installing requirements/dev.txt", told)
    editable = ["--no-deps", "--no-build-isolation", "--editable", str(ROOT)]
    _run([*uv, "install", *python, *editable], "installing the project", told)
    rooms = [str(ROOT / room) for room in ("cli", "components", "provider", "race", "recipes")]
    _run([str(VENV_PYTHON), "-m", "compileall", "-q", *rooms], "compiling the rooms")
    stamps.write(STAMP, wanted())
    say(f"python: ready in {time.monotonic() - started:.0f} s")


def uv_settings(pip_config: str, env: Mapping[str, str]) -> dict[str, str]:
    """What uv must be told of `pip config list`, unless it has settings of its own: the index, and the certificates."""
    pip = dict(line.split("=", 1) for line in pip_config.splitlines() if "=" in line)
    found = {key.rsplit(".", 1)[-1]: value.strip("'\"") for key, value in pip.items()}
    settings = {}
    if "index-url" in found and not {"UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_CONFIG_FILE"} & set(env):
        settings["UV_DEFAULT_INDEX"] = found["index-url"]
    if "cert" in found and "SSL_CERT_FILE" not in env:
        settings["SSL_CERT_FILE"] = found["cert"]
    return settings


def _pip_config() -> str:
    command = [str(VENV_PYTHON), "-m", "pip", "config", "list"]
    return subprocess.run(command, capture_output=True, text=True, errors="surrogateescape", check=False).stdout


def _usable() -> bool:
    """Whether `.venv` has an interpreter that runs, with its pip, made in this very folder."""
    if not VENV_PYTHON.exists():
        return False
    probe = "import sys, pip; print(sys.prefix, sys.version_info >= (3, 11))"
    answer = subprocess.run(
        [VENV_PYTHON, "-c", probe], capture_output=True, text=True, errors="surrogateescape", check=False
    )
    return answer.stdout.split() == [str(VENV), "True"]


def _run(command: list[str], what: str, settings: Mapping[str, str] | None = None) -> None:
    env = {**os.environ, **(settings or {})}
    env.pop("PYTHONHOME", None)
    # Also set by a shell that has another venv active; uv would follow it.
    env["VIRTUAL_ENV"] = str(VENV)
    done = subprocess.run(
        command, env=env, cwd=ROOT, capture_output=True, encoding="utf-8", errors="replace", check=False
    )
    if done.returncode != 0:
        tail = "\n".join(f"  {line}" for line in (done.stdout + done.stderr).strip().splitlines()[-15:])
        raise SetupError(f"{what} failed (exit {done.returncode}); mend what it says and run make setup again:\n{tail}")
