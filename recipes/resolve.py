"""From a recipe to its lock: every wish asked of where it comes from, every fault in one message."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .faults import Fault, Faults, RecipeError
from .locks import build_lock
from .sources import HubRef

if TYPE_CHECKING:
    from .hub import Hub, HubRepo
    from .model import Lock, LockFile, Platform, Recipe, Source, Sources
    from .sources import Ref

    # A reference, its platforms, what it asks of a machine, and the files that matter inside a wheel.
    _Engine = tuple[Ref, dict[str, Platform], dict[str, str], tuple[LockFile, ...] | None]

PACKAGES = ("pypi:", "file:")


@dataclass
class Resolver:
    """Where wishes are asked for. `project` is the folder that `file:` is relative to; `token` is asked for once.

    `sleep` is called between tries; `wheels` has wheels that need no fetching; `endpoint` is the hub's, else that of
    HF_ENDPOINT. A resolver is for one pin: a repository is asked for once.
    """

    project: Path
    token: Callable[[], str | None] = lambda: None
    sleep: Callable[[float], None] = time.sleep
    wheels: Path | None = None
    endpoint: str | None = None
    _hub: Hub | None = field(default=None, init=False)

    @property
    def hub(self) -> Hub:
        if self._hub is None:
            from .hub import Hub

            self._hub = Hub(self.token(), self.endpoint, self.sleep)
        return self._hub

    def resolve(self, name: str, recipe: Recipe, recipe_sha256: str) -> Lock:
        """The lock of a recipe as the world is now. Raises RecipeError with all faults of all its parts."""
        from .wishes import recipe_faults

        with tempfile.TemporaryDirectory() as temporary:
            work = _Work(self, recipe, self.wheels or Path(temporary), Faults())
            work.faults.found += recipe_faults(recipe)
            engine, sources, shape = work.engine(), work.sources(), work.shape
        work.faults.raise_any()
        assert engine, "an engine that was not found has left a fault"
        assert sources, "sources that were not found have left a fault"
        ref, platforms, requires, files = engine
        return build_lock(name, recipe, recipe_sha256, str(ref), platforms, sources, requires, shape, files)


@dataclass
class _Work:
    """One pin's questions; what fails is noted, and the next is asked all the same."""

    resolver: Resolver
    recipe: Recipe
    wheels: Path
    faults: Faults
    shape: dict[str, Any] = field(default_factory=dict)

    def engine(self) -> _Engine | None:
        from .images import parse_image

        wish = self.recipe.engine
        try:
            if wish.package is not None:
                return self._package(wish.package, wish.version)
            from .registry import resolve_image
            from .registry_http import RegistryHttp

            image = parse_image(wish.image, "engine.image", "edit the recipe")
            found = resolve_image(RegistryHttp(image, sleep=self.resolver.sleep))
            return found.ref, found.platforms, found.requires, None
        except RecipeError as error:
            self.faults.extend(error)
            return None

    def _package(self, package: str, version: str) -> _Engine:
        from .model import Platform
        from .relock import PLATFORM, wheel, wheel_source
        from .sources import parse_ref

        path = wheel(self.wheels, package, version)
        source = wheel_source(path, package, version, lambda name: name.endswith((".py", ".so")))
        platform = Platform(digest="sha256:" + source.ref[-64:], bytes=path.stat().st_size)
        return parse_ref(source.ref), {PLATFORM: platform}, {}, source.files

    def sources(self) -> Sources | None:
        from .model import SameAs, Sources

        tokenizer: Source | SameAs | None = SameAs(same_as="weights")
        weights = self._weights()
        if self.recipe.tokenizer:
            tokenizer = self._tokenizer(self.recipe.tokenizer.repo, self.recipe.tokenizer.revision)
        drafter = self._drafter()
        if weights is None or tokenizer is None or self.faults.found:
            return None
        return Sources(weights=weights, tokenizer=tokenizer, drafter=drafter)

    def _weights(self) -> Source | None:
        model = self.recipe.model
        if model.repo.startswith(PACKAGES):
            from .relock import shape_of as shape_of_gguf

            source = self._packaged(model.repo, model.revision, "model")
            try:
                if source:
                    self.shape |= shape_of_gguf(source, model, self.wheels, self.resolver.project)
            except ImportError:
                self.faults.add(
                    "model.repo", model.repo, "the package gguf, which reads its header", "pip install gguf"
                )
            return source
        found = self._files(model.repo, model.revision, "model")
        if found and self._config(found[0]):
            from .shape import shape_of

            if config := self._read(found[0], "model"):
                self.shape |= shape_of(config, model.repo, "model", self.faults)
        elif found:  # a GGUF, whose numbers are in its own header: what the hub read of it
            known = {"model_type": "architecture", "max_position_embeddings": "context_length"}
            self.shape |= {ours: found[0].gguf[name] for ours, name in known.items() if found[0].gguf.get(name)}
        return found[1] if found else None

    def _packaged(self, repo: str, revision: str | None, key: str) -> Source | None:
        from .relock import package_source

        try:
            return package_source(repo, revision, self.wheels, self.resolver.project)
        except OSError as error:
            reason = error.strerror or str(error)
            mend = "make the file, or edit the recipe"
            self.faults.add(f"{key}.repo", repo, f"a file that can be read ({reason})", mend)
            return None

    def _tokenizer(self, repo: str, revision: str | None) -> Source | None:
        from .hub_files import tokenizer_of
        from .model import Source

        try:
            found = self.resolver.hub.at(repo, revision, "tokenizer")
            return Source(ref=str(HubRef(repo, found.commit)), files=tokenizer_of(found, "tokenizer"))
        except RecipeError as error:
            self.faults.extend(error)
            return None

    def _drafter(self) -> Source | None:
        """The drafter's own files; `mtp` and `ngram` have none. `mtp` runs at the target's place, so at its commit."""
        from .shape import depth_faults

        wish = self.recipe.speculation
        if wish is None:
            return None
        if wish.repo and wish.repo.startswith(PACKAGES):
            return self._packaged(wish.repo, wish.revision, "speculation")
        found = self._files(wish.repo, wish.revision, "speculation") if wish.repo else None
        config = self._read(found[0], "speculation") if found and self._config(found[0]) else None
        if config is not None and self.recipe.engine.name in ("vllm", "sglang"):
            self._once(depth_faults(wish.method, wish.tokens, self.shape, config))
        elif wish.method == "mtp":
            self._once(depth_faults(wish.method, wish.tokens, self.shape, None))
        return found[1] if found else None

    def _once(self, faults: list[Fault]) -> None:
        """Note what the adapter has not said already."""
        said = {fault.key for fault in self.faults.found}
        self.faults.found += [fault for fault in faults if fault.key not in said]

    def _files(self, repo: str, revision: str | None, key: str) -> tuple[HubRepo, Source] | None:
        """A repository at its commit, and those of its files that a serve needs."""
        from .hub_files import weights_of
        from .model import Source

        engine, code = self.recipe.engine.name, remote_code(self.recipe)
        try:
            found = self.resolver.hub.at(repo, revision, key)
            precision = self.recipe.model.precision
            files = weights_of(found, key, engine == "llamacpp", precision, code)
            return found, Source(ref=str(HubRef(repo, found.commit)), files=files)
        except RecipeError as error:
            self.faults.extend(error)
            return None

    def _config(self, repo: HubRepo) -> bool:
        if any(file.path == "config.json" for file in repo.files):
            return True
        if self.recipe.engine.name in ("vllm", "sglang") and not repo.gguf:
            mend = "name a repository or commit that has it"
            self.faults.add("model.repo", repo.repo, "a repository with a config.json", mend)
        return False

    def _read(self, repo: HubRepo, key: str) -> dict[str, Any]:
        from .shape import code_faults

        try:
            config = self.resolver.hub.json(repo, "config.json", key)
        except RecipeError as error:
            self.faults.extend(error)
            return {}
        if remote_code(self.recipe):
            self.faults.found += code_faults(config, repo.repo, f"{key}.repo")
        return config


def remote_code(recipe: Recipe) -> bool:
    """Whether the recipe lets a repository's own code run."""
    return any(arg.replace("_", "-").partition("=")[0] == "--trust-remote-code" for arg in recipe.args)


def exact(recipe: Recipe) -> bool:
    """Whether everything in a recipe is named exactly already: packages by version, and nothing to ask of a hub."""
    repos = [part.repo for part in (recipe.model, recipe.tokenizer, recipe.speculation) if part]
    return recipe.engine.package is not None and all(repo is None or repo.startswith(PACKAGES) for repo in repos)
