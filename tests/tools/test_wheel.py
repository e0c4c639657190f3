"""The wheel as a team would install it: every room imports from it, and its data files are inside."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from tools.paths import ROOT

ROOMS = ("cli", "components", "provider", "provider.clouds", "provider.host", "race", "recipes")
DATA = (".yaml", ".json")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the checkout, without a network: the backend is installed already."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel, which finds the dependencies where the tests have them."""
    folder = tmp_path_factory.mktemp("installed") / "venv"
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", "--quiet"]
    subprocess.run([*command, str(wheel)], check=True, capture_output=True, timeout=120)
    answer = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    )
    # Only as a folder on the path: the .pth files in it, the editable install of the checkout among them, do not count.
    (Path(answer.stdout.strip()) / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def run(python: Path, code: str) -> str:
    """Away from the checkout, so that only the wheel can answer."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    answer = subprocess.run([python, "-c", code], cwd="/", env=env, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.strip()


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_imports_from_the_wheel(installed: Path, room: str) -> None:
    found = run(installed, f"import sluicegate.{room} as room; print(room.__file__)")
    assert Path(found).is_relative_to(installed.parent.parent)


def test_every_module_is_in_the_wheel(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    rooms = ("cli", "components", "provider", "race", "recipes")
    wanted = {
        f"sluicegate/{path.relative_to(ROOT)}"
        for room in rooms
        for path in (ROOT / room).rglob("*")
        if path.suffix in (".py", *DATA) and "__pycache__" not in path.parts
    }
    assert wanted - names == set()
    assert "sluicegate/py.typed" in names
    assert not [name for name in names if name.split("/", 1)[0] in (*rooms, "tools", "tests")]


def test_a_wheel_made_from_the_source_archive_is_the_same(wheel: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(tmp_path)]
    subprocess.run([*command, "--target", "sdist"], cwd=ROOT, check=True, capture_output=True, timeout=120)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        archive.extractall(tmp_path, filter="data")
    unpacked = next(path for path in tmp_path.iterdir() if path.is_dir())
    subprocess.run([*command, "--target", "wheel"], cwd=unpacked, check=True, capture_output=True, timeout=120)
    again = next(tmp_path.glob("*.whl"))
    assert sorted(zipfile.ZipFile(again).namelist()) == sorted(zipfile.ZipFile(wheel).namelist())


def test_the_recipes_are_found_from_the_wheel(installed: Path) -> None:
    listing = run(
        installed,
        "from importlib.resources import files; "
        "print(*sorted(p.name for p in (files('sluicegate.recipes') / 'smollm2-135m').iterdir()))",
    )
    assert {"q4.yaml", "f16.yaml", "q4-ngram.yaml", "locks"} <= set(listing.split())


def test_the_commands_are_installed(installed: Path) -> None:
    commands = {path.name for path in installed.parent.iterdir()}
    assert {"sluicegate", "pulumi-resource-sluicegate"} <= commands
