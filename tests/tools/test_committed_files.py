"""What no committed file may hold: the host of a package registry, which each machine sets, or a machine's path."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tools.paths import REQUIREMENTS, ROOT

# Put together here, so that this file does not name them either.
HOSTS = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("proxy", "golang", "org"),
        ("sum", "golang", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("crates", "io"),
        ("repo", "maven", "apache", "org"),
        ("repo1", "maven", "org"),
        ("deb", "debian", "org"),
    )
]
PATHS = [re.escape(f"/{folder}/") for folder in ("work", "root")]
FORBIDDEN = re.compile(
    "|".join([*(rf"\b{re.escape(host)}\b" for host in HOSTS), *(rf"(?<![\w.]){path}" for path in PATHS)])
)


def committed() -> list[Path]:
    """Every file under git; links are looked at where they point."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [ROOT / name for name in listed.split("\0") if name]
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def test_no_committed_file_names_a_registry_or_a_machine() -> None:
    found = []
    for path in committed():
        text = path.read_bytes().decode("utf-8", errors="replace")
        for hit in FORBIDDEN.finditer(text):
            line = text.count("\n", 0, hit.start()) + 1
            found.append(f"{path.relative_to(ROOT)}:{line}: {hit.group()}")
    assert not found, "\n".join(found)


@pytest.mark.parametrize("path", sorted(REQUIREMENTS.glob("*.txt")), ids=lambda path: path.name)
def test_every_requirement_is_pinned_with_its_hashes(path: Path) -> None:
    entries = re.sub(r"\\\n", " ", path.read_text()).splitlines()
    pinned = [entry for entry in entries if entry and not entry.startswith("#")]
    assert pinned
    for entry in pinned:
        assert re.match(r"[a-z0-9][a-z0-9._-]*==\S+ ", entry), entry
        assert "--hash=sha256:" in entry, entry


def test_the_exported_extras_agree_with_what_is_tested() -> None:
    def versions(name: str) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for package, version in re.findall(r"^([a-z0-9._-]+)==(\S+)", (REQUIREMENTS / name).read_text(), re.MULTILINE):
            found.setdefault(package, set()).add(version)
        return found

    tested = versions("dev.txt")
    for extra in ("aws.txt", "nebius.txt"):
        differing = {
            package: (version, tested[package])
            for package, version in versions(extra).items()
            if package in tested and not version <= tested[package]
        }
        assert not differing, extra
