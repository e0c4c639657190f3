"""SGLang: one command line from its image, offline. Flags, routes and metrics as read in its 0.5.20 wheel, none tried.

It cannot listen on a Unix socket (sgl-project/sglang#14258): its command line has `{port}`, a loopback port of the
host's choice, which the host has to splice to the release's socket. Of drafts it counts the verify steps alone, not
the tokens drafted or accepted, so the gate cannot judge its drafter: `speculation` is false, and two metrics are null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..faults import Faults
from .common import LOCAL_ONLY, MEND, dflash2_depth, gate_facts, refuse_env, refuse_owned

if TYPE_CHECKING:
    from ..model import Recipe, Sources, Speculation

_SPEC, _SOCKET, _KEY = "speculation", "the host's own port", "the front checks keys"
OWNED = {
    "--model-path": "model.repo", "--model": "model.repo", "--revision": "model.revision",
    "--tokenizer-path": "model.repo", "--served-model-name": "serve.name",
    "--context-length": "serve.max_model_len", "--max-running-requests": "serve.max_num_seqs",
    "--tp-size": "gpu.count", "--tensor-parallel-size": "gpu.count", "--tp": "gpu.count",
    "--host": _SOCKET, "--port": _SOCKET, "--api-key": _KEY, "--admin-api-key": _KEY,
    "--enable-metrics": "always on: the host reads them", "--config": "args, one by one",
    "--download-dir": "the lock's files",
    "--speculative-algorithm": _SPEC, "--speculative-draft-model-path": _SPEC, "--speculative-draft-model": _SPEC,
    "--speculative-draft-model-revision": _SPEC, "--speculative-num-steps": _SPEC, "--speculative-eagle-topk": _SPEC,
    "--speculative-num-draft-tokens": _SPEC, "--speculative-dflash-block-size": _SPEC,
}  # fmt: skip
_ENV = LOCAL_ONLY | {
    "XDG_CACHE_HOME": "{cache}",
    "TRITON_CACHE_DIR": "{cache}/triton",
    "TORCHINDUCTOR_CACHE_DIR": "{cache}/inductor",
    "FLASHINFER_WORKSPACE_BASE": "{cache}",
    "CUDA_CACHE_PATH": "{cache}/nv",
    "HF_HOME": "{cache}/hf",
}
OWNED_ENV = dict.fromkeys(_ENV, "set for every SGLang start") | {
    "HF_TOKEN": "stack config, as a secret",
    "SGL_FORCE_SHUTDOWN": "never: open streams would be cut",
}
# A recipe's method -> SGLang's algorithm.
ALGORITHMS = {
    "dflash": "DFLASH", "mtp": "NEXTN", "eagle": "EAGLE", "eagle3": "EAGLE3", "draft_model": "STANDALONE",
    "ngram": "NGRAM",
}  # fmt: skip


def compile(recipe: Recipe, sources: Sources) -> tuple[list[str], dict[str, str]]:
    """SGLang's argument list and environment. Raises RecipeError with every fault."""
    from ..model import Source

    faults, serve = Faults(), recipe.serve
    refuse_owned(faults, recipe.args, OWNED)
    refuse_env(faults, recipe.env, OWNED_ENV)
    for index, arg in enumerate(recipe.args):
        if arg.replace("_", "-").partition("=")[0] == "--trust-remote-code":
            faults.add(f"args[{index}]", arg, "none for sglang: it has no way to name the code's own commit", MEND)
    if ":" in serve.name:
        faults.add("serve.name", serve.name, "a name without ':' for sglang: it separates an adapter's name", MEND)
    if recipe.gate.acceptance_floor is not None:
        allowed = "none for sglang: it counts no drafted tokens, so nothing would hold the drafter to it"
        faults.add("gate.acceptance_floor", recipe.gate.acceptance_floor, allowed, MEND)
    argv = [
        "python3", "-m", "sglang.launch_server", "--model-path", "{weights}",
        "--host", "127.0.0.1", "--port", "{port}",
        "--served-model-name", serve.name,
        "--context-length", str(serve.max_model_len),
        "--max-running-requests", str(serve.max_num_seqs),
        "--enable-metrics",
    ]  # fmt: skip
    if recipe.gpu.count > 1:
        argv += ["--tp-size", str(recipe.gpu.count)]
    if isinstance(sources.tokenizer, Source):
        argv += ["--tokenizer-path", "{tokenizer}"]
    if recipe.speculation is not None:
        argv += _speculative(faults, recipe.speculation, sources)
    faults.raise_any()
    return argv + list(recipe.args), _ENV | recipe.env


def _speculative(faults: Faults, speculation: Speculation, sources: Sources) -> list[str]:
    """What drafts, and how many; SGLang counts the known token of a verify step too, so its number is one more."""
    dflash2_depth(faults, speculation)
    words = ["--speculative-algorithm", ALGORITHMS[speculation.method]]
    if speculation.repo is not None:
        if sources.drafter is None:
            faults.add("sources.drafter", None, "the drafter's files at one commit", MEND)
        words += ["--speculative-draft-model-path", "{drafter}"]
    if speculation.method not in ("dflash", "ngram"):
        words += ["--speculative-num-steps", str(speculation.tokens), "--speculative-eagle-topk", "1"]
    return [*words, "--speculative-num-draft-tokens", str(speculation.tokens + 1)]


def host_facts(recipe: Recipe) -> dict[str, Any]:
    """What the host must know to gate and watch SGLang."""
    from .sglang_log import PATTERNS

    return gate_facts(recipe) | {
        "speculation": False,  # see above: two of the three counters are missing
        "health": "/health",  # 503 until it has warmed up; then it computes a token when idle
        "version": {"path": "/server_info", "field": "version", "value": recipe.engine.version},
        "models": "/v1/models",
        "max_len_field": "max_model_len",
        "metrics": {
            "path": "/metrics",
            "drafts": "sglang:spec_verify_calls_total",  # written when a request has ended
            "draft_tokens": None,
            "accepted": None,
            "running": "sglang:num_running_reqs",
            "waiting": "sglang:num_queue_reqs",
            # Its own counter of tokens stands still until a request has ended.
            "moving": ["sglang:realtime_tokens_total", "sglang:inter_token_latency_seconds_count"],
        },
        "fingerprint": False,
        "check": None,
        "steady_s": 6.0,
        "drain_s": 30.0,
        "stop_s": 50.0,  # SIGTERM waits for open streams and looks every 5 s; the schedulers then get time of their own
        "patterns": PATTERNS,
    }
