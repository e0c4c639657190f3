"""vLLM: one command line from its image or package, one Unix socket, offline."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from ..faults import Faults
from .common import LOCAL_ONLY, MEND, dflash2_depth, gate_facts, refuse_env, refuse_owned

if TYPE_CHECKING:
    from ..model import Recipe, Sources, Speculation

SHUTDOWN_S = 30  # with vLLM's default of 0 an open stream is left hanging without an error

_SPEC, _SOCKET, _KEY = "speculation", "the host's own socket", "the front checks keys"
OWNED = {
    "--model": "model.repo", "--revision": "model.revision", "--hf-token": "stack config, as a secret",
    "--tokenizer": "model.repo", "--tokenizer-revision": "model.revision",
    "--uds": _SOCKET, "--host": _SOCKET, "--port": _SOCKET, "--api-key": _KEY,
    "--served-model-name": "serve.name", "--max-model-len": "serve.max_model_len",
    "--max-num-seqs": "serve.max_num_seqs", "--tensor-parallel-size": "gpu.count", "-tp": "gpu.count",
    "--shutdown-timeout": f"always {SHUTDOWN_S}", "--fingerprint-mode": "always the lock",
    "--fingerprint-value": "always the lock", "--speculative-config": _SPEC, "-sc": _SPEC, "--spec-method": _SPEC,
    "--spec-model": _SPEC, "--spec-tokens": _SPEC, "--config": "args, one by one", "--download-dir": "the lock's files",
    "--disable-log-stats": "never: the gate reads the metrics",
}  # fmt: skip
_ENV = LOCAL_ONLY | {
    # Of vLLM's own variables only two, both among the few that its compile key ignores.
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_CACHE_ROOT": "{cache}/vllm",
    "XDG_CACHE_HOME": "{cache}",
    "TRITON_CACHE_DIR": "{cache}/triton",
    "FLASHINFER_WORKSPACE_BASE": "{cache}",
    "CUDA_CACHE_PATH": "{cache}/nv",
    "HF_HOME": "{cache}/hf",
}
OWNED_ENV = dict.fromkeys(_ENV, "set for every vLLM start") | {
    "HF_TOKEN": "stack config, as a secret",
    "VLLM_API_KEY": _KEY,
    "VLLM_PORT": _SOCKET,
    "VLLM_SERVER_DEV_MODE": "never: it opens routes that run code",
    "VLLM_KEEP_ALIVE_ON_ENGINE_DEATH": "never: a dead engine must exit to be restarted",
}
# A setting of the drafter's that is no field of a recipe: one word of `args`, as vLLM's command line has it too.
EXTRA = re.compile(
    r"--speculative-config\.(?!(?:method|model|revision|code_revision|num_speculative_tokens)=)(\w+)=(.*)"
)
_COMMIT = re.compile(r"--code[-_]revision=[0-9a-f]{40}")


def compile(recipe: Recipe, sources: Sources) -> tuple[list[str], dict[str, str]]:
    """vLLM's argument list and environment. Raises RecipeError with every fault."""
    from ..model import Source

    faults, serve = Faults(), recipe.serve
    extra = [match for arg in recipe.args if recipe.speculation and (match := EXTRA.fullmatch(arg))]
    refuse_owned(faults, recipe.args, OWNED, [match[0] for match in extra])
    refuse_env(faults, recipe.env, OWNED_ENV)
    _remote_code(faults, recipe.args)
    argv = [
        "serve", "{weights}", "--uds", "{socket}",
        "--served-model-name", serve.name,
        "--max-model-len", str(serve.max_model_len),
        "--max-num-seqs", str(serve.max_num_seqs),
    ]  # fmt: skip
    if recipe.gpu.count > 1:
        argv += ["--tensor-parallel-size", str(recipe.gpu.count)]
    if isinstance(sources.tokenizer, Source):
        argv += ["--tokenizer", "{tokenizer}"]
    argv += ["--shutdown-timeout", str(SHUTDOWN_S), "--fingerprint-mode", "custom", "--fingerprint-value", "{lock}"]
    if recipe.speculation is not None:
        config = _speculative(faults, recipe.speculation, sources)
        config |= {match[1]: _value(match[2]) for match in extra}
        argv += ["--speculative-config", json.dumps(config, separators=(",", ":"))]
    faults.raise_any()
    taken = {match[0] for match in extra}
    return argv + [arg for arg in recipe.args if arg not in taken], _ENV | recipe.env


def _speculative(faults: Faults, speculation: Speculation, sources: Sources) -> dict[str, object]:
    """The fields of `--speculative-config`; places instead of repositories, so no revision can drift."""
    config: dict[str, object] = {"method": speculation.method}
    if speculation.method == "mtp":
        # Unsaid, the head's config would be looked up again by the target's name, at `main`.
        config["model"] = "{weights}"
    elif speculation.method != "ngram":
        if sources.drafter is None:
            faults.add("sources.drafter", None, "the drafter's files at one commit", MEND)
        config["model"] = "{drafter}"
    config["num_speculative_tokens"] = speculation.tokens
    dflash2_depth(faults, speculation)
    return config


def _value(text: str) -> object:
    try:
        found: object = json.loads(text)
    except ValueError:
        return text
    return found


def _remote_code(faults: Faults, args: tuple[str, ...]) -> None:
    """Code of a repository runs only at a commit of its own."""
    for index, arg in enumerate(args):
        if arg.replace("_", "-") == "--trust-remote-code" and not any(_COMMIT.fullmatch(other) for other in args):
            faults.add(f"args[{index}]", arg, "remote code only with --code-revision=<40 hex commit> beside it", MEND)


def host_facts(recipe: Recipe) -> dict[str, Any]:
    """What the host must know to gate and watch vLLM (names as its /metrics and log print them)."""
    from .vllm_log import PATTERNS

    return gate_facts(recipe) | {
        "health": "/health",
        "version": {"path": "/version", "field": "version", "value": recipe.engine.version},
        "models": "/v1/models",
        "max_len_field": "max_model_len",
        "metrics": {
            "path": "/metrics",
            "drafts": "vllm:spec_decode_num_drafts_total",
            "draft_tokens": "vllm:spec_decode_num_draft_tokens_total",
            "accepted": "vllm:spec_decode_num_accepted_tokens_total",
            "running": "vllm:num_requests_running",
            "waiting": "vllm:num_requests_waiting",
            # The first counts steps of the engine, also those of a long prefill that yields no token yet.
            "moving": ["vllm:iteration_tokens_total_count", "vllm:generation_tokens_total"],
        },
        "fingerprint": True,
        "check": None,  # it has no way to look at a command line without starting
        "steady_s": 6.0,  # a dead engine takes the server down within its watchdog's 5 s
        "drain_s": float(SHUTDOWN_S),
        "stop_s": SHUTDOWN_S + 10.0,  # longer than its own drain, so that it is never killed in the middle of a stream
        "patterns": PATTERNS,
    }
