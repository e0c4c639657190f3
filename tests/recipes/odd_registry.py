"""A registry on loopback that answers as it is told: what a well-made one never does, and logins by token."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.recipes.loopback import listening


@dataclass
class Odd:
    """Bodies by path below the repository (`/manifests/v1`), and what is wrong with the answers."""

    bodies: dict[str, bytes] = field(default_factory=dict)
    digest_header: str | None = ""  # None: there is none; else what every answer says, "" for the truth
    trouble: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    token_for: str | None = None  # Bearer logins: user:password, or "" for anyone
    realm: str = ""
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    host: str = ""

    def add(self, tag: str, manifest: dict[str, Any], config: dict[str, Any] | None = None) -> str:
        """A manifest under a tag and its digest, with its config; returns the digest."""
        if config is not None:
            body = json.dumps(config).encode()
            digest = "sha256:" + hashlib.sha256(body).hexdigest()
            self.bodies[f"/blobs/{digest}"] = body
            manifest = manifest | {"config": {"digest": digest, "size": len(body)}}
        body = json.dumps(manifest).encode()
        digest = "sha256:" + hashlib.sha256(body).hexdigest()
        self.bodies[f"/manifests/{tag}"] = self.bodies[f"/manifests/{digest}"] = body
        return digest


class _Handler(BaseHTTPRequestHandler):
    odd: Odd

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.odd.asked.append((f"{self.path}?{sent}", None))
        self.answer(200, b'{"access_token": "t0ken"}')

    def do_GET(self) -> None:
        odd, authorization = self.odd, self.headers.get("Authorization")
        odd.asked.append((self.path, authorization))
        if odd.trouble:
            self.answer(odd.trouble[0][0], b"", odd.trouble.pop(0)[1])
        elif self.path.startswith("/token"):
            basic = "Basic " + base64.b64encode((odd.token_for or "").encode()).decode()
            good = not odd.token_for or authorization == basic
            self.answer(200 if good else 401, b'{"token": "t0ken"}' if good else b"{}")
        elif odd.token_for is not None and authorization != "Bearer t0ken":
            realm = odd.realm or f"http://{odd.host}/token"
            challenge = f'Bearer realm="{realm}",service="here",scope="repository:a/b:pull"'
            self.answer(401, b"", {"WWW-Authenticate": challenge})
        else:
            body = odd.bodies.get(self.path.removeprefix("/v2/a/b"))
            truth = "sha256:" + hashlib.sha256(body or b"").hexdigest()
            said = {} if odd.digest_header is None else {"Docker-Content-Digest": odd.digest_header or truth}
            self.answer(404 if body is None else 200, body or b"", said)

    def answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if "Content-Length" not in (headers or {}):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextlib.contextmanager
def serving(odd: Odd) -> Iterator[Odd]:
    """The registry, on a free port of loopback until the block ends."""
    with listening(_Handler, odd=odd) as port:
        odd.host = f"127.0.0.1:{port}"
        yield odd
