"""What every engine's adapter shares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ..faults import Faults

if TYPE_CHECKING:
    from ..model import Recipe, Speculation

DFLASH2_TOKENS = 7
MEND = "edit the recipe, then pin it again"

# The answer to this has its next words in the prompt, so that any working drafter is mostly right: on SmolLM2-135M
# n-gram drafts of 7 had 75 of 95 tokens accepted. Open prose had none, and would prove nothing.
PREDICTABLE = "Repeat this list exactly, twice:\n" + "\n".join(
    f"{n}. The quick brown fox number {n} jumps over the lazy dog." for n in range(1, 9)
)
PLAIN = "Say hello."  # the front asks the same, and an engine that caches prefixes answers it at once

# Everything has been fetched and verified before the start: nothing may come from anywhere else.
LOCAL_ONLY = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
}


def refuse_owned(faults: Faults, args: Iterable[str], owned: dict[str, str], known: Sequence[str] = ()) -> None:
    """A fault for each further argument, but the `known`, that a field of the recipe sets or that is the host's."""
    for index, arg in enumerate(args):
        if not arg.startswith("-") or arg in known:
            continue
        flag = arg.split("=", 1)[0].split(".", 1)[0].replace("_", "-")
        if flag in owned:
            faults.add(f"args[{index}]", arg, f"one sluicegate does not set; this is {owned[flag]}", MEND)


def refuse_env(faults: Faults, env: Iterable[str], owned: dict[str, str]) -> None:
    """A fault for each variable that is set by the adapter or would carry a secret."""
    for name in env:
        if name in owned:
            faults.add(f"env.{name}", name, f"one sluicegate does not set; this is {owned[name]}", MEND)


def dflash2_depth(faults: Faults, speculation: Speculation) -> None:
    """A fault for a depth that the DFlash2 drafter was not made for.

    The checkpoint drafts blocks of 8, the first of which is the known token. Engines accept any other number, set the
    block to it without comparing, and then draft worse (vllm-project/recipes#837).
    """
    dflash2 = speculation.method == "dflash" and "dflash2" in (speculation.repo or "").lower()
    if dflash2 and speculation.tokens != DFLASH2_TOKENS:
        allowed = f"{DFLASH2_TOKENS} for a DFlash2 drafter: its block size minus 1"
        faults.add("speculation.tokens", speculation.tokens, allowed, MEND)


def gate_facts(recipe: Recipe) -> dict[str, Any]:
    """The recipe's part of what the host's gate needs."""
    return {
        "max_model_len": recipe.serve.max_model_len,
        "acceptance_floor": recipe.gate.acceptance_floor if recipe.speculation else None,
        "not_helping": recipe.gate.not_helping,
        "speculation": recipe.speculation is not None,
        "stall": {"every_s": 60, "misses": 3},
        "prompts": {"predictable": PREDICTABLE, "plain": PLAIN},
    }


def phase(match: str, name: str) -> dict[str, Any]:
    """A log pattern that says a phase of the start was reached."""
    return {"match": match, "phase": name}


def cause(match: str, text: str, mend: str, *, transient: bool = False) -> dict[str, Any]:
    """A log pattern that says why a start failed; `transient` causes may pass with a second try of the same lock."""
    return {"match": match, "cause": text, "transient": transient, "mend": mend}


# No line of its own: this is how the gate words it. Last, as whatever the log says is more telling.
KILLED = cause(
    r"exited with code (-9|137)\b",
    "the engine was killed from outside, most often by the kernel for want of memory",
    "`sudo dmesg | grep -i 'out of memory'` on the machine tells; take one with more memory, or lower "
    "serve.max_num_seqs in the recipe",
)
