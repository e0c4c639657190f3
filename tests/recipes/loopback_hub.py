"""A hub on loopback that speaks as much of the Hugging Face API as the unmodified client asks for in a pin."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.recipes.loopback import listening

PAGE = 50


@dataclass(frozen=True)
class Big:
    """A file that is only listed: its size and sha256, as of one in LFS."""

    size: int
    sha256: str = "ab" * 32


@dataclass
class Repo:
    """Commits, newest first, each path -> content; branches and tags by name."""

    commits: dict[str, dict[str, bytes | Big]]
    refs: dict[str, str]
    gated: bool = False
    private: bool = False
    moved_to: str | None = None
    gguf: dict[str, Any] | None = None


@dataclass
class Hub:
    """What the hub has, whom it knows, and how it misbehaves; `asked` lists every request as `PATH?QUERY`."""

    repos: dict[str, Repo] = field(default_factory=dict)
    tokens: dict[str, set[str]] = field(default_factory=dict)  # token -> repositories whose licence it accepted
    trouble: list[tuple[int, dict[str, str], bytes]] = field(default_factory=list)  # answers that come first
    short: bool = True  # whether the beginning of a commit is taken for it
    blobs: bool = True  # whether a revision lists sizes
    next_host: str | None = None  # the host that links to further pages name
    wrong_bodies: bool = False
    moving: dict[str, list[str]] = field(default_factory=dict)  # branch -> where it stands after each look
    said: dict[str, Any] = field(default_factory=dict)  # laid over every revision's answer
    asked: list[str] = field(default_factory=list)
    sent_tokens: set[str] = field(default_factory=set)
    url: str = ""

    def add(self, name: str, files: dict[str, bytes | Big], commit: str = "", **more: Any) -> str:
        """A repository with one commit on main; returns the commit."""
        commit = commit or hashlib.sha1(name.encode()).hexdigest()
        self.repos[name] = Repo({commit: files}, {"main": commit}, **more)
        return commit


def model_files(config: dict[str, Any] | None = None, **more: bytes | Big) -> dict[str, bytes | Big]:
    """What a repository of a small transformer has, a pickle among it."""
    return {
        "config.json": json.dumps(config or CONFIG).encode(),
        "model-00001-of-00002.safetensors": Big(2_000_000_000, "01" * 32),
        "model-00002-of-00002.safetensors": Big(1_000_000_000, "02" * 32),
        "model.safetensors.index.json": b"{}",
        "tokenizer.json": Big(11_000_000, "03" * 32),
        "tokenizer_config.json": b'{"a": 1}',
        "generation_config.json": b"{}",
        "chat_template.jinja": b"{{ messages }}",
        "pytorch_model.bin": Big(3_000_000_000, "04" * 32),
        "README.md": b"# words",
        **more,
    }


CONFIG = {
    "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "num_hidden_layers": 4, "hidden_size": 64,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 128, "vocab_size": 384,
    "max_position_embeddings": 4096, "torch_dtype": "bfloat16", "mtp_num_hidden_layers": 1,
}  # fmt: skip
DRAFTER = CONFIG | {"architectures": ["DFlash2DraftModel"], "block_size": 8}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        hub, parts = self.hub, urlsplit(self.path)
        hub.asked.append(self.path)
        if hub.trouble:
            status, headers, body = hub.trouble.pop(0)
            self.answer(status, body, headers)
            return
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        if token:
            hub.sent_tokens.add(token)
            if token not in hub.tokens:
                self.refuse(401, None, "Invalid credentials in Authorization header")
                return
        path = unquote(parts.path)
        if match := re.fullmatch(r"/api/models/([^/]+/[^/]+)/(revision|tree|commits|auth-check)/?(.*)", path):
            repo = self.repo(match[1], token)
            if repo:
                getattr(self, match[2].replace("-", "_"))(match[1], repo, match[3], parse_qs(parts.query), token)
        elif match := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            repo = self.repo(match[1], token)
            if repo and self.open_to(match[1], repo, token):
                self.resolve(repo, match[2], match[3])
        else:
            self.refuse(404, None, "no such page")

    def repo(self, name: str, token: str) -> Repo | None:
        repo = self.hub.repos.get(name)
        if repo is None or (repo.private and name not in self.hub.tokens.get(token, ())):
            # The real hub says 401 to strangers, so that nobody learns which private repositories there are.
            self.refuse(404 if token else 401, "RepoNotFound" if token else None, "Repository not found")
            return None
        return repo

    def open_to(self, name: str, repo: Repo, token: str) -> bool:
        if not repo.gated or name in self.hub.tokens.get(token, ()):
            return True
        self.refuse(403 if token else 401, "GatedRepo", f"Access to model {name} is restricted.")
        return False

    def commit(self, repo: Repo, revision: str) -> str | None:
        if later := self.hub.moving.get(revision):
            return later.pop(0) if len(later) > 1 else later[0]
        found = repo.refs.get(revision) or (revision if revision in repo.commits else None)
        if found is None and self.hub.short and len(revision) >= 4:
            found = next((c for c in repo.commits if c.startswith(revision)), None)
        if found is None:
            self.refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return found

    def revision(self, name: str, repo: Repo, revision: str, query: dict[str, list[str]], _: str) -> None:
        if not (commit := self.commit(repo, revision)):
            return
        blobs = self.hub.blobs and query.get("blobs") == ["true"]
        siblings = [_sibling(path, content, blobs) for path, content in repo.commits[commit].items()]
        said = {"id": repo.moved_to or name, "sha": commit, "gated": "auto" if repo.gated else False,
                "private": repo.private, "siblings": siblings, "gguf": repo.gguf}  # fmt: skip
        self.answer(200, json.dumps(said | self.hub.said).encode())

    def tree(self, name: str, repo: Repo, revision: str, query: dict[str, list[str]], _: str) -> None:
        if not (commit := self.commit(repo, revision)):
            return
        items = [_entry(path, content) for path, content in repo.commits[commit].items()]
        self.page(items, f"/api/models/{name}/tree/{revision}?recursive=true", query)

    def commits(self, name: str, repo: Repo, _: str, query: dict[str, list[str]], __: str) -> None:
        self.page([{"id": commit, "title": "t"} for commit in repo.commits], f"/api/models/{name}/commits/main?", query)

    def page(self, items: list[dict[str, Any]], again: str, query: dict[str, list[str]]) -> None:
        start = int(query.get("cursor", ["0"])[0])
        more = start + PAGE < len(items)
        host = self.hub.next_host or self.hub.url
        link = {"Link": f'<{host}{again}&cursor={start + PAGE}>; rel="next"'} if more else {}
        self.answer(200, json.dumps(items[start : start + PAGE]).encode(), link)

    def auth_check(self, name: str, repo: Repo, _: str, __: object, token: str) -> None:
        if self.open_to(name, repo, token):
            self.answer(200, b"{}")

    def resolve(self, repo: Repo, revision: str, path: str) -> None:
        if not (commit := self.commit(repo, revision)):
            return
        content = repo.commits[commit].get(path)
        if not isinstance(content, bytes):
            self.refuse(404, "EntryNotFound", "Entry not found")
            return
        body = content + b" " if self.hub.wrong_bodies else content
        self.answer(200, body, {"X-Repo-Commit": commit, "ETag": f'"{_git_sha1(content)}"'})

    def refuse(self, status: int, code: str | None, text: str) -> None:
        headers = {"X-Error-Message": text} | ({"X-Error-Code": code} if code else {})
        self.answer(status, json.dumps({"error": text}).encode(), headers)

    def answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        if "Content-Length" in (headers or {}):
            self.close_connection = True  # a body cut short ends with the connection
        else:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _git_sha1(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _sibling(path: str, content: bytes | Big, blobs: bool) -> dict[str, Any]:
    if not blobs:
        return {"rfilename": path}
    if isinstance(content, bytes):
        return {"rfilename": path, "size": len(content), "blobId": _git_sha1(content)}
    lfs = {"sha256": content.sha256, "size": content.size, "pointerSize": 134}
    return {"rfilename": path, "size": content.size, "blobId": "0" * 40, "lfs": lfs}


def _entry(path: str, content: bytes | Big) -> dict[str, Any]:
    if isinstance(content, bytes):
        return {"type": "file", "path": path, "size": len(content), "oid": _git_sha1(content)}
    lfs = {"oid": content.sha256, "size": content.size, "pointerSize": 134}
    return {"type": "file", "path": path, "size": content.size, "oid": "0" * 40, "lfs": lfs}


@contextlib.contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    """The hub, listening on a free port of loopback until the block ends."""
    with listening(_Handler, hub=hub) as port:
        hub.url = f"http://127.0.0.1:{port}"
        yield hub
