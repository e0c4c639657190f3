"""What vLLM's log says of a start: phases reached, and causes of failure with what mends them.

Order matters: of several causes that match, the first listed is the more telling.
"""

from __future__ import annotations

from typing import Any

from .common import KILLED, cause, phase

_AGAIN = "run `pulumi up --refresh` again"
_PIN = "check the recipe, then `sluicegate recipe pin` it again"
_TOKEN = "`pulumi config set --secret hfToken`"

PATTERNS: list[dict[str, Any]] = [
    phase(r"Starting to load model", "load"),
    phase(r"Loading weights took|Model loading took", "compile"),
    phase(r"torch\.compile took|Available KV cache memory", "graphs"),
    phase(r"init engine \(profile, create kv cache, warmup model\) took|Starting vLLM server on", "first_token"),
    cause(
        r"To serve at least one request with the model's max seq len",
        "too little memory for the KV cache of one request of max_model_len",
        "lower serve.max_model_len in the recipe (the log names the most that fits), or take a larger GPU",
    ),
    cause(
        r"No available memory for the cache blocks",
        "the weights leave no memory for the KV cache",
        "take a larger GPU or more of them, or weights of fewer bits",
    ),
    cause(
        r"Free memory on device .* is less than desired GPU memory utilization|Available memory on node .* is less",
        "another process holds memory of this GPU",
        "stop what else runs on the GPU (`nvidia-smi` names it)",
        transient=True,
    ),
    cause(
        r"occurred when warming up sampler with",
        "out of GPU memory while warming up for serve.max_num_seqs requests",
        "lower serve.max_num_seqs in the recipe",
    ),
    cause(
        r"torch\.OutOfMemoryError|CUDA out of memory",
        "out of GPU memory",
        "lower serve.max_model_len or serve.max_num_seqs in the recipe, or take a larger GPU",
    ),
    cause(
        r"User-specified max_model_len \(\d+\) is greater than the derived max_model_len",
        "serve.max_model_len is above what the model was made for",
        "lower serve.max_model_len in the recipe",
    ),
    # Of the drafter's: what the hub said of it may stand above, and would be taken for the model's own.
    cause(
        r"Invalid repository ID or local directory specified",
        "the drafter's place holds no model that can be read",
        f"check speculation.repo and that your hub token may read it ({_TOKEN}), then `sluicegate recipe pin` it again",
    ),
    cause(
        r"outgoing traffic has been disabled",
        "the engine asked the hub for a file that is not among the lock's files",
        _PIN,
    ),
    cause(
        r"403 Client Error|not in the authorized list",
        "the hub knows the token and does not let it into this gated repository",
        "ask for access on the repository's page at the hub; once it is given, `sluicegate recipe pin` it again",
    ),
    cause(
        r"You are trying to access a gated repo|Cannot access gated repo",
        "the repository is gated, and the hub was asked without a token",
        f"{_TOKEN}, then `sluicegate recipe pin` it again",
    ),
    cause(
        r"RevisionNotFoundError|is not a valid git identifier",
        "the repository has no such commit",
        "correct revision in the recipe, then `sluicegate recipe pin` it again",
    ),
    cause(
        r"RepositoryNotFoundError|is not a valid model identifier",
        "the hub has no such repository, or it is private and the token may not see it",
        f"correct repo in the recipe, or {_TOKEN}; then `sluicegate recipe pin` it again",
    ),
    cause(
        r"We couldn't connect to|LocalEntryNotFoundError",
        "the hub cannot be reached from the machine",
        f"check the machine's network and proxy, then {_AGAIN}",
        transient=True,
    ),
    cause(r"Cannot find any model weights with", "the lock's files hold no weights that vLLM can load", _PIN),
    cause(
        r"/dev/shm.*No space left|No space left.*/dev/shm|Bus error|shared memory segment"
        r"|No available shared memory broadcast block found",
        "too little shared memory",
        f"enlarge it on the machine: `sudo mount -o remount,size=16G /dev/shm`, then {_AGAIN}",
        transient=True,
    ),
    cause(
        r"No space left on device|os error 28",
        "the disk is full",
        f"free the machine's disk, or raise cache.sizeGb; then {_AGAIN}",
        transient=True,
    ),
    cause(
        r"nvidia-container-cli: requirement error: unsatisfied condition: cuda",
        "the GPU driver is too old for this image",
        "update the driver, or pin an image of an older CUDA (its `-cu129` tag)",
    ),
    cause(
        r"Failed to infer device type|could not select device driver",
        "no GPU is visible to the engine",
        f"install the driver and the NVIDIA container toolkit on the machine (`nvidia-smi` proves it), then {_AGAIN}",
        transient=True,
    ),
    cause(
        r"Model Runner V1 does not support: DFlash",
        "this drafter needs CUDA and Triton",
        "serve it on a CUDA GPU, or take another speculation.method",
    ),
    cause(
        r"Model architectures \[.*\] are not supported for now|failed to be inspected",
        "this engine version does not know the model's or the drafter's architecture",
        "raise engine.version in the recipe",
    ),
    cause(r"validation errors? for SpeculativeConfig", "vLLM refuses the speculation settings", _PIN),
    cause(r"error: unrecognized arguments|cannot be converted to|error: argument",
          "vLLM does not know an argument of the recipe", "correct args in the recipe"),
    cause(r"Address already in use", "another engine still holds the socket", _AGAIN, transient=True),
    cause(r"EngineDeadError|Executor failed", "the engine died while serving", "see `sluicegate logs`", transient=True),
    KILLED,
]  # fmt: skip
