"""Engines that go wrong, as wheels: pip finds them beside its index, and every step after that is the real one."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import re
import zipfile
from pathlib import Path
from typing import Any

from sluicegate.recipes.files import locks_of, read_lock, read_recipe, recipe_folders, write_lock
from sluicegate.recipes.locks import build_lock
from sluicegate.recipes.model import LockFile, Platform, Source
from tests.stack.harness import Project

VERSION = "2026.10.11549"
MODULE = Path(__file__).with_name("faulty_xllamacpp.py")

FAULTS = (
    "dies at start", "dies at its first request", "answers 500", "hangs on completions",
    "answers with another model's name", "streams without end", "accepts no draft", "never ready",
)  # fmt: skip


def wheel(folder: Path, fault: str, mark: Path) -> tuple[Path, str, bytes]:
    """A wheel of `xllamacpp` with this fault in `folder`: its path, its version, and the module in it."""
    version = f"{VERSION}+{re.sub('[^a-z0-9]+', '.', fault)}"
    text = MODULE.read_text().replace('FAULT = ""', f"FAULT = {fault!r}").replace('MARK = ""', f"MARK = {str(mark)!r}")
    info = f"xllamacpp-{version}.dist-info"
    files = {
        "xllamacpp/__init__.py": text.encode(),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: xllamacpp\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},sha256={_digest(data)},{len(data)}\n" for name, data in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data)  # without the time of day: the same bytes each time
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"xllamacpp-{version}-py3-none-any.whl"
    path.write_bytes(packed.getvalue())
    return path, version, files["xllamacpp/__init__.py"]


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def faulty(p: Project, fault: str, base: str = "smollm2-135m/q4", mark: Path | None = None, **changes: Any) -> str:
    """A recipe of the project's own whose pinned engine has this fault, locked; its name."""
    if fault == "accepts no draft":
        base = "smollm2-135m/q4-ngram"
    folder = p.folder / "wheels"
    path, version, module = wheel(folder, fault, mark or p.folder / "mark")
    links = os.environ.get("PIP_FIND_LINKS", "")
    p.env["PIP_FIND_LINKS"] = f"{links} {folder}".strip()
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    name = p.vary(base, re.sub("[^a-z0-9]+", "-", fault), {"engine.version": version, **changes})
    size = Platform(digest=f"sha256:{digest}", bytes=path.stat().st_size)
    file = LockFile(path="xllamacpp/__init__.py", bytes=len(module), sha256=hashlib.sha256(module).hexdigest())
    _lock(p, base, name, source=f"pypi:xllamacpp=={version}#sha256:{digest}", platform=size, files=(file,))
    return name


def weights_of(p: Project, name: str, sha256: str) -> str:
    """A recipe of the project's own whose weights are the project's file `models/NAME.gguf` of this hash; its name."""
    path = f"models/{name}.gguf"
    recipe = p.vary("smollm2-135m/q4", name, {"model": {"repo": f"file:{path}", "precision": "f16"}})
    file = LockFile(path=f"{name}.gguf", bytes=4, sha256=sha256)
    _lock(p, "smollm2-135m/q4", recipe, weights=Source(ref=f"file:{path}#sha256:{sha256}", files=(file,)))
    return recipe


def _lock(p: Project, base: str, name: str, weights: Source | None = None, source: str = "", **engine: Any) -> None:
    """Lock the recipe again, with other bits than those of the recipe that it was made from."""
    model, _, short = name.partition("/")
    own = p.folder / "recipes" / model
    recipe, sha256 = read_recipe(own / f"{short}.yaml")
    shipped, _ = read_lock(locks_of(recipe_folders(p.folder)[-1] / f"{base}.yaml")[0])
    for stale in (own / "locks").glob(f"{short}-*.json"):
        stale.unlink()
    e, sources = shipped.engine, shipped.sources
    if weights:
        sources = sources.model_copy(update={"weights": weights})
    platforms = {"linux/amd64": engine["platform"]} if engine else e.platforms
    write_lock(p.folder / "recipes", build_lock(
        name, recipe, sha256, source or e.source, platforms, sources, {}, shipped.shape, engine.get("files", e.files),
    ))  # fmt: skip
