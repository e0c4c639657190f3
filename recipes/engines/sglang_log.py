"""What SGLang's log says of a start: phases reached, and causes of failure with what mends them.

From the source of 0.5.20, none seen. Order matters: of several causes that match, the first listed is the more telling.
"""

from __future__ import annotations

from .common import KILLED, cause, phase

PATTERNS = [
    phase(r"Load weight begin", "load"),
    phase(r"Load weight end|Memory pool end|CUDA graph begin", "graphs"),
    phase(r"CUDA graph end|The server is fired up and ready to roll", "first_token"),
    cause(
        r"Not enough memory\. Please try to increase --mem-fraction-static",
        "the weights leave no memory for the KV cache",
        "take a larger GPU or more of them, or weights of fewer bits",
    ),
    cause(
        r"torch\.OutOfMemoryError|CUDA out of memory",
        "out of GPU memory",
        "lower serve.max_model_len or serve.max_num_seqs in the recipe, or take a larger GPU",
    ),
    cause(
        r"User-specified context_length \(\d+\) is greater than the derived context_length",
        "serve.max_model_len is above what the model was made for",
        "lower serve.max_model_len in the recipe",
    ),
    cause(
        r"outgoing traffic has been disabled|Cannot find any model weights with",
        "the lock's files lack one that the engine needs",
        "check the recipe, then `sluicegate recipe pin` it again",
    ),
    cause(
        r"error: unrecognized arguments|error: argument|error: ambiguous option",
        "SGLang does not know an argument of the recipe",
        "correct args in the recipe",
    ),
    cause(
        r"nvidia-container-cli: requirement error: unsatisfied condition: cuda",
        "the GPU driver is too old for this image",
        "update the driver, or pin an image of an older CUDA",
    ),
    cause(
        r"could not select device driver|No accelerator .* is available",
        "no GPU is visible to the engine",
        "install the driver and the NVIDIA container toolkit on the machine (`nvidia-smi` proves it)",
        transient=True,
    ),
    cause(
        r"Address already in use",
        "another process holds the engine's port",
        "run `pulumi up --refresh` again",
        transient=True,
    ),
    KILLED,
]
