"""A Pulumi project of its own in a temporary folder, with the checkout's program, plugin and toolchain.

It only previews: no machine is claimed and no engine starts.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import yaml

from tools import environment

ROOT = Path(__file__).parents[2]


class Project:
    """Stack `dev` with its own state; `dev` is its file as a map."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        project = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())
        project["plugins"]["providers"][0]["path"] = str(ROOT / ".venv" / "bin")
        (folder / "Pulumi.yaml").write_text(yaml.safe_dump(project))
        shutil.copy(ROOT / "__main__.py", folder)
        shutil.copytree(ROOT / "recipes" / "smollm2-135m", folder / "recipes" / "smollm2-135m")
        self.dev: dict[str, Any] = yaml.safe_load((ROOT / "Pulumi.dev.yaml").read_text())
        state = folder / "state"
        state.mkdir()
        own = {"PULUMI_BACKEND_URL": f"file://{state}", "PULUMI_CONFIG_PASSPHRASE": "dev"}
        self.env = {**environment.environ(), **own}
        self.write()
        assert self.run("stack", "init", "dev").returncode == 0

    def write(self, **config: Any) -> None:
        """Make the stack's file anew, with these values laid over the committed ones; None takes a key out."""
        values = self.dev["config"] | {f"sluicegate:{key}": value for key, value in config.items()}
        kept = {key: value for key, value in values.items() if value is not None}
        (self.folder / "Pulumi.dev.yaml").write_text(yaml.safe_dump(self.dev | {"config": kept}, sort_keys=False))

    def run(self, *arguments: str, shell: str | None = None) -> subprocess.CompletedProcess[str]:
        command = ["sh", "-c", shell] if shell else ["pulumi", *arguments, "--non-interactive", "--color", "never"]
        return subprocess.run(
            command, cwd=self.folder, env=self.env, capture_output=True, text=True, check=False, timeout=120,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
