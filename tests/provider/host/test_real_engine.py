"""The real llama.cpp, where it is the point: its command line, its check, its gate, its metrics, its end."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sluicegate.provider.host.completion import ask
from sluicegate.provider.host.engine_http import Target, metrics
from sluicegate.recipes.engines import llamacpp
from sluicegate.recipes.files import find_recipe, read_recipe
from tests.provider.host.kit import CHECKOUT, DEADLINE_S, Stack, pids_with, until

SERVER = CHECKOUT / "provider/llama_server.py"
RECIPES = CHECKOUT / "recipes"
MODEL = "smollm2-135m"


def spec_of(stack: Stack, name: str) -> dict[str, Any]:
    """The spec of a shipped recipe by its committed lock, with the facts that its adapter gives."""
    path = next(p for p in (RECIPES / MODEL / "locks").glob("*.json") if p.name.rpartition("-")[0] == name)
    recipe, _ = read_recipe(find_recipe(f"{MODEL}/{name}", [RECIPES]))
    data = path.read_bytes()
    return stack.engine(facts=llamacpp.host_facts(recipe)) | {
        "digest": f"sha256:{hashlib.sha256(data).hexdigest()}",
        "lock": json.loads(data),
        "model": MODEL,
        "command": [sys.executable, "-P", str(SERVER)],
    }


def test_it_serves_and_gives_way_to_one_that_drafts_and_leaves_nothing(stack: Stack) -> None:
    plain, drafting = spec_of(stack, "q4"), spec_of(stack, "q4-ngram")
    done = stack.activate(plain)
    assert done["result"] == "serving", done
    assert [c["check"] for c in done["gate"]] == ["port", "identity", "model", "completion", "steady"]
    assert done["gate"][1]["seen"].startswith("pypi:xllamacpp==")
    assert stack.status()["health"] == "healthy"
    target = Target(socket=stack.places.current_sock)
    assert ask(target, MODEL, "Say hello.", 8, DEADLINE_S).text
    done = stack.activate(drafting)
    assert done["result"] == "serving", done
    assert "drafted tokens accepted" in next(c["seen"] for c in done["gate"] if c["check"] == "speculation")
    assert metrics(target, "/metrics")["llamacpp:spec_decode_num_accepted_tokens_total"] > 0
    assert stack.pid(plain) is None
    assert stack.ask("deactivate", what="engine", token="engine-token") == {"done": True}
    assert not pids_with(str(stack.places.run))


def test_a_model_file_that_is_cut_short_fails_with_the_engines_own_words(stack: Stack, tmp_path: Path) -> None:
    model = tmp_path / "cut.gguf"
    model.write_bytes(b"GGUF" + b"\0" * 100)
    spec = spec_of(stack, "q4")
    spec["lock"]["argv"][1] = str(model)
    done = stack.activate(spec)
    assert done["result"] == "failed"
    assert "exited with code 1" in done["cause"]["text"]
    assert "cut short" in done["cause"]["kind"]


def wheel(stack: Stack) -> str:
    """The folder of the pinned wheel, fetched if it is not there yet."""
    spec = spec_of(stack, "q4")
    assert stack.run("prepare", spec)["result"] == "prepared"
    return str(stack.places.source(spec["lock"]["engine"]["source"]) / "files")


@pytest.fixture
def server(stack: Stack, tmp_path: Path) -> Any:
    env = {"PYTHONPATH": wheel(stack), "PATH": os.environ["PATH"]}
    model = tmp_path / "m.gguf"
    model.write_bytes(b"GGUF")
    good = ["--model", str(model), "--alias", "m", "--ctx-size", "512", "--host", str(tmp_path / "s.sock")]

    def check(*words: str, instead: list[str] | None = None) -> tuple[int, str, str]:
        argv = [sys.executable, "-P", str(SERVER), *(good if instead is None else instead), *words, "--check"]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout.strip(), (done.stderr.strip().splitlines() or [""])[-1]

    return check


def test_a_command_line_is_checked_without_loading_anything(server: Any, tmp_path: Path) -> None:
    code, said, _ = server()
    assert (code, said.startswith("command line is good for ")) == (0, True)
    assert server("--spec-type", "ngram-simple", "--draft-max", "7", "--spec-ngram-size-n", "4")[0] == 0
    bad: list[tuple[list[str], str]] = [
        (["--no-such-flag"], "unrecognized arguments: --no-such-flag"),
        (["--ctx-siz", "3"], "unrecognized arguments: --ctx-siz 3"),
        (["--ctx-size", "many"], "invalid int value: 'many'"),
        (["--parallel", "1024"], "gives 1024 slots no room"),
        (["--model", str(tmp_path / "absent.gguf")], "absent.gguf: No such file or directory"),
        (["--model", str(tmp_path)], "Is a directory"),
        (["--model", str(SERVER)], 'is no GGUF file: it starts with b\'"""l\''),
        (["--spec-type", "ngram-simple"], "--spec-type and --draft-max go together"),
        (["--draft-max", "7"], "--spec-type and --draft-max go together"),
        (
            ["--spec-type", "ngram-simple", "--draft-max", "7"],
            "--draft-max 7 below --spec-ngram-size-n 12 never drafts",
        ),
        (["--spec-type", "eagle", "--draft-max", "7"], "invalid choice: 'eagle'"),
        (["--spec-type", "draft-simple", "--draft-max", "7"], "--model-draft go together"),
        (["--host", f"/{'x' * 120}.sock"], "longer than the 107 bytes"),
    ]
    for words, said in bad:
        code, _, last = server(*words)
        assert code == 2, words
        assert said in last, words
    assert server(instead=["--alias", "m"])[0] == 2


def test_it_ends_when_it_is_told_to_and_takes_its_threads_along(stack: Stack, tmp_path: Path) -> None:
    spec = spec_of(stack, "q4")
    env = {"PYTHONPATH": wheel(stack), "PATH": os.environ["PATH"]}
    weights = stack.places.source(spec["lock"]["sources"]["weights"]["ref"]) / "files"
    model = next(weights.rglob("*.gguf"))
    socket = tmp_path / "s.sock"
    argv = [sys.executable, "-P", str(SERVER), "--model", str(model), "--alias", "m", "--ctx-size", "512"]
    argv += ["--host", str(socket)]
    with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout
        assert "serving m on" in until(process.stdout.readline, "the line that says it serves")
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0
