"""The arrows between the rooms, read from the source: who may import whom, and who may import what from outside."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tools.paths import ROOT

ROOMS = ("cli", "components", "provider", "race", "recipes")

HOST = "sluicegate.provider.host"
# All that the rest may know of the host program's inside; it is asked through provider/hostclient.py.
HOST_PLACES = "sluicegate.provider.host.places"
# This machine's own adapter calls it in its own process.
HOST_VERBS = "sluicegate.provider.host.verbs"

# The longest matching folder counts. What a folder may import of ours, beside the package's own name.
ARROWS: dict[str, tuple[str, ...]] = {
    "cli": tuple(f"sluicegate.{room}" for room in ROOMS),
    "components": ("sluicegate.components", "sluicegate.recipes"),
    "provider": ("sluicegate.provider", "sluicegate.recipes"),
    # A place hands out the client of its machine, and says where the host program keeps things there.
    "provider/clouds": ("sluicegate.provider.clouds", "sluicegate.provider.hostclient", HOST_PLACES, HOST_VERBS),
    "provider/host": (HOST,),
    "race": ("sluicegate.race",),
    "recipes": ("sluicegate.recipes",),
}
# What a folder must not import from outside: `recipes` and `race` know no Pulumi and no cloud.
FORBIDDEN: dict[str, tuple[str, ...]] = {
    "recipes": ("pulumi", "boto3", "nebius", "asyncssh", "grpc"),
    "race": ("pulumi", "boto3", "nebius", "asyncssh", "grpc"),
    "provider/clouds": ("pulumi", "pulumi_random", "pulumi_command"),
}


# Imported by the product without being its dependency, and why.
UNDECLARED = {
    "pydantic_core": "pydantic itself in two halves: it pins the one version of this that suits it",
    "xllamacpp": "the engine itself, which a release brings along with its lock",
    "gguf": "only recipes/relock.py, which maintainers run in the development environment",
}


def sources() -> list[Path]:
    """Every Python file of the rooms, relative to the checkout."""
    return sorted(path.relative_to(ROOT) for room in ROOMS for path in (ROOT / room).rglob("*.py"))


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and full name of each import, relative ones resolved."""
    package = ["sluicegate", *path.with_suffix("").parts[:-1]]
    for node in ast.walk(ast.parse((ROOT / path).read_text(), str(path))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                yield node.lineno, f"{module}.{alias.name}"


def of(table: dict[str, tuple[str, ...]], path: Path) -> tuple[str, ...]:
    """The entry of the innermost folder that has one."""
    matching = [folder for folder in table if path.is_relative_to(folder)]
    return table[max(matching, key=len)] if matching else ()


def within(name: str, allowed: tuple[str, ...]) -> bool:
    """Whether a full name lies in one of the packages."""
    return any(name == package or name.startswith(f"{package}.") for package in allowed)


@pytest.mark.parametrize("path", sources(), ids=str)
def test_a_room_imports_only_along_its_arrows(path: Path) -> None:
    wrong = []
    for line, name in imports(path):
        top = name.split(".", 1)[0]
        if top in ROOMS or top in ("tools", "tests"):
            wrong.append(f"{path}:{line}: {name} (rooms are imported as sluicegate.ROOM)")
        allowed = of(ARROWS, path)
        # `from sluicegate import recipes` names the room in the last part; `sluicegate.__version__` is anyone's.
        if top == "sluicegate" and not name.startswith("sluicegate.__") and not within(name, allowed):
            wrong.append(f"{path}:{line}: {name} (allowed: {', '.join(allowed)})")
        known = (HOST_PLACES, HOST_VERBS) if path == Path("provider/clouds/local.py") else (HOST_PLACES,)
        if within(name, (HOST,)) and not within(name, known) and not path.is_relative_to("provider/host"):
            wrong.append(f"{path}:{line}: {name} (the host program is asked through provider/hostclient.py)")
        if within(name, of(FORBIDDEN, path)):
            wrong.append(f"{path}:{line}: {name} (not in this room)")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", [path for path in sources() if path.is_relative_to("provider/host")], ids=str)
def test_the_host_program_needs_only_the_standard_library(path: Path) -> None:
    outside = [
        f"{path}:{line}: {name}"
        for line, name in imports(path)
        if name.split(".", 1)[0] not in sys.stdlib_module_names and not within(name, (HOST,))
    ]
    assert not outside, "\n".join(outside)


def test_the_program_sees_only_the_components() -> None:
    program = ROOT / "__main__.py"
    names = [name for _, name in imports(program.relative_to(ROOT))]
    ours = [name for name in names if name.split(".", 1)[0] in (*ROOMS, "sluicegate", "tools", "tests")]
    assert ours
    assert all(within(name, ("sluicegate.components",)) for name in ours), ours


def test_everything_imported_is_a_declared_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {
        re.match(r"[A-Za-z0-9._-]+", entry)[0].lower().replace("_", "-")  # type: ignore[index]
        for entries in (project["dependencies"], *project["optional-dependencies"].values())
        for entry in entries
    }
    holders = packages_distributions()
    missing = []
    for path in sources():
        for line, name in imports(path):
            top = name.split(".", 1)[0]
            if top in sys.stdlib_module_names or top in ("sluicegate", *UNDECLARED):
                continue
            found = {holder.lower().replace("_", "-") for holder in holders.get(top, [top])}
            if not found & declared:
                missing.append(f"{path}:{line}: {top}")
    assert not missing, "\n".join(missing)
