"""A `pulumi` that answers as it is told, for the command as it stands on PATH."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SLUICEGATE = str(ROOT / ".venv" / "bin" / "sluicegate")
OUTPUT = json.dumps({"url": "http://127.0.0.1:1", "model": "m", "api_key": "a b'c"})
PULUMI = """#!/bin/sh
echo "$PWD $*" >> "$FAKE/asked"
case "$1 $2" in
"stack --show-name") [ -e "$FAKE/selected" ] || { echo "error: no stack selected" >&2; exit 1; }; cat "$FAKE/selected";;
"stack export") [ -e "$FAKE/export" ] || { cat "$FAKE/error" >&2; exit 255; }; cat "$FAKE/export";;
"stack output") [ -e "$FAKE/output" ] || { cat "$FAKE/error" >&2; exit 255; }; cat "$FAKE/output";;
"config --json") [ ! -e "$FAKE/config" ] || cat "$FAKE/config";;
"whoami --json") [ ! -e "$FAKE/whoami" ] || cat "$FAKE/whoami";;
"stack ls") [ ! -e "$FAKE/stacks" ] || cat "$FAKE/stacks";;
"cancel --yes") rm -f "$FAKE"/state/.pulumi/locks/*/*/*/*.json;;
"refresh --yes") [ ! -e "$FAKE/refreshed" ] || mv "$FAKE/refreshed" "$FAKE/export";;
esac
"""


class Fake:
    """A project folder and a `pulumi` on PATH that answers from files."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.project = folder, folder / "project"
        (self.project / "deep" / "inside").mkdir(parents=True)
        (self.project / "Pulumi.yaml").write_text("name: p\n")
        script = folder / "bin" / "pulumi"
        script.parent.mkdir()
        script.write_text(PULUMI)
        script.chmod(0o755)
        self.env = {"PATH": f"{script.parent}:/usr/bin:/bin", "FAKE": str(folder), "HOME": str(folder)}

    def answer(self, **texts: str) -> None:
        for name, text in texts.items():
            (self.folder / name).write_text(text)

    def run(self, *words: str, cwd: Path | None = None, **options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [SLUICEGATE, *words], cwd=cwd or self.project, env=self.env, capture_output=True, text=True, check=False,
            timeout=60, **options,
        )  # fmt: skip

    def asked(self) -> list[str]:
        return (self.folder / "asked").read_text().splitlines()
