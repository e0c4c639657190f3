"""llama.cpp's own server, embedded from the wheel `xllamacpp`: llama-server's flag names, one GGUF, a Unix socket."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ..faults import Faults
from .common import MEND, cause, gate_facts, phase, refuse_env, refuse_owned

if TYPE_CHECKING:
    from ..model import Recipe, Source, Sources

# A slot's context is rounded up to this many tokens, and the endpoint would then report another length than pinned.
CONTEXT_STEP = 256
NGRAM_SIZE = 12  # tokens of context that must repeat, where `--spec-ngram-size-n` does not say

OWNED = {
    "--model": "model.repo", "-m": "model.repo",
    "--alias": "serve.name", "-a": "serve.name",
    "--ctx-size": "serve.max_model_len", "-c": "serve.max_model_len",
    "--parallel": "serve.max_num_seqs", "-np": "serve.max_num_seqs",
    "--host": "the host's own socket", "--port": "the host's own socket",
    "--metrics": "always on: the gate reads them",
    "--api-key": "the front checks keys", "--api-key-file": "the front checks keys",
    "--spec-type": "speculation.method", "--draft-max": "speculation.tokens", "--draft": "speculation.tokens",
    "--model-draft": "speculation.repo", "-md": "speculation.repo",
    "--hf-repo": "model.repo", "-hf": "model.repo", "--model-url": "model.repo", "-mu": "model.repo",
}  # fmt: skip
OWNED_ENV = {"HF_TOKEN": "stack config, as a secret", "LLAMA_API_KEY": "the front checks keys"}
_SPLIT = re.compile(r"-(\d{5})-of-\d{5}\.gguf")


def compile(recipe: Recipe, sources: Sources) -> tuple[list[str], dict[str, str]]:
    """llama-server's argument list and environment. Raises RecipeError with every fault."""
    faults = Faults()
    serve, speculation = recipe.serve, recipe.speculation
    if serve.max_model_len % CONTEXT_STEP:
        faults.add("serve.max_model_len", serve.max_model_len, f"a multiple of {CONTEXT_STEP} for llamacpp", MEND)
    refuse_owned(faults, recipe.args, OWNED)
    refuse_env(faults, recipe.env, OWNED_ENV)
    argv = [
        "--model", "{weights}/" + _gguf(faults, sources.weights, "sources.weights"),
        "--alias", serve.name,
        "--ctx-size", str(serve.max_model_len * serve.max_num_seqs),
        "--parallel", str(serve.max_num_seqs),
        "--host", "{socket}",
        "--metrics",
    ]  # fmt: skip
    if speculation is not None:
        if speculation.method == "ngram":
            argv += ["--spec-type", "ngram-simple"]
            _ngram_drafts(faults, recipe.args, speculation.tokens)
        elif speculation.method == "draft_model":
            if sources.drafter is None:
                faults.add("sources.drafter", None, "the drafter's GGUF", MEND)
            else:
                draft = "{drafter}/" + _gguf(faults, sources.drafter, "sources.drafter")
                argv += ["--spec-type", "draft-simple", "--model-draft", draft]
        else:
            faults.add("speculation.method", speculation.method, "ngram or draft_model for llamacpp", MEND)
        argv += ["--draft-max", str(speculation.tokens)]
    faults.raise_any()
    return argv + list(recipe.args), dict(recipe.env)


def _ngram_drafts(faults: Faults, args: tuple[str, ...], tokens: int) -> None:
    """llama.cpp throws away drafts shorter than the n-gram they were found by: with fewer tokens it never drafts."""
    said = [value for flag, value in pairwise(args) if flag == "--spec-ngram-size-n"]
    said += [arg.partition("=")[2] for arg in args if arg.startswith("--spec-ngram-size-n=")]
    size = int(said[-1]) if said and said[-1].isdecimal() else NGRAM_SIZE
    if tokens < size:
        allowed = f"{size} or more, or a smaller --spec-ngram-size-n in args"
        faults.add("speculation.tokens", tokens, allowed, MEND)


def _gguf(faults: Faults, source: Source, key: str) -> str:
    """The one file to name: a GGUF, the first part of one that is split."""
    names = sorted(file.path for file in source.files if file.path.endswith(".gguf"))
    parts = {match[1] for name in names if (match := _SPLIT.search(name))}
    if len(names) == 1 or (len(parts) == len(names) > 1):
        return names[0]
    faults.add(f"{key}.files", names or None, "exactly one GGUF file, or the parts of one", MEND)
    return ""


def host_facts(recipe: Recipe) -> dict[str, Any]:
    """What the host must know to gate and watch llama.cpp (names as its /metrics and log print them)."""
    return gate_facts(recipe) | {
        "health": "/health",
        "version": None,  # it has no /version, and its fingerprint is "b0-unknown" in every wheel
        "models": "/v1/models",
        "max_len_field": "meta.n_ctx",
        "metrics": {
            "path": "/metrics",
            "drafts": "llamacpp:spec_decode_num_drafts_total",
            "draft_tokens": "llamacpp:spec_decode_num_draft_tokens_total",
            "accepted": "llamacpp:spec_decode_num_accepted_tokens_total",
            "running": "llamacpp:requests_processing",
            "waiting": "llamacpp:requests_deferred",
            "moving": ["llamacpp:n_decode_total"],  # its counters of tokens stand still until a request has ended
        },
        "fingerprint": False,
        "check": ["--check"],  # makes the runner look at its command line and its files' headers, and exit
        "steady_s": 0.3,
        "drain_s": 30.0,
        "stop_s": 5.0,
        "patterns": PATTERNS,
    }


# The lines of this very engine, seen by making it fail; the wheel says little about what is wrong with a file.
PATTERNS = [
    phase(r"init: model loaded", "first_token"),
    phase(r"load_model: (loading model|initializing)|llama_context: ", "load"),
    cause(
        r"error: unrecognized arguments|llama-server: error:",
        "llama-server does not take this command line",
        "correct the recipe by what its last line says, then pin it again",
    ),
    cause(
        r"failed to allocate (CPU )?buffer|unable to allocate|cudaMalloc failed",
        "too little memory for the weights and the context of all requests",
        "lower serve.max_model_len or serve.max_num_seqs in the recipe, or take a larger machine",
    ),
    cause(
        r"couldn't bind HTTP server socket",
        "the engine's socket is taken, or its folder is not there",
        "run `pulumi up --refresh` again",
        transient=True,
    ),
    cause(
        r"failed to load model",
        "the model file is missing, cut short, or of a kind this version does not know",
        "raise engine.version in the recipe if the model is newer; else empty the cache and run `pulumi up` again",
    ),
    # No line of its own: this is how the gate words it.
    cause(
        r"exited with code (-9|137)\b",
        "the engine was killed from outside, most often by the kernel for want of memory",
        "`sudo dmesg | grep -i 'out of memory'` on the machine tells; lower serve.max_model_len or serve.max_num_seqs "
        "in the recipe, or take a machine with more memory",
    ),
]
