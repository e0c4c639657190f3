"""Which files of a repository a serve needs: weights that are data, and what reads them. Never a pickle."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from .faults import Fault, RecipeError
from .sources import ALLOWED_PATH, safe_path

if TYPE_CHECKING:
    from .hub import HubFile, HubRepo
    from .model import LockFile

ALLOWED_WEIGHTS = "safetensors or GGUF: pickles (.bin, .pt) run code when they are read"
_CONFIG = re.compile(
    r"config\.json|generation_config\.json|(model|adapter|diffusion_pytorch_model)?\w*\.safetensors\.index\.json"
    r"|(hf_)?quant(ize|ization)?_config\.json|(pre|video_pre|image_)?processor_config\.json"
    r"|preprocessor_config\.json|params\.json|kv_cache_scales\.json"
)
_TOKENIZER = re.compile(
    r"tokenizer\w*\.json|tokenizer\.model(\.v\d+)?|tokenizer_config\.json|special_tokens_map\.json|added_tokens\.json"
    r"|vocab\.(json|txt)|merges\.txt|spiece\.model|sentencepiece\.bpe\.model|\w*\.tiktoken|tekken\.json"
    r"|chat_template\.(jinja|json)|additional_chat_templates/[\w.-]+\.jinja"
)
_PICKLED = re.compile(r".*\.(bin|pt|pth|pkl|pickle|ckpt|h5|msgpack|npz|onnx)", re.IGNORECASE)
_SPLIT = re.compile(r"(.*)-\d{5}-of-(\d{5})\.gguf", re.IGNORECASE)


def weights_of(repo: HubRepo, key: str, gguf: bool, precision: str, code: bool) -> tuple[LockFile, ...]:
    """The files of weights and what reads them; `gguf`: whether the engine takes GGUF alone.

    Of several GGUF the one whose name has the recipe's precision. `code`: the repository's Python files too. Raises
    RecipeError with every fault.
    """
    top = [file for file in repo.files if "/" not in file.path]
    tensors = [f for f in top if f.path.endswith(".safetensors")]
    if any(f.path.startswith("model") for f in tensors):
        # The same weights once more, in their makers' own layout.
        tensors = [f for f in tensors if not f.path.startswith("consolidated")]
    if gguf or not tensors:
        tensors = _one_gguf(repo, key, precision)
    if not tensors:
        found = sorted(f.path for f in repo.files if _PICKLED.fullmatch(f.path))[:3]
        where = "in its top folder" if any(f.path.endswith(".safetensors") for f in repo.files) else "in it"
        shown = ", ".join(found) or f"{len(repo.files)} files, none of them weights"
        mend = "name a repository or commit that has them"
        raise RecipeError([Fault(f"{key}.repo", f"{repo.repo}: {shown}", f"{ALLOWED_WEIGHTS}, {where}", mend)])
    beside = [f for f in repo.files if _CONFIG.fullmatch(f.path) or _TOKENIZER.fullmatch(f.path)]
    beside += [f for f in top if code and f.path.endswith(".py")]
    return lock_files([*tensors, *beside], repo, key)


def tokenizer_of(repo: HubRepo, key: str) -> tuple[LockFile, ...]:
    """The files of a tokenizer that has a repository of its own; its config.json says what kind it is."""
    found = [f for f in repo.files if _TOKENIZER.fullmatch(f.path)]
    if not found:
        raise RecipeError([Fault(f"{key}.repo", repo.repo, "a repository with a tokenizer in it", "edit the recipe")])
    return lock_files([*found, *(f for f in repo.files if f.path == "config.json")], repo, key)


def _one_gguf(repo: HubRepo, key: str, precision: str) -> list[HubFile]:
    """The one GGUF that is meant, or the parts of one; an image encoder beside it is none."""
    models: dict[str, list[HubFile]] = {}
    for file in repo.files:
        name = file.path.rpartition("/")[2].lower()
        if name.endswith(".gguf") and not name.startswith("mmproj"):
            split = _SPLIT.fullmatch(file.path)
            models.setdefault(split[1] if split else file.path, []).append(file)
    if len(models) > 1:
        word = re.compile(rf"(?<![a-z0-9]){re.escape(precision.lower())}(?![a-z0-9_])")
        named = {name: files for name, files in models.items() if word.search(name.lower())}
        if len(named) != 1:
            there = ", ".join(sorted(models)[:8]) + (", …" if len(models) > 8 else "")
            allowed = f"what is in the name of exactly one GGUF of {repo.repo}: {there}"
            raise RecipeError([Fault(f"{key}.precision", precision, allowed, "edit the recipe")])
        models = named
    found = next(iter(models.values()), [])
    if (split := _SPLIT.fullmatch(found[0].path) if found else None) and len(found) != int(split[2]):
        allowed = f"all {int(split[2])} parts of {split[1]}; the repository has {len(found)}"
        raise RecipeError([Fault(f"{key}.repo", repo.repo, allowed, "name a commit that has them all")])
    return found


def lock_files(files: Iterable[HubFile], repo: HubRepo, key: str) -> tuple[LockFile, ...]:
    """Files as a lock has them, by path. Raises RecipeError with a fault for each that cannot be checked."""
    from .model import LockFile

    faults: list[Fault] = []
    found = []
    for file in sorted({file.path: file for file in files}.values(), key=lambda file: file.path):
        sha256, git_sha1 = file.sha256, None if file.sha256 else file.git_sha1
        if not safe_path(file.path):
            faults.append(Fault(f"{key}.repo", file.path, ALLOWED_PATH, f"name another commit of {repo.repo}"))
        elif not _hex(sha256 or git_sha1, 64 if sha256 else 40) or not _size(file.size):
            faults.append(Fault(f"{key}.repo", file.path, "a file with its size and hash", "correct HF_ENDPOINT"))
        else:
            known = {"path": file.path, "bytes": file.size, "sha256": sha256, "git_sha1": git_sha1}
            found.append(LockFile.model_validate(known))  # it takes what the lines above have looked at
    if faults:
        raise RecipeError(faults)
    return tuple(found)


def _hex(text: object, length: int) -> bool:
    return isinstance(text, str) and len(text) == length and re.fullmatch(r"[0-9a-f]+", text) is not None


def _size(value: object) -> bool:
    return type(value) is int and 0 <= value < 1 << 60
