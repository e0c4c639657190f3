"""Which cloud a stack says it uses, read from its committed config: the stand-ins serve `local` and nothing else."""

from __future__ import annotations

from pathlib import Path

import yaml


def names(urn: str) -> tuple[str, str]:
    """Stack and project of `urn:pulumi:STACK::PROJECT::TYPE::NAME`."""
    stack, project = urn.removeprefix("urn:pulumi:").split("::")[:2]
    return stack, project


def cloud(urn: str, folder: Path) -> str | None:
    """`PROJECT:cloud` of the nearest Pulumi.STACK.yaml from `folder` upwards; None when it can't be read."""
    stack, project = names(urn)
    for parent in (folder, *folder.parents):
        path = parent / f"Pulumi.{stack}.yaml"
        if not path.is_file():
            continue
        try:
            document = yaml.safe_load(path.read_text())
            value = document["config"][f"{project}:cloud"]
        except (OSError, yaml.YAMLError, KeyError, TypeError):
            return None
        return value if isinstance(value, str) else None
    return None


def refusal(urn: str, folder: Path, name: str, version: str) -> str | None:
    """Why the stand-in does not serve this stack, with the mend; None when it does."""
    found = cloud(urn, folder)
    if found == "local":
        return None
    stack, project = names(urn)
    seen = f"is {found}" if found else f"can't be read from Pulumi.{stack}.yaml in {folder} or above"
    return (
        f"the plugin of pulumi-{name} {version} here is a stand-in, which serves only stacks whose {project}:cloud is "
        f"local, and this stack's {seen}: run make official where Pulumi's downloads are reachable, to fetch the "
        "official plugin"
    )
