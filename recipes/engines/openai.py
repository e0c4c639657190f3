"""Any image that answers OpenAI's chat completions: the recipe's `args` are its command, word for word.

Nothing is known of such an image, so its words name the places themselves: `{weights}`, one of `{socket}` and `{port}`
(a loopback port that the host splices to the release's socket), `{drafter}` where there is one. It is gated by what
the API has: `/v1/models` and a completion. It has no metrics, version or fingerprint to read, so the gate cannot judge
a drafter, and a stall is found by a completion a minute; every word to be read in its log would be a guess.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..faults import Faults
from .common import KILLED, LOCAL_ONLY, MEND, gate_facts, refuse_env

if TYPE_CHECKING:
    from ..model import Recipe, Sources

OWNED: dict[str, str] = {}
_ENV = LOCAL_ONLY | {"XDG_CACHE_HOME": "{cache}", "HF_HOME": "{cache}/hf"}
OWNED_ENV = dict.fromkeys(_ENV, "set for every start") | {"HF_TOKEN": "stack config, as a secret"}


def compile(recipe: Recipe, sources: Sources) -> tuple[list[str], dict[str, str]]:
    """The recipe's own words as argument list, and its environment. Raises RecipeError with every fault."""
    faults = Faults()
    refuse_env(faults, recipe.env, OWNED_ENV)
    words = " ".join([*recipe.args, *recipe.env.values()])
    if "{weights}" not in words:
        faults.add("args", list(recipe.args), "a command that takes its model from {weights}", MEND)
    if "{socket}" not in words and "{port}" not in words:
        faults.add("args", list(recipe.args), "a command that listens on {socket}, or on 127.0.0.1 at {port}", MEND)
    if recipe.speculation is not None and recipe.speculation.repo is not None:
        if sources.drafter is None:
            faults.add("sources.drafter", None, "the drafter's files at one commit", MEND)
        if "{drafter}" not in words:
            faults.add("args", list(recipe.args), "a command that takes its drafter from {drafter}", MEND)
    if recipe.gate.acceptance_floor is not None:
        allowed = "none for openai: no counter is known that would hold the drafter to it"
        faults.add("gate.acceptance_floor", recipe.gate.acceptance_floor, allowed, MEND)
    faults.raise_any()
    return list(recipe.args), _ENV | recipe.env


def host_facts(recipe: Recipe) -> dict[str, Any]:
    """What the host must know to gate and watch an image of which only the API is known."""
    return gate_facts(recipe) | {
        "speculation": False,  # no counters
        "health": "/v1/models",  # the one route besides completions that the API itself has
        "version": None,
        "models": "/v1/models",
        "max_len_field": None,  # no field of the API says it
        "metrics": {
            "path": None,
            "drafts": None,
            "draft_tokens": None,
            "accepted": None,
            "running": None,
            "waiting": None,
            "moving": [],
        },
        "fingerprint": False,
        "check": None,
        "steady_s": 6.0,
        "drain_s": 30.0,
        "stop_s": 40.0,
        "patterns": [KILLED],
    }
