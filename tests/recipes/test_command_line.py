"""A command line, as it stands in a page, a script or a shell, becomes the recipe that it means, or a clear error.

Whether an engine takes such a command line is not shown here; that nothing in it is lost on the way is.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import string
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.recipes.command_line import Draft, draft, recipe_text, split, take_apart
from sluicegate.recipes.engines import adapter, placeholder_sources
from sluicegate.recipes.engines.speculative import read_object
from sluicegate.recipes.faults import RecipeError
from sluicegate.recipes.fields import validate
from sluicegate.recipes.files import find_recipe, read_recipe
from sluicegate.recipes.model import Recipe
from sluicegate.recipes.plain import load_yaml
from tests.recipes.recipe_cases import SHIPPED

COMMIT = "015e795645c74b1a0eeef3b570031fb62e769bc5"
SPEC = {"method": "dflash", "model": "incoai/Qwen3.8-27B-DFlash2", "revision": COMMIT, "num_speculative_tokens": 7}
JSON = json.dumps(SPEC, separators=(",", ":"))
DOCKER = """docker run --runtime nvidia --gpus all \\
    -v ~/.cache/huggingface:/srv/.cache/huggingface \\
    -p 8000:8000 --ipc=host \\
    vllm/vllm-openai:v0.32.0 """
LENGTHS = "--served-model-name qwen3.8-27b --max-model-len 32768 --max-num-seqs 256"
PLAIN = "vllm serve a/b --max-model-len 4096 --max-num-seqs 8 "


def read(text: str, name: str = "qwen3.8-27b/x", **wishes: str) -> Draft:
    return draft(name, take_apart(split(text)), {key.replace("_", "-"): value for key, value in wishes.items()})


def faults(text: str, **wishes: str) -> dict[str, str]:
    """Flag -> what is allowed and what mends it, of a command line that is refused."""
    with pytest.raises(RecipeError) as caught:
        read(text, **wishes)
    return {fault.key: f"{fault.allowed}; {fault.mend}" for fault in caught.value.faults}


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("bf16", f"{DOCKER} --model Qwen/Qwen3.8-27B {LENGTHS}"),
        (
            "fp8-mtp",
            f"{DOCKER} --model Qwen/Qwen3.8-27B-FP8 --revision 017b9c7 {LENGTHS} "
            """--speculative-config '{"method":"mtp","num_speculative_tokens":3}'""",
        ),
        (
            "int4-mtp",
            f"vllm serve cyankiwi/Qwen3.8-27B-AWQ-INT4 {LENGTHS} --spec-method=qwen3_5_mtp --spec-tokens=3",
        ),
        (
            "fp8-dflash2",
            f"{DOCKER} --model Qwen/Qwen3.8-27B-FP8 --revision 017b9c7 {LENGTHS} --speculative-config '{JSON}'",
        ),
        (
            "fp8-sglang",
            "docker run --gpus all lmsysorg/sglang:v0.5.20-cu130 python3 -m sglang.launch_server "
            "--model-path Qwen/Qwen3.8-27B-FP8 --revision 017b9c7 --served-model-name qwen3.8-27b "
            "--context-length 32768 --max-running-requests 64 --host 0.0.0.0 --port 30000 --enable-metrics "
            "--speculative-algorithm DFLASH --speculative-draft-model-path incoai/Qwen3.8-27B-DFlash2 "
            f"--speculative-draft-model-revision {COMMIT} --speculative-num-draft-tokens 8 --reasoning-parser qwen3",
        ),
    ],
)
def test_the_commands_of_the_ladder_give_the_shipped_recipes(name: str, command: str) -> None:
    shipped, _ = read_recipe(find_recipe(f"qwen3.8-27b/{name}", [SHIPPED]))
    assert read(command).recipe == shipped.model_copy(update={"claims": ()})  # claims are no part of a command line


def test_a_command_of_an_image_of_which_only_the_api_is_known_gives_the_shipped_recipe() -> None:
    shipped, _ = read_recipe(find_recipe("qwen3-8b/lmdeploy", [SHIPPED]))
    command = (
        "docker run --gpus all -p 23333:23333 openmmlab/lmdeploy:v0.16.0-cu12.8 lmdeploy serve api_server Qwen/Qwen3-8B"
        " --server-name 0.0.0.0 --server-port 23333 --model-name qwen3-8b --session-len 32768 --max-batch-size 64"
    )
    wishes = {"model": "Qwen/Qwen3-8B", "max_model_len": "32768", "max_num_seqs": "64"}
    assert read(command, "qwen3-8b/lmdeploy", **wishes).recipe == shipped


def test_a_command_of_llama_server_gives_the_shipped_recipe() -> None:
    """But for the drafter's package and the floor, which are the project's own."""
    shipped, _ = read_recipe(find_recipe("smollm2-135m/f16", [SHIPPED]))
    file = ".models/SmolLM2-135M-Instruct.F16.gguf"
    made = read(f"./llama-server -m {file} -c 8192 -np 4 --metrics --threads 1", "smollm2-135m/f16")
    assert made.recipe == shipped
    made = read(f"llama-server -m {file} -c 8192 -np 4 --spec-type draft-simple -md d.gguf --draft 4")
    assert made.recipe.speculation is not None
    assert made.recipe.speculation.model_dump(exclude_none=True) == {
        "method": "draft_model",
        "repo": "file:d.gguf",
        "tokens": 4,
    }


@pytest.mark.parametrize(
    "written",
    [
        f"--speculative-config '{JSON}'",
        f"--speculative-config={shlex.quote(JSON)}",
        f"-sc '{JSON}'",
        "--speculative_config " + '"' + JSON.replace('"', '\\"') + '"',  # double quotes, escaped inside
        "--speculative-config '" + JSON.replace('"', '\\"') + "'",  # escaped once too often
        "--speculative-config '" + JSON.replace('"', '\\\\"') + "'",
        '--speculative-config "' + "'" + JSON.replace('"', '\\"') + "'" + '"',  # cmd leaves single quotes standing
        "--speculative-config '" + JSON.replace('"', '""') + "'",  # cmd doubles
        "--speculative-config '" + JSON.replace('"', '`"') + "'",  # PowerShell
        "--speculative-config '" + JSON.replace('"', "") + "'",  # PowerShell 5 loses them
        '--speculative-config "' + JSON.replace('"', "'") + '"',  # as Python prints it
        "--speculative-config '" + JSON.replace('{"', "{“").replace('"', "”") + "'",  # a page curled them
        "--speculative-config '" + json.dumps(SPEC, indent=2) + "'",
        "--speculative-config.method dflash --speculative-config.model incoai/Qwen3.8-27B-DFlash2 "
        f"-sc.revision={COMMIT} --speculative-config.num-speculative-tokens 7",
        f"--spec-method dflash --spec-model incoai/Qwen3.8-27B-DFlash2 --spec-tokens 7 -sc.revision {COMMIT}",
    ],
)
def test_the_drafters_settings_survive_every_shells_quoting(written: str) -> None:
    speculation = read(PLAIN + written).data["speculation"]
    assert speculation == {"method": "dflash", "repo": SPEC["model"], "revision": COMMIT, "tokens": 7}


def test_what_of_the_drafter_is_no_field_is_kept_and_reaches_the_engine_as_it_was() -> None:
    config = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4, "x": {"y": ["1"]}, "s": "3"}
    made = read(PLAIN + f"--seed 1 --speculative-config {shlex.quote(json.dumps(config))}")
    argv, _ = adapter("vllm").compile(made.recipe, placeholder_sources(made.recipe))
    assert json.loads(argv[argv.index("--speculative-config") + 1]) == config


@pytest.mark.parametrize(
    ("words", "flag", "said"),
    [
        ("--speculative-config '{method'", "--speculative-config", "one JSON object"),
        ("--speculative-config '[1]'", "--speculative-config", "one JSON object"),
        ("""-sc '{"method":"ngram","method":"mtp"}'""", "-sc", "one JSON object"),
        ("""-sc '{"method":"ngram"}'""", "-sc num_speculative_tokens", "whole number"),
        ("""-sc '{"num_speculative_tokens":1}'""", "-sc method", "the method that drafts"),
        ("""-sc '{"method":"mtp","model":"c/d","num_speculative_tokens":1}'""", "-sc model", "a/b, the target's own"),
        ("--spec-method ngram --spec-method mtp --spec-tokens 1", "--spec-method method", "said once"),
        (f"-sc '{JSON.replace(':7', ':5')}'", "speculation.tokens", "7 for a DFlash2"),
        ("--max-model-len 1", "--max-model-len", "said once; --max-model-len said '4096'"),
        ("--model c/d", "--model", "said once; the model said 'a/b'"),
        ("--seed 1 --max-num-seqs", "--max-num-seqs", "a value"),
        ("--served-model-name a b", "--served-model-name", "one name"),
        ("--api-key sk-1", "--api-key", "config set --secret sluicegate:apiKey"),
        ("--hf-token=hf_1", "--hf-token", "config set --secret sluicegate:hfToken"),
        ("--config x.yaml", "--config", "its settings as arguments"),
        ("--tokenizer c/d", "--tokenizer", "the model's own (a/b)"),
        ("-tp 0", "--tensor-parallel-size", "from 1"),
        ("--trust-remote-code", "args[0]", "remote code only with"),
        ("\u2013seed 1", "command line", "a page made a dash"),
        ("&& rm x", "command line", "one command"),
        ("'", "command line", "quotes that are closed"),
    ],
)
def test_what_cannot_be_a_recipe_is_an_error_that_names_its_flag(words: str, flag: str, said: str) -> None:
    assert said in faults(PLAIN + words)[flag]


@pytest.mark.parametrize(
    ("command", "flag", "said"),
    [
        ("", "program", "vllm serve"),
        ("docker build .", "docker", "run"),
        ("docker run", "docker run", "an image"),
        ("docker run --name", "--name", "a value"),
        ("docker run --frobnicate x vllm/vllm-openai:v1.0.0", "--frobnicate", "known here"),
        ("docker run --env-file .env vllm/vllm-openai:v0.32.0 -h", "--env-file", "stack config"),
        ("vllm serve --max-model-len auto", "--max-model-len", "differ from machine to machine"),
        ("vllm serve --seed 1", "--model", "right after `serve`"),
        ("vllm serve a/b", "--max-num-seqs", "a whole number"),
        ("docker run vllm/vllm-openai:latest --model a/b", "--image", "'latest' says nothing"),
        ("docker run vllm/vllm-openai --model a/b", "--image", "begins with a release"),
        ("docker run some/image:v1 --model a/b", "--max-model-len", "a whole number"),
        ("llama-server -m /abs.gguf -c 512 -np 3", "-m", "inside the project"),
        ("llama-server -m a.gguf -c 512 -np 3", "--ctx-size", "a multiple of --parallel 3"),
        (
            "sglang serve a/b --speculative-algorithm EAGLE3 --speculative-eagle-topk 4",
            "--speculative-algorithm",
            "chain",
        ),
        ("python3 serve.py", "program", "vllm serve"),
    ],
)
def test_every_fault_of_a_whole_command_line_names_where_it_is(command: str, flag: str, said: str) -> None:
    assert said in faults(command)[flag]


def test_secrets_are_refused_with_where_they_belong_and_never_repeated() -> None:
    command = "docker run -e HF_TOKEN=hf_secretsecret --env MY_PASSWORD=pw1pw1 -e X=sk-abcdefghijk -e VLLM_API_KEY i:v1"
    found = faults(command.replace("i:v1", "vllm/vllm-openai:v0.32.0 --model a/b"))
    assert "config set --secret sluicegate:hfToken" in found["-e HF_TOKEN"]
    assert "config set --secret sluicegate:apiKey" in found["-e VLLM_API_KEY"]
    assert {"-e MY_PASSWORD", "-e X"} <= set(found)
    with pytest.raises(RecipeError) as caught:
        read(command)
    assert not [word for word in ("secretsecret", "pw1pw1", "abcdefghijk") if word in str(caught.value)]


def test_the_environment_is_kept_but_for_what_the_product_sets() -> None:
    words = "-e VLLM_LOGGING_LEVEL=DEBUG -e HF_HOME=/x -e CUDA_VISIBLE_DEVICES=0 -e MAX_TOKENS=5"
    made = read(f"A=1 docker run {words} vllm/vllm-openai:v0.32.0 --model a/b --max-model-len 32K --max-num-seqs 1k")
    assert made.recipe.env == {"A": "1", "VLLM_LOGGING_LEVEL": "DEBUG", "MAX_TOKENS": "5"}
    assert made.recipe.serve.model_dump() == {"name": "qwen3.8-27b", "max_model_len": 32768, "max_num_seqs": 1000}
    assert {"HF_HOME", "CUDA_VISIBLE_DEVICES"} <= {flag for flag, _ in made.left_out}
    assert "NAME=VALUE" in faults("docker run -e A vllm/vllm-openai:v0.32.0 --model a/b")["-e A"]


def test_what_docker_does_is_named_as_left_out_and_why() -> None:
    made = read(
        "sudo -E docker run -itd --rm -p8000:8000 --gpus all --shm-size=16g -v a:b --name n --entrypoint vllm "
        "ghcr.io/x/vllm:0.31.1rc2@sha256:abc serve a/b --max-model-len 1 --max-num-seqs 1 --host ::"
    )
    left_out = dict(made.left_out)
    assert set(left_out) == {*("-i", "-t", "-d", "--rm", "-p", "--gpus", "--shm-size", "-v", "--name", "--host")}
    assert "the front" in left_out["-p"]
    assert made.data["engine"] == {
        "name": "vllm",
        "version": "0.31.1rc2",
        "image": "ghcr.io/x/vllm:0.31.1rc2@sha256:abc",
    }


@pytest.mark.parametrize(
    ("image", "whole"),
    [("vllm:v1.0.0", "docker.io/library/vllm:v1.0.0"), ("localhost:5000/vllm:v1.0.0", "localhost:5000/vllm:v1.0.0")],
)
def test_an_image_is_written_by_its_whole_name(image: str, whole: str) -> None:
    made = read(f"docker run {image} --model a/b --max-model-len 1 --max-num-seqs 1 --tensor-parallel-size 2")
    assert made.data["engine"]["image"] == whole
    assert made.data["gpu"] == {"type": "H100-80GB", "count": 2}


@pytest.mark.parametrize(
    ("repo", "more", "precision"),
    [
        ("a/B-FP8", "", "fp8"), ("a/B-AWQ-INT4", "", "int4"), ("a/B-NVFP4", "", "fp4"), ("a/B", "", "bf16"),
        ("a/B", "--quantization fp8", "fp8"), ("a/B", "--dtype=float16", "f16"), ("a/B-w8a8", "", "int8"),
    ],
)  # fmt: skip
def test_the_precision_is_said_by_an_argument_or_the_models_name(repo: str, more: str, precision: str) -> None:
    made = read(f"vllm serve {repo} --max-model-len 1 --max-num-seqs 1 {more}")
    assert made.recipe.model.precision == precision
    assert list(made.recipe.args) == more.split()
    assert bool([told for told in made.assumed if "precision" in told]) == (precision == "bf16")


def test_a_wish_beside_the_command_line_may_not_say_something_else() -> None:
    assert read(PLAIN, model="a/b", gpu="2xL40S", engine_version="0.31.0").data["gpu"] == {"type": "L40S", "count": 2}
    assert "what the model says: a/b" in faults(PLAIN, model="c/d")["--model"]
    assert "3 of them" in faults(PLAIN + "-tp 3", gpu="2xL40S")["--gpu"]
    assert "TYPE" in faults(PLAIN, gpu="!")["--gpu"]


word = st.text(string.ascii_letters + string.digits + "._/:{}\"'$ ", min_size=1, max_size=12)
flag = st.from_regex(r"--x[a-z-]{0,8}[a-z]", fullmatch=True)
kept = st.lists(
    st.one_of(
        flag.map(lambda f: [f]),
        st.tuples(flag, word).map(list),
        st.builds("{}={}".format, flag, word).map(lambda w: [w]),
    ),
    max_size=5,
)


@settings(deadline=None)
@given(
    kept,
    st.sampled_from(["ngram", "eagle3", "dflash"]),
    st.integers(1, 64),
    st.dictionaries(st.from_regex(r"k[a-z_]{0,6}", fullmatch=True), word | st.integers() | st.booleans(), max_size=3),
)
def test_every_flag_and_value_is_in_the_recipe_its_file_and_the_command_line_it_compiles_to(
    words: list[list[str]], method: str, tokens: int, more: dict[str, Any]
) -> None:
    args = [part for group in words for part in group]
    spec = {"method": method, "num_speculative_tokens": tokens} | more
    if method != "ngram":
        spec |= {"model": "c/d", "revision": COMMIT}
    text = shlex.join(
        ["vllm", "serve", "a/b", "--max-num-seqs", "3", *args, "-sc", json.dumps(spec), "--max-model-len=9"]
    )
    made = read(text)
    again = validate(Recipe, load_yaml(recipe_text(made.data).encode(), "recipe", ""), "", "")
    assert again == made.recipe
    argv, _ = adapter("vllm").compile(again, placeholder_sources(again))
    assert argv[len(argv) - len(args) :] == args
    config = json.loads(argv[argv.index("--speculative-config") + 1])
    assert config | {key: spec[key] for key in ("model", "revision") if key in spec} == spec
    if again.speculation and again.speculation.repo:
        assert (again.speculation.repo, again.speculation.revision) == ("c/d", COMMIT)
    assert argv[argv.index("--max-num-seqs") + 1] == "3"
    assert argv[argv.index("--max-model-len") + 1] == "9"


pieces = st.sampled_from(
    [
        *DOCKER.split(),
        *PLAIN.split(),
        JSON,
        "-sc",
        "--speculative-config",
        "--",
        "=",
        "",
        "-e",
        "-p",
        "A=",
        "{",
        "python3",
        "-m",
        "sglang",
        "llama-server",
        "-c",
    ]
)


@settings(deadline=None)
@given(st.lists(pieces | st.text(st.characters(), max_size=8), max_size=12))
def test_odd_words_raise_nothing_but_a_recipe_error(words: list[str]) -> None:
    with contextlib.suppress(RecipeError):
        draft("a/b", take_apart(words), {})


@settings(deadline=None)
@given(st.text() | st.text(" '\"\\$`^\n#;{}:,a1", max_size=30))
def test_odd_text_raises_nothing_but_a_recipe_error(text: str) -> None:
    with contextlib.suppress(RecipeError):
        draft("a/b", take_apart([*split(PLAIN), *split(text)]), {})
    found = read_object(text)
    assert found is None or isinstance(found, dict)
