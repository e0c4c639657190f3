"""The numbers of a model's config.json that memory, speed and cost follow from, and what they ask of a drafter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .faults import Fault, Faults

EDIT = "edit the recipe, then pin it again"
OTHER = "name a repository or commit that has it"
_COUNTS = ("num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size", "max_position_embeddings")
_DERIVED = ("num_key_value_heads", "head_dim", "intermediate_size")
# There only in some kinds of model: experts, layers without a growing cache, prediction heads, latent attention.
_KEPT = (
    "num_experts", "num_local_experts", "n_routed_experts", "n_shared_experts", "num_experts_per_tok",
    "moe_intermediate_size", "shared_expert_intermediate_size", "first_k_dense_replace",
    "layer_types", "full_attention_interval", "sliding_window", "linear_num_key_heads", "linear_num_value_heads",
    "linear_key_head_dim", "linear_value_head_dim", "linear_conv_kernel_dim", "mamba_ssm_dtype",
    "mtp_num_hidden_layers", "num_nextn_predict_layers", "kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim",
    "v_head_dim", "tie_word_embeddings", "block_size",
)  # fmt: skip
_QUANTISED = ("quant_method", "bits", "group_size", "weight_block_size", "fmt", "kv_cache_quant_algo", "quant_algo")


def shape_of(config: Mapping[str, Any], repo: str, key: str, faults: Faults) -> dict[str, Any]:
    """The shape of one model; each field that is missing or no number is a fault under `key`.repo.

    A model that also sees or hears keeps the numbers of its text part under `text_config`. Sizes are in elements.
    """
    inner = config.get("text_config")
    text = inner if isinstance(inner, dict) else config
    shape: dict[str, Any] = {}
    kind = config.get("model_type")
    if isinstance(kind, str) and kind:
        shape["model_type"] = kind
    else:
        faults.add(f"{key}.repo", repo, "a config.json with model_type, a word", OTHER)
    for name in _COUNTS:
        value = text.get(name, config.get(name))
        if type(value) is not int or not 0 < value < 1 << 40:
            found = "lacks it" if value is None else f"has {value!r}"
            allowed = f"a config.json with {name}, a whole number; it {found}"
            faults.add(f"{key}.repo", repo, allowed, OTHER)
        else:
            shape[name] = value
    heads = shape.get("num_attention_heads")
    derived = {"num_key_value_heads": heads, "head_dim": heads and shape.get("hidden_size", 0) // heads}
    for name in _DERIVED:
        value = text.get(name)
        if type(value) is int and value > 0:
            shape[name] = value
        elif derived.get(name):
            shape[name] = derived[name]
    shape |= {name: text[name] for name in _KEPT if _plain(text.get(name))}
    dtype = text.get("dtype") or text.get("torch_dtype") or config.get("dtype") or config.get("torch_dtype")
    if isinstance(dtype, str):
        shape["dtype"] = dtype
    quantised = config.get("quantization_config") or text.get("quantization_config")
    if isinstance(quantised, dict):
        shape["quantization"] = {name: quantised[name] for name in _QUANTISED if _plain(quantised.get(name))}
    architectures = config.get("architectures")
    if isinstance(architectures, list) and architectures and isinstance(architectures[0], str):
        shape["architecture"] = architectures[0]
    return shape


def _plain(value: object) -> bool:
    """A number, a word, a truth, or a flat list of those: nothing that could be of any size."""
    if isinstance(value, list):
        return 0 < len(value) <= 1024 and all(isinstance(item, int | str) for item in value)
    return isinstance(value, int | str) and len(str(value)) < 100


def block_size(config: Mapping[str, Any]) -> int | None:
    """How many tokens a block drafter was made for, the known one included."""
    inner = config.get("dflash_config")
    value = config.get("block_size", inner.get("block_size") if isinstance(inner, dict) else None)
    return value if type(value) is int and value > 1 else None


def depth_faults(method: str, tokens: int, shape: Mapping[str, Any], drafter: Mapping[str, Any] | None) -> list[Fault]:
    """Whether a drafter was made for so many tokens. vLLM takes any number, and drafts worse without a word."""
    key = "speculation.tokens"
    block = block_size(drafter) if drafter is not None and method == "dflash" else None
    if drafter is not None and block:
        exact = "DFlash2DraftModel" in (drafter.get("architectures") or [])
        if tokens > block - 1 or (exact and tokens != block - 1):
            allowed = f"{block - 1}{'' if exact else ' or fewer'}: the drafter's block size of {block} minus 1"
            return [Fault(key, tokens, allowed, EDIT)]
    heads = shape.get("mtp_num_hidden_layers", shape.get("num_nextn_predict_layers"))
    if method == "mtp" and type(heads) is int and tokens > heads > 0 and tokens % heads:
        return [Fault(key, tokens, f"a multiple of {heads}, the model's own prediction layers", EDIT)]
    if method == "mtp" and heads == 0:
        return [Fault("speculation.method", method, "another method: this model has no prediction layers", EDIT)]
    return []


def code_faults(config: Mapping[str, Any], repo: str, key: str) -> list[Fault]:
    """Code of yet another repository: at the start nothing may be fetched, and no commit of it is pinned."""
    mapped = config.get("auto_map")
    values = [v for value in mapped.values() for v in (value if isinstance(value, list) else [value])] if isinstance(
        mapped, dict
    ) else []  # fmt: skip
    foreign = sorted({v.partition("--")[0] for v in values if isinstance(v, str) and "--" in v})
    if not foreign:
        return []
    allowed = f"code in the repository itself; it names code of {', '.join(foreign)}, at no commit"
    return [Fault(f"{key}.repo", repo, allowed, "use a repository that brings its own code, or none")]
