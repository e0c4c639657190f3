"""Which pulumi is used: one on PATH that suits, else the official download, else one built from the Go modules."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from tools.paths import TOOLS, Versions
from tools.version import at_least

HOST = "pulumi-language-python"


@dataclass(frozen=True, kw_only=True)
class Toolchain:
    """The CLI and the Python language host in use, and how they were come by: path, download or build."""

    pulumi: str
    pulumi_version: str
    language_python: str
    language_python_version: str
    how: str

    def folders(self) -> list[Path]:
        """What must be on PATH, in this order."""
        return [Path(self.pulumi).parent, Path(self.language_python).parent]

    def present(self) -> bool:
        """Whether both programs are still there."""
        return all(os.access(path, os.X_OK) for path in (self.pulumi, self.language_python))

    def as_dict(self) -> dict[str, str]:
        """For the stamp."""
        return asdict(self)


def users_path(path: str) -> str:
    """PATH without the checkout's own tools, so that what was built or downloaded here never counts as installed."""
    return os.pathsep.join(folder for folder in path.split(os.pathsep) if folder and TOOLS not in Path(folder).parents)


def printed_version(program: str) -> str:
    """What `pulumi version` prints; empty when it does not run."""
    env = {**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true"}
    try:
        answer = subprocess.run(
            [program, "version"], env=env, capture_output=True, text=True, errors="replace", timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.strip() if answer.returncode == 0 else ""


def suits(
    pulumi: str | None, host: str | None, pinned: Versions, version_of: Callable[[str], str] = printed_version
) -> Toolchain | str:
    """The installed pair, or why it is not used."""
    if pulumi is None:
        return "no pulumi on PATH"
    version = version_of(pulumi)
    if not at_least(version, pinned.pulumi_minimum):
        return f"{pulumi} is {version or 'not able to run'}, and {pinned.pulumi_minimum} or newer is needed"
    if host is None:
        return f"{pulumi} has no {HOST} beside it or on PATH"
    return Toolchain(
        pulumi=pulumi, pulumi_version=version, language_python=host, language_python_version=version, how="path"
    )


def find(path: str) -> tuple[str | None, str | None]:
    """The pulumi on a PATH, and its language host: beside it first, as the engine looks."""
    pulumi = shutil.which("pulumi", path=path)
    if pulumi is None:
        return None, None
    real = Path(pulumi).resolve().parent
    host = shutil.which(HOST, path=os.pathsep.join([str(Path(pulumi).parent), str(real), path]))
    return pulumi, host
