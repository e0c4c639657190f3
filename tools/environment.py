"""The environment that everything here runs in: `.tools/env`, written by set-up, laid over the caller's own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from tools.paths import ENV_FILE, PULUMI_HOME, ROOT, STATE, VENV

PREFIX = "PATH_PREFIX"

# Set by a user who keeps the state elsewhere: theirs wins over the checkout's own.
USERS_OWN = ("PULUMI_BACKEND_URL", "PULUMI_CONFIG_PASSPHRASE")

# Which checkout a shell's values came from: what `make env` of another one exported is no user's choice.
FROM = "SLUICEGATE_CHECKOUT"


def lines(toolchain: list[Path], *, acquire_plugins: bool) -> dict[str, str]:
    """What `.tools/env` says, given the folders of the CLI and the language host."""
    folders = dict.fromkeys([VENV / "bin", *toolchain])
    values = {
        # The venv first: the language host takes the first python3 on PATH.
        PREFIX: os.pathsep.join(str(folder) for folder in folders),
        "PULUMI_HOME": str(PULUMI_HOME),
        "PULUMI_BACKEND_URL": f"file://{STATE}",
        "PULUMI_CONFIG_PASSPHRASE": "dev",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }
    if not acquire_plugins:
        values["PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"] = "true"
    return values


def write(values: Mapping[str, str], path: Path = ENV_FILE) -> None:
    """Plain KEY=VALUE lines, replaced as a whole and only when they differ."""
    text = "".join(f"{key}={value}\n" for key, value in values.items())
    if path.exists() and path.read_bytes() == os.fsencode(text):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_bytes(os.fsencode(text))
    new.replace(path)


def read(path: Path = ENV_FILE) -> dict[str, str]:
    """The lines of `.tools/env`."""
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: run make setup")
    return dict(line.split("=", 1) for line in os.fsdecode(path.read_bytes()).splitlines() if line)


def _exported_by_a_checkout(base: Mapping[str, str]) -> dict[str, str]:
    """What `make env` of a checkout, this one or another, has put into this shell."""
    path = Path(base.get(FROM, "/nowhere")) / ENV_FILE.relative_to(ROOT)
    return read(path) if path.exists() else {}


def additions(values: Mapping[str, str], base: Mapping[str, str]) -> dict[str, str]:
    """What to set over `base`: PATH with ours first, and ours only where the user has no say of their own."""
    prefix = values[PREFIX].split(os.pathsep)
    rest = [folder for folder in base.get("PATH", os.defpath).split(os.pathsep) if folder not in prefix]
    added = {"PATH": os.pathsep.join([*prefix, *rest]), FROM: str(ROOT)}
    theirs = _exported_by_a_checkout(base)
    chosen = [key for key in USERS_OWN if key in base and base[key] != theirs.get(key)]
    for key, value in values.items():
        if key == PREFIX or key in chosen:
            continue
        if (
            key == "PULUMI_CONFIG_PASSPHRASE"
            and "PULUMI_CONFIG_PASSPHRASE" not in theirs
            and "PULUMI_CONFIG_PASSPHRASE_FILE" in base
        ):
            continue
        added[key] = value
    return added


def environ(base: Mapping[str, str] | None = None) -> dict[str, str]:
    """The caller's environment with ours laid over it."""
    own = dict(os.environ if base is None else base)
    return {**own, **additions(read(), own)}
