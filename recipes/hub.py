"""A repository of a hub at one commit, with all its files: one request where the hub lists sizes, else one a page."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import quote

from .faults import Fault, RecipeError
from .hub_http import TIMEOUT_S, HubHttp
from .sources import HUB_REPO

COMMIT = re.compile(r"[0-9a-f]{40}")
_PREFIX = re.compile(r"[0-9a-f]{4,39}")
ALLOWED_REPO = "ORG/NAME, a repository of the hub"
WHOLE = "write the whole commit in the recipe"
ELSEWHERE = "correct HF_ENDPOINT, or unset it"


@dataclass(frozen=True)
class HubFile:
    """One file as the hub lists it; nothing in it has been checked."""

    path: str
    size: object
    sha256: object
    git_sha1: object


@dataclass(frozen=True)
class HubRepo:
    """A repository at one commit. `gguf` is what the hub itself read from a GGUF's header, if anything."""

    repo: str
    commit: str
    gated: bool
    files: tuple[HubFile, ...]
    gguf: dict[str, Any]


class Hub(HubHttp):
    """What a pin asks a hub. Each (repository, revision) is asked for once: a branch cannot move within one pin."""

    def __init__(
        self, token: str | None = None, endpoint: str | None = None, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        super().__init__(token, endpoint, sleep)
        self._known: dict[tuple[str, str | None], HubRepo] = {}

    def at(self, repo: str, revision: str | None, key: str) -> HubRepo:
        """The repository at the one commit that a branch, tag, commit or its beginning means now.

        Raises RecipeError with faults under `key`.repo and `key`.revision. What is gated is also tried with the token.
        """
        if (repo, revision) not in self._known:
            found = self._known[repo, revision] = self._at(repo, revision, key)
            if found.gated:
                # A gated repository lists its files to everyone; only this says whether they may be fetched.
                url = f"{self.api.endpoint}/api/models/{repo}/auth-check"
                self.ask(lambda: self.body(url), repo, found.commit, key)
        return self._known[repo, revision]

    def _at(self, repo: str, revision: str | None, key: str) -> HubRepo:
        if not HUB_REPO.fullmatch(repo) or ".." in repo or "--" in repo:
            raise RecipeError([Fault(f"{key}.repo", repo, ALLOWED_REPO, "edit the recipe")])
        read = partial(self.api.model_info, repo, files_metadata=True, timeout=TIMEOUT_S)
        try:
            info = self.ask(partial(read, revision=revision or "main"), repo, revision, key)
        except RecipeError as error:
            if not (_PREFIX.fullmatch(revision or "") and error.faults[0].key.endswith(".revision")):
                raise
            # Some hubs take only whole commits: its history then says which one begins so.
            whole = self._whole(repo, revision or "", key, error)
            info = self.ask(partial(read, revision=whole), repo, whole, key)
        commit = _commit(info, repo, revision, key)
        files = [HubFile(f.rfilename, f.size, f.lfs and f.lfs.sha256, f.blob_id) for f in info.siblings or ()]
        if any(file.size is None for file in files):
            files = list(self._tree(repo, commit, key))  # a mirror that does not know `blobs=true`
        gguf = info.gguf if isinstance(info.gguf, dict) else {}
        return HubRepo(repo, commit, bool(info.gated), tuple(files), gguf)

    def _whole(self, repo: str, prefix: str, key: str, unknown: RecipeError) -> str:
        """The one commit of the main branch's history that begins with `prefix`."""
        url = f"{self.api.endpoint}/api/models/{repo}/commits/main"
        commits = {str(item.get("id")) for item in self.pages(url, repo, None, key)}
        found = sorted(c for c in commits if COMMIT.fullmatch(c) and c.startswith(prefix))
        if not found:
            raise unknown
        if len(found) > 1:
            allowed = f"the beginning of one commit; {len(found)} begin so: {', '.join(found[:3])}"
            raise RecipeError([Fault(f"{key}.revision", prefix, allowed, WHOLE)])
        return found[0]

    def _tree(self, repo: str, commit: str, key: str) -> Iterator[HubFile]:
        url = f"{self.api.endpoint}/api/models/{quote(repo)}/tree/{commit}?recursive=true"
        for item in self.pages(url, repo, commit, key):
            if item.get("type") == "file":
                lfs = item["lfs"] if isinstance(item.get("lfs"), dict) else {}
                yield HubFile(str(item.get("path")), lfs.get("size", item.get("size")), lfs.get("oid"), item.get("oid"))

    def json(self, repo: HubRepo, path: str, key: str) -> dict[str, Any]:
        """A small file of JSON at the repository's commit, checked by the hash that the listing has of it.

        The client's own download would answer from its cache, where a licence is not asked for again.
        """
        from huggingface_hub import hf_hub_url

        listed = next(file for file in repo.files if file.path == path)
        url = hf_hub_url(repo.repo, path, revision=repo.commit, endpoint=self.api.endpoint)
        body, _ = self.ask(lambda: self.body(url), repo.repo, repo.commit, key)
        git_sha1 = hashlib.sha1(b"blob %d\0" % len(body) + body, usedforsecurity=False).hexdigest()
        found, said = (
            (hashlib.sha256(body).hexdigest(), listed.sha256) if listed.sha256 else (git_sha1, listed.git_sha1)
        )
        if found != said:
            allowed = f"a {path} with the hash that its listing says, {said}, not {found}"
            raise RecipeError([Fault(f"{key}.repo", repo.repo, allowed, f"pin again, or {ELSEWHERE}")])
        try:
            data = json.loads(body)
        except (ValueError, RecursionError):
            data = None
        if not isinstance(data, dict):
            raise RecipeError([Fault(f"{key}.repo", repo.repo, f"a {path} that is a JSON map", "name another commit")])
        return data


def _commit(info: Any, repo: str, revision: str | None, key: str) -> str:
    """The commit that came, if what came is what was asked for."""
    commit, asked = info.sha, revision or ""
    if not isinstance(commit, str) or not COMMIT.fullmatch(commit):
        raise RecipeError([Fault(f"{key}.revision", commit, "a hub that names the whole commit", ELSEWHERE)])
    if info.id != repo:
        allowed = f"the repository's name of today, {info.id}"
        raise RecipeError([Fault(f"{key}.repo", repo, allowed, f"write {info.id} in the recipe")])
    if (_PREFIX.fullmatch(asked) or COMMIT.fullmatch(asked)) and not commit.startswith(asked):
        allowed = f"a commit: there it is the name of a branch or tag, which stands at {commit}"
        raise RecipeError([Fault(f"{key}.revision", revision, allowed, WHOLE)])
    return commit
