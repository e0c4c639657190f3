"""`sluicegate recipe pin` as it is typed, against a hub and a registry on loopback. Nothing is half-written."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import pytest
import yaml

from sluicegate.cli import main as command
from sluicegate.cli import recipe_diff, recipe_pin
from sluicegate.cli.stack import CliError
from sluicegate.recipes.check import check_all
from sluicegate.recipes.files import read_lock
from sluicegate.recipes.pins import load_locked, pins_of
from sluicegate.recipes.resolve import Resolver
from tests.cli.fake_pulumi import SLUICEGATE, Fake
from tests.recipes import image_registry, loopback_hub
from tests.recipes.image_registry import Registry
from tests.recipes.loopback_hub import CONFIG, DRAFTER, Big, model_files

SERVE = {"name": "m", "max_model_len": 4096, "max_num_seqs": 8}
CUDA = ["NVIDIA_REQUIRE_CUDA=cuda>=13.0"]
STACK = "# kept\nencryptionsalt: v1:x\nconfig:\n  p:cloud: ssh # where\n  p:acceptance: any\n"


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    with image_registry.serving(tmp_path_factory.mktemp("registry")) as found:
        found.push("vllm/vllm-openai", "v1", {"linux/amd64": CUDA, "linux/arm64": CUDA})
        yield found


class Done(NamedTuple):
    """What a command left: exit code and the two streams."""

    returncode: int
    stdout: str
    stderr: str


@dataclass
class World:
    """A project with one recipe, a stack, and everything the recipe names."""

    fake: Fake
    hub: loopback_hub.Hub
    registry: Registry
    words: dict[str, str] = field(default_factory=dict)

    @property
    def stack(self) -> Path:
        return self.fake.project / "Pulumi.prod.yaml"

    @property
    def locks(self) -> list[Path]:
        return sorted((self.fake.project / "recipes").glob("m/locks/*"))

    def recipe(self, **changed: Any) -> None:
        data: dict[str, Any] = {
            "engine": {"name": "vllm", "version": "1", "image": f"{self.registry.host}/vllm/vllm-openai:v1"},
            "model": {"repo": "Org/Model", "revision": "main", "precision": "bf16"},
            "speculation": {"method": "dflash", "repo": "Org/Model-DFlash2", "tokens": 7},
            "serve": SERVE,
            "gpu": {"type": "H100-80GB", "count": 1},
        } | changed
        file = self.fake.project / "recipes" / "m" / "x.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(yaml.safe_dump({k: v for k, v in data.items() if v is not None}))

    def run(self, *words: str, **env: str) -> Done:
        """The command's answer; a process of its own only where the client reads a variable as it is imported."""
        env = self.fake.env | {"HF_HOME": f"{self.fake.folder}/hf"} | env
        if {"HF_ENDPOINT", "HF_HUB_OFFLINE"} & set(env):
            env = {"HF_ENDPOINT": self.hub.url} | env
            done = subprocess.run(
                [SLUICEGATE, "recipe", *words], cwd=self.fake.project, capture_output=True, text=True, timeout=300,
                check=False, env=env,
            )  # fmt: skip
            return Done(done.returncode, done.stdout, done.stderr)
        out, err = io.StringIO(), io.StringIO()
        with (
            mock.patch.dict(os.environ, env, clear=True), contextlib.chdir(self.fake.project),
            mock.patch.object(sys, "argv", ["sluicegate", "recipe", *words]),
            mock.patch.object(recipe_pin, "Resolver", partial(Resolver, endpoint=self.hub.url)),
            mock.patch.object(recipe_diff, "Resolver", partial(Resolver, endpoint=self.hub.url)),
            mock.patch("huggingface_hub.constants.HF_TOKEN_PATH", f"{self.fake.folder}/none"),
            contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as end,
        ):  # fmt: skip
            command.main()
        return Done(int(end.value.code or 0), out.getvalue(), err.getvalue())

    def pin(self, *words: str, **env: str) -> Done:
        return self.run("pin", "m/x", "--stack", "prod", *words, **env)

    def refused(self, *words: str, **env: str) -> str:
        """What a refused pin says; that it changed nothing is seen here."""
        before = {path: path.read_bytes() for path in self.fake.project.rglob("*") if path.is_file()}
        done = self.pin(*words, **env)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("error: ")
        assert "Traceback" not in done.stderr
        assert {path: path.read_bytes() for path in self.fake.project.rglob("*") if path.is_file()} == before
        return done.stderr

    def config(self) -> dict[str, Any]:
        return dict(yaml.safe_load(self.stack.read_text())["config"])


@pytest.fixture
def world(fake: Fake, registry: Registry) -> Iterator[World]:
    with loopback_hub.serving(loopback_hub.Hub()) as hub:
        hub.add("Org/Model", model_files())
        hub.add("Org/Model-DFlash2", model_files(DRAFTER))
        made = World(fake, hub, registry)
        made.stack.write_text(STACK)
        made.recipe()
        yield made


def test_a_recipe_of_hub_and_registry_becomes_a_lock_and_pins_that_deploy(world: World) -> None:
    done = world.pin()
    assert done.returncode == 0, done.stderr
    (path,) = world.locks
    lock, digest = read_lock(path)
    assert f"locked m/x: recipes/m/locks/{path.name}" in done.stdout
    assert world.config()["p:pins"] == pins_of(lock, digest).as_config()
    assert world.stack.read_text().startswith("# kept\n")
    assert "  p:cloud: ssh # where\n  p:acceptance: any\n" in world.stack.read_text()
    folders = [world.fake.project / "recipes"]
    locked = load_locked("m/x", world.config()["p:pins"], folders)
    assert locked.lock.engine.requires == {"cuda": ">=13.0"}
    assert set(locked.lock.engine.platforms) == {"linux/amd64", "linux/arm64"}
    assert locked.lock.shape["num_hidden_layers"] == 4
    assert locked.lock.sources.drafter is not None
    assert check_all(folders) == []
    assert len(world.hub.asked) == 4  # revision and config.json, of model and drafter


def test_pinning_again_writes_nothing_until_something_moved_upstream(world: World) -> None:
    world.pin()
    before = {path: path.stat().st_mtime_ns for path in [world.stack, *world.locks]}
    done = world.pin()
    assert "was pinned already" in done.stdout
    assert {path: path.stat().st_mtime_ns for path in [world.stack, *world.locks]} == before
    world.hub.repos["Org/Model"].commits["f" * 40] = model_files(model_extra=Big(1))
    world.hub.repos["Org/Model"].refs["main"] = "f" * 40
    done = world.pin()
    assert f"-> hf:Org/Model@{'f' * 40}" in done.stdout
    assert len(world.locks) == 2
    assert world.run("check").returncode == 0


def test_a_lock_goes_to_another_stack_by_its_digest_without_asking_anyone(world: World) -> None:
    world.pin()
    (path,) = world.locks
    _, digest = read_lock(path)
    other = world.stack.with_name("Pulumi.live.yaml")
    world.hub.asked.clear()
    for word in (digest, digest[7:], path.stem[-12:]):
        other.write_text(STACK)
        done = world.run("pin", "--lock", word, "--stack", "live", HF_ENDPOINT="http://127.0.0.1:1")
        assert done.returncode == 0, done.stderr
        assert yaml.safe_load(other.read_text()) == yaml.safe_load(world.stack.read_text())
    assert world.hub.asked == []


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("abc", "a lock's digest: 64 hex, or the 12 of its file's name"),
        ("0" * 12, "a lock there is"),
        ("sha256:" + "0" * 64, "a lock there is"),
    ],
)
def test_a_digest_of_no_lock_is_refused(word: str, said: str, world: World) -> None:
    assert said in world.refused("--lock", word)


def test_a_lock_edited_by_hand_or_of_an_older_recipe_is_not_promoted(world: World) -> None:
    world.pin()
    (path,) = world.locks
    digest = read_lock(path)[1]
    whole = path.read_bytes()
    path.write_bytes(whole + b" ")
    assert "whose bytes give" in world.refused("--lock", digest)
    path.write_bytes(b"<<<<<<< ours\n" + whole)
    assert "valid JSON" in world.refused("--lock", digest)
    path.write_bytes(whole)
    world.recipe(gpu={"type": "H100-80GB", "count": 2})
    assert "recipe changed since its lock" in world.refused("--lock", digest)


def test_tokenizer_and_drafter_have_commits_of_their_own_and_mtp_runs_at_the_targets(world: World) -> None:
    commit = world.hub.add("Org/Words", model_files())
    world.recipe(tokenizer={"repo": "Org/Words", "revision": commit[:8]})
    assert world.pin().returncode == 0
    pins = world.config()["p:pins"]
    assert pins["tokenizer"] == f"hf:Org/Words@{commit}"
    assert len({pins["weights"], pins["tokenizer"], pins["drafter"]}) == 3
    world.recipe(speculation={"method": "mtp", "tokens": 3})
    assert world.pin().returncode == 0
    pins = world.config()["p:pins"]
    assert (pins["draftTokens"], "drafter" in pins, pins["tokenizer"]) == (3, False, pins["weights"])
    lock = next(lock for lock, digest in map(read_lock, world.locks) if digest == pins["lock"])
    assert '"model":"{weights}"' in lock.argv[lock.argv.index("--speculative-config") + 1]


def test_the_stacks_own_token_is_the_one_a_licence_is_tried_with(world: World) -> None:
    world.hub.repos["Org/Model"].gated = True
    world.hub.tokens = {"of-the-stack": {"Org/Model"}, "of-the-shell": {"Org/Model"}, "stranger": set()}
    assert "none was sent (401)" in world.refused()
    assert "accept the licence at" in world.refused(HF_TOKEN="stranger")
    assert "nothing in that variable" in world.refused("--token-env", "MINE")
    assert world.pin("--token-env", "MINE", MINE="of-the-shell").returncode == 0
    world.stack.write_text(STACK + "  p:hfToken:\n    secure: v1:abc\n")
    script = world.fake.folder / "bin" / "pulumi"
    script.write_text(script.read_text().replace("esac", '"config get") echo of-the-stack;;\nesac'))
    world.hub.sent_tokens.clear()
    done = world.pin(HF_TOKEN="stranger")
    assert done.returncode == 0, done.stderr
    assert world.hub.sent_tokens == {"of-the-stack"}
    assert not [p for p in [world.stack, *world.locks] if "of-the" in p.read_text()]


def test_every_fault_of_every_part_comes_in_one_message(world: World) -> None:
    world.recipe(
        engine={"name": "vllm", "version": "1", "image": f"{world.registry.host}/vllm/vllm-openai:none"},
        model={"repo": "Org/None", "precision": "bf16"},
        speculation={"method": "dflash", "repo": "Org/Model-DFlash2", "revision": "feature", "tokens": 7},
    )
    said = world.refused()
    assert "nothing was pinned, 3 faults" in said
    assert [line.split(":")[0] for line in said.splitlines()[1:]] == [
        "engine.image",
        "model.repo",
        "speculation.revision",
    ]


@pytest.mark.parametrize(
    ("changed", "files", "said"),
    [
        ({}, model_files(CONFIG | {"hidden_size": None}), "hidden_size, a whole number; it lacks it"),
        ({}, {"config.json": b"[1]", "model.safetensors": Big(1)}, "a config.json that is a JSON map"),
        ({}, {"model.safetensors": Big(1)}, "a repository with a config.json"),
        ({}, {"config.json": b"{}", "pytorch_model.bin": Big(1)}, "safetensors or GGUF"),
        ({"speculation": {"method": "dflash", "repo": "Org/Model-DFlash2", "tokens": 5}}, model_files(), "found 5"),
        ({"args": ["--trust-remote-code"]}, model_files(), "--code-revision=<40 hex commit>"),
        ({"serve": SERVE | {"name": "Org/Model"}}, model_files(), "the name it is served as"),
        ({"engine": {"name": "vllm", "version": "1", "image": "a/b:v1"}}, model_files(), "the registry named"),
        ({"model": {"repo": "Org/Model", "precision": "bf16", "x": 1}}, model_files(), "model.x: found 1"),
    ],
)  # fmt: skip
def test_what_must_not_be_pinned_is_refused(changed: Any, files: Any, said: str, world: World) -> None:
    world.hub.add("Org/Model", files)
    world.recipe(**changed)
    assert said in world.refused()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<<<<<<< HEAD\n" + STACK + "=======\n>>>>>>> theirs\n", "valid YAML"),
        ("a: &a [x]\nb: *a\n", "without aliases"),
        ("config: 7\n", "a map under `config`"),
    ],
)
def test_a_stack_file_that_cannot_be_edited_is_refused_before_anyone_is_asked(
    text: str, said: str, world: World
) -> None:
    world.stack.write_text(text)
    assert said in world.refused()
    assert world.hub.asked == []


def test_a_stack_file_that_cannot_be_written_leaves_no_lock_behind(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, _: bytes) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.chdir(world.fake.project)
    monkeypatch.setattr(recipe_pin, "write_whole", full)
    monkeypatch.setattr(recipe_pin, "Resolver", partial(Resolver, endpoint=world.hub.url))
    options = Namespace(name="m/x", stack="prod", lock=None, token_env=None)
    with pytest.raises(CliError, match=r"cannot pin: .*Pulumi.prod.yaml: No space left on device"):
        recipe_pin.run(options)
    assert world.locks == []
    assert world.stack.read_text() == STACK


def test_an_unreachable_hub_a_mistyped_one_and_an_offline_client_are_one_line_each(world: World) -> None:
    world.recipe(speculation=None)
    assert "not reachable" in world.refused(HF_ENDPOINT="http://127.0.0.1:1")
    assert "HF_ENDPOINT: found 'http://hub.example.org'" in world.refused(HF_ENDPOINT="http://hub.example.org")
    assert "HF_HUB_OFFLINE: found '1'" in world.refused(HF_HUB_OFFLINE="1")
    assert "HF_ENDPOINT: found 'nonsense'" in world.refused(HF_ENDPOINT="nonsense")


def test_a_recipe_file_that_is_none_is_refused(world: World) -> None:
    file = world.fake.project / "recipes" / "m" / "x.yaml"
    whole = file.read_text()
    for text in ("<<<<<<< ours\n" + whole, "a: &a [x, x]\nb: [*a, *a]\n", "", "[" * 5000):
        file.write_text(text)
        assert len(world.refused().strip().splitlines()) < 9
    assert world.hub.asked == []


def test_check_finds_a_bump_done_by_half_in_one_message(world: World) -> None:
    world.pin()
    (path,) = world.locks
    whole, name = path.read_bytes(), path.name
    assert world.run("check").returncode == 0
    world.recipe(gpu={"type": "H100-80GB", "count": 2})
    path.with_name("x.json").write_bytes(whole)
    done = world.run("check")
    assert done.returncode == 1
    assert "recipe changed since its lock: run `sluicegate recipe pin m/x`" in done.stderr
    assert "m/locks: found 'x.json'" in done.stderr
    path.with_name("x.json").unlink()
    world.recipe()
    path.rename(path.with_name(f"x-{'0' * 12}.json"))
    done = world.run("check", "m/x")
    assert done.returncode == 1
    assert hashlib.sha256(whole).hexdigest() in done.stderr
    assert name not in done.stderr
    assert world.run("check", "m/none").returncode == 1


def test_diff_says_what_a_stack_would_get_and_writes_nothing(world: World) -> None:
    world.pin()
    before = {path: path.read_bytes() for path in world.fake.project.rglob("*") if path.is_file()}
    assert world.run("diff", "m/x", "-s", "prod").stdout == "nothing moves from stack prod to m/x\n"
    world.hub.repos["Org/Model-DFlash2"].commits["f" * 40] = model_files(DRAFTER)
    world.hub.repos["Org/Model-DFlash2"].refs["main"] = "f" * 40
    done = world.run("diff", "m/x", "-s", "prod")
    assert done.returncode == 0, done.stderr
    assert f"           -> hf:Org/Model-DFlash2@{'f' * 40}\n" in done.stdout
    assert "to fetch: 3.0 GB (drafter 3.0 GB)\nsame model; only speed should change (drafter moved)" in done.stdout
    assert done.stdout.endswith("to take it: sluicegate recipe pin m/x --stack prod\n")
    assert {path: path.read_bytes() for path in world.fake.project.rglob("*") if path.is_file()} == before


def test_two_recipes_or_locks_are_compared_without_a_stack_and_without_a_hub(world: World) -> None:
    done = world.run("diff", "smollm2-135m/q4", "smollm2-135m/f16")
    assert "the answers may change: weights, tokenizer moved" in done.stdout
    assert "1 fault" not in done.stdout
    world.pin()
    world.recipe(args=["--kv-cache-dtype", "fp8"])
    world.pin()
    old, new = sorted(world.locks, key=lambda path: path.stat().st_mtime_ns)
    done = world.run("diff", old.stem[-12:], "m/x")
    assert '  argv        + "--kv-cache-dtype"\n' in done.stdout
    assert done.stdout.endswith("the answers may change: KV type moved\n")
    assert world.run("diff", new.stem[-12:], "m/x").stdout.startswith("nothing moves")
    for words in (
        ["m/x", "m/none"],
        ["m/x", "smollm2-135m/q4", "m/x"],
        ["m/x", "-s", "none"],
        ["m/x", "m/x", "-s", "a"],
    ):
        done = world.run("diff", *words)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("error: ")
