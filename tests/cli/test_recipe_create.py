"""`sluicegate recipe create` in a project of its own; the command lines themselves are in tests/recipes."""

from __future__ import annotations

import io
import shlex
import subprocess
from argparse import ArgumentParser
from pathlib import Path

import pytest

from sluicegate.cli import recipe_create
from sluicegate.cli.stack import CliError
from sluicegate.recipes.files import find_recipe, read_recipe, recipe_folders

NAME = "qwen3.8-27b/fp8-dflash2"
COMMIT = "015e795645c74b1a0eeef3b570031fb62e769bc5"
# race.txt, word for word.
SEEDS = [
    NAME, "--model", "Qwen/Qwen3.8-27B-FP8", "--engine", "vllm", "--max-model-len", "32768",
    "--arg", "--max-num-seqs=256",
    "--arg", '--speculative-config={"method":"dflash","model":"incoai/Qwen3.8-27B-DFlash2",'
    f'"revision":"{COMMIT}","num_speculative_tokens":7}}',
]  # fmt: skip
SERVE = ["--", "vllm", "serve", "a/b", "--max-model-len", "4096", "--max-num-seqs", "8"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: p\nruntime: python\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def create(*words: str) -> int:
    parser = ArgumentParser()
    recipe_create.arguments(parser)
    return recipe_create.run(parser.parse_args(list(words)))


def refused(*words: str) -> str:
    with pytest.raises(CliError) as caught:
        create(*words)
    return str(caught.value)


def test_the_published_command_gives_the_shipped_recipe(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the commit that the publishers' own tool added; without it, `recipe pin` finds one."""
    shipped, _ = read_recipe(find_recipe(NAME, recipe_folders(project)))
    assert create(*SEEDS, "--revision", "017b9c7") == 0
    made, _ = read_recipe(project / "recipes" / f"{NAME}.yaml")
    assert made == shipped.model_copy(update={"claims": ()})  # no command line has claims
    assert create(*SEEDS, "--force") == 0
    made, _ = read_recipe(project / "recipes" / f"{NAME}.yaml")
    assert made.model.revision is None
    said = capsys.readouterr().out
    assert "assumed engine.version: 0.32.0" in said
    assert "not the one shipped with sluicegate" in said
    assert said.endswith(f"wrote recipes/{NAME}.yaml; next: sluicegate recipe pin {NAME}\n")


def test_the_command_line_of_a_terminal_reaches_it_word_for_word(project: Path) -> None:
    done = subprocess.run(["sluicegate", "recipe", "create", *SEEDS], cwd=project, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    helped = subprocess.run(["sluicegate", "recipe", "create", "--help"], capture_output=True, text=True)
    assert "--from FILE" in helped.stdout
    assert max(map(len, helped.stdout.splitlines())) <= 100
    assert subprocess.run(["sluicegate", "recipe", "create"], capture_output=True, text=True).returncode == 2


def test_the_published_command_may_be_a_file_or_stand_after_two_hyphens(project: Path) -> None:
    page = [*("page", "recipe", "create"), *SEEDS]
    (project / "page.txt").write_text(shlex.join(page))
    assert create("m/n", "--from", "page.txt") == 0
    assert create("m/o", "--revision", "017b9c7", "--arg", "--seed=1", "--", *page) == 0
    one, other = (read_recipe(project / f"recipes/m/{name}.yaml")[0] for name in "no")
    assert one.speculation == other.speculation
    assert (one.model.revision, other.model.revision, other.args) == (None, "017b9c7", ("--seed=1",))


@pytest.mark.parametrize("way", ["file", "input", "words"])
def test_a_command_line_comes_from_a_file_the_input_or_after_two_hyphens(
    way: str, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "#!/bin/sh\nexec docker run --gpus all -p 80:80 \\\n  vllm/vllm-openai:v0.31.0 --model a/b  # the model\n"
    text = text.replace("--model a/b", "--model a/b --max-model-len 4K --max-num-seqs 8 --seed 1")
    (project / "run.sh").write_text(text)
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    words = text.splitlines()[1][5:-1].split() + text.splitlines()[2].partition("#")[0].split()
    ways = {"file": ["--from", "run.sh"], "input": ["--from", "-"], "words": ["--", *words]}
    assert create("--gpu", "L40S", "-e", "A=1", "--arg", "--x", "m/n", *ways[way]) == 0
    made, _ = read_recipe(project / "recipes/m/n.yaml")
    assert (made.engine.version, made.gpu.type, made.env, made.args) == (
        "0.31.0",
        "L40S",
        {"A": "1"},
        ("--seed", "1", "--x"),
    )
    assert "left out --gpus:" in capsys.readouterr().out


def test_a_recipe_that_is_there_is_written_over_only_when_told(project: Path) -> None:
    assert create("m/n", *SERVE) == 0
    before = (project / "recipes/m/n.yaml").read_bytes()
    assert "--force" in refused("m/n", *SERVE, "--seed", "1")
    assert (project / "recipes/m/n.yaml").read_bytes() == before
    assert create("m/n", "--force", *SERVE, "--seed", "1") == 0
    assert (project / "recipes/m/n.yaml").read_bytes() != before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["m/n"], "what is to be served?"),
        (["m/n", "--from", "none.sh"], "--from none.sh: cannot be read"),
        (["m/n", "--from", "/dev/zero"], "are no command line"),
        (["m/n", "--from", "x", *SERVE], "one of them"),
        (["m/n", *SERVE, "--x=\udcff"], "args[0]"),
        (["m/n", "-e", "A=\udcff", *SERVE], "env.A"),
        (["m/n", *SERVE, "--x=a\nb"], "args[0]"),
        (["../n", *SERVE], "MODEL/NAME"),
        (["m/n", *SERVE, "--api-key", "sk-secret"], "pulumi config set --secret sluicegate:apiKey"),
        (["m/n", *SERVE, "--max-num-seqs"], "--max-num-seqs: found nothing; allowed: a value"),
        (["m/n", "--env", "HF_TOKEN=hf_secretsecret", *SERVE], "-e HF_TOKEN"),
    ],
)
def test_what_is_refused_is_said_and_nothing_is_written(words: list[str], said: str, project: Path) -> None:
    text = refused(*words)
    assert said in text
    assert "secretsecret" not in text
    assert not (project / "recipes").exists()


def test_a_folder_that_cannot_be_written_is_an_error_and_leaves_no_half_file(project: Path) -> None:
    (project / "recipes").write_text("a file where the folder should be")
    assert "cannot write recipes/m/n.yaml" in refused("m/n", *SERVE)
    assert sorted(path.name for path in project.iterdir()) == ["Pulumi.yaml", "recipes"]


def test_outside_a_project_there_is_no_place_for_a_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "no Pulumi.yaml" in refused("m/n", *SERVE)
