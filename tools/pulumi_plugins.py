"""The plugins of pulumi-random and pulumi-command: the official ones where they can be had, else the stand-ins.

Both go into the checkout's own PULUMI_HOME, with the version of the installed SDK, which is what the engine asks for.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from tools import official, stamps
from tools.console import say
from tools.paths import PULUMI_HOME, ROOT, STAND_INS, TOOLS, VENV, VENV_PYTHON
from tools.pulumi_cli import Toolchain

NAMES = ("random", "command")
RECORD = TOOLS / "stamps" / "plugins"


def sdk_version(name: str, packages: Path | None = None) -> str:
    """The version of the installed SDK, from the pulumi-plugin.json it carries."""
    folders = [packages] if packages else sorted((VENV / "lib").glob("python3*/site-packages"))
    for folder in folders:
        described = folder / f"pulumi_{name}" / "pulumi-plugin.json"
        if described.exists():
            return str(json.loads(described.read_bytes())["version"])
    raise FileNotFoundError(f"pulumi-{name} is not installed in {VENV}: run make setup")


def folder_of(name: str) -> Path:
    """Where the engine looks for it."""
    return PULUMI_HOME / "plugins" / f"resource-{name}-v{sdk_version(name)}"


def is_stand_in(name: str) -> bool:
    """Whether what is installed is ours."""
    return (folder_of(name) / "stand-in").exists()


def prepare(toolchain: Toolchain, *, retry_downloads: bool) -> list[str]:
    """Install both; returns the names of those that are stand-ins."""
    wanted = stamps.fingerprint(facts=[ROOT, toolchain.pulumi, *map(sdk_version, NAMES)])
    present = [folder_of(name) / f"pulumi-resource-{name}" for name in NAMES]
    if not stamps.holds(RECORD, wanted, present) or (retry_downloads and any(map(is_stand_in, NAMES))):
        for name in NAMES:
            _install(name, toolchain)
        stamps.write(RECORD, wanted)
    return [name for name in NAMES if is_stand_in(name)]


def _install(name: str, toolchain: Toolchain) -> None:
    shutil.rmtree(folder_of(name), ignore_errors=True)
    version = sdk_version(name)
    if official.reachable():
        command = [toolchain.pulumi, "plugin", "install", "resource", name, version]
        env = {**os.environ, "PULUMI_HOME": str(PULUMI_HOME), "PULUMI_SKIP_UPDATE_CHECK": "true"}
        try:
            done = subprocess.run(
                command, env=env, capture_output=True, encoding="utf-8", errors="replace", timeout=300, check=False
            )
        except subprocess.TimeoutExpired:
            say(f"plugins: the official download of pulumi-{name} {version} took longer than 300 s")
        else:
            if done.returncode == 0 and folder_of(name).exists():
                return
            say(f"plugins: the official download of pulumi-{name} {version} failed: {done.stderr.strip()[-300:]}")
    else:
        say(f"plugins: no official download of pulumi-{name} from here; installing the stand-in (cloud local only)")
    _install_stand_in(name, version)


def _install_stand_in(name: str, version: str) -> None:
    folder = folder_of(name)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    launcher = folder / f"pulumi-resource-{name}"
    # exec: the engine signals the process it started, which must be the plugin itself.
    text = f'#!/bin/sh\nexec "{VENV_PYTHON}" -P "{STAND_INS / "launch.py"}" {name} {version} "$@"\n'
    launcher.write_bytes(os.fsencode(text))
    launcher.chmod(0o755)
    (folder / "stand-in").write_text(f"a stand-in for pulumi-{name} {version}; `make official` fetches the real one\n")
