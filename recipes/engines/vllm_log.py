"""What vLLM's log says of a start: phases reached, and causes of failure with what mends them.

Order matters: of several causes that match, the first listed is the more telling.
"""

from __future__ import annotations

from typing import Any

from .common import cause, phase

_AGAIN = "run `pulumi up --refresh` again"
_PIN = "check the recipe, then `sluicegate recipe pin` it again"

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
    cause(
        r"outgoing traffic has been disabled|LocalEntryNotFoundError",
        "the engine asked the hub for a file that is not among the lock's files",
        _PIN,
    ),
    cause(
        r"You are trying to access a gated repo|RepositoryNotFoundError|RevisionNotFoundError|We couldn't connect to",
        "the engine tried to reach the hub; everything should come from the lock's files",
        _PIN,
    ),
    cause(r"Cannot find any model weights with", "the lock's files hold no weights that vLLM can load", _PIN),
    cause(r"Bus error|No available shared memory broadcast block found", "too little shared memory",
          "give the container more /dev/shm (`--ipc=host`)"),
    cause(r"No space left on device|os error 28", "the disk is full", "raise cache.sizeGb, or free the machine's disk"),
    cause(
        r"nvidia-container-cli: requirement error: unsatisfied condition: cuda",
        "the GPU driver is too old for this image",
        "update the driver, or pin an image of an older CUDA (its `-cu129` tag)",
    ),
    cause(
        r"Failed to infer device type|could not select device driver",
        "no GPU is visible to the engine",
        "install the driver and the NVIDIA container toolkit on the machine",
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
    cause(r"Invalid repository ID or local directory specified", "the drafter's place holds no model", _PIN),
    cause(r"validation errors? for SpeculativeConfig", "vLLM refuses the speculation settings", _PIN),
    cause(r"error: unrecognized arguments|cannot be converted to|error: argument",
          "vLLM does not know an argument of the recipe", "correct args in the recipe"),
    cause(r"Address already in use", "another engine still holds the socket", _AGAIN, transient=True),
    cause(r"EngineDeadError|Executor failed", "the engine died while serving", "see `sluicegate logs`", transient=True),
]  # fmt: skip
