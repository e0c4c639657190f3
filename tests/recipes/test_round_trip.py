"""A recipe to its lock, its pins and its command line, and all of them checked against the recipe again."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.recipes.bench import MANY_OF, many_files
from sluicegate.recipes.check import check_all
from sluicegate.recipes.files import read_lock, read_recipe, write_lock
from sluicegate.recipes.locks import build_lock
from sluicegate.recipes.model import LockFile, Platform, SameAs, Source, Sources
from sluicegate.recipes.pins import load_locked, pins_of
from tests.recipes.recipe_cases import ZEROS

words = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=12)
values = words.filter(lambda word: not word.startswith("-"))
flags = st.sampled_from(["--seed", "--block-size", "--enable-log-requests", "--reasoning-parser", "--dtype"])
arguments = st.lists(st.one_of(flags.flatmap(lambda f: values.map(lambda v: f"{f}={v}")), values), max_size=5)
speculations = st.one_of(
    st.none(),
    st.builds(lambda n: {"method": "mtp", "tokens": n}, st.integers(1, 9)),
    st.just({"method": "dflash", "repo": "Org/Model-DFlash2", "revision": "c" * 9, "tokens": 7}),
)


def source(repo: str, digit: str) -> Source:
    file = LockFile(path="model.safetensors", bytes=1, sha256=ZEROS)
    return Source(ref=f"hf:{repo}@{digit * 40}", files=(file,))


@settings(deadline=None, max_examples=50)
@given(
    args=arguments,
    env=st.dictionaries(st.from_regex(r"\AX[A-Z_0-9]{0,9}\Z"), words, max_size=3),
    name=words,
    count=st.integers(1, 8),
    speculation=speculations,
    tokenizer=st.sampled_from([None, {"repo": "Org/Words"}, {"repo": "Org/Words", "revision": "b" * 40}]),
)
def test_any_recipe_that_compiles_deploys_from_its_lock_and_no_other(
    args: list[str], env: dict[str, str], name: str, count: int, speculation: Any, tokenizer: Any
) -> None:
    data = {
        "engine": {"name": "vllm", "version": "1", "image": "docker.io/a/b:v1"},
        "model": {"repo": "Org/Model", "revision": "aaaaaaa", "precision": "bf16"},
        "speculation": speculation, "tokenizer": tokenizer, "args": args, "env": env,
        "serve": {"name": name, "max_model_len": 4096, "max_num_seqs": 8}, "gpu": {"type": "H100-80GB", "count": count},
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "m").mkdir()
        path = folder / "m" / "x.yaml"
        path.write_text(yaml.safe_dump({k: v for k, v in data.items() if v is not None}, allow_unicode=True))
        recipe, sha256 = read_recipe(path)
        sources = Sources(
            weights=source("Org/Model", "a"),
            tokenizer=source("Org/Words", "b") if tokenizer else SameAs(same_as="weights"),
            drafter=source("Org/Model-DFlash2", "c") if speculation and "repo" in speculation else None,
        )
        platforms = {"linux/amd64": Platform(digest=f"sha256:{ZEROS}", bytes=1)}
        image = f"oci:docker.io/a/b@sha256:{ZEROS}"
        lock = build_lock("m/x", recipe, sha256, image, platforms, sources, {}, {"model_type": "x"})
        read, digest = read_lock(write_lock(folder, lock))
        assert read == lock
        assert check_all([folder]) == []
        pins = pins_of(read, digest).as_config()
        assert load_locked("m/x", json.loads(json.dumps(pins)), [folder]).lock == lock
        argv = list(read.argv)
        assert argv[len(argv) - len(args) :] == args
        assert argv[argv.index("--served-model-name") + 1] == name
        assert set(env.items()) <= set(read.env.items())
        path.write_text(path.read_text() + "# edited\n")
        assert [fault.key for fault in check_all([folder])] == ["m/x recipe"]


def test_a_lock_of_a_thousand_files_is_loaded_like_any_other(tmp_path: Path) -> None:
    pins, folders = many_files(tmp_path)
    locked = load_locked(MANY_OF, pins, folders)
    assert len(locked.lock.sources.weights.files) > 1000
    assert check_all(folders) == []
