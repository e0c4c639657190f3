"""Logins for image registries, from where docker and podman keep them. Nothing here is ever printed."""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_HELPER_S = 20
_HUB_KEYS = ("https://index.docker.io/v1/", "index.docker.io", "docker.io", "registry-1.docker.io")


@dataclass(frozen=True)
class Login:
    """A user's name and password; or, with no name, a token that is exchanged for another."""

    user: str
    password: str = field(repr=False)
    identity: bool = False


def files(env: Mapping[str, str]) -> Iterator[Path]:
    """Where a login may be kept, the likeliest first."""
    home = Path(env.get("HOME") or "/nonexistent")
    yield Path(env.get("DOCKER_CONFIG") or home / ".docker") / "config.json"
    if chosen := env.get("REGISTRY_AUTH_FILE"):
        yield Path(chosen)
    if runtime := env.get("XDG_RUNTIME_DIR"):
        yield Path(runtime) / "containers" / "auth.json"
    yield Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "containers" / "auth.json"


def find_login(registry: str, repository: str, env: Mapping[str, str] = os.environ) -> Login | None:
    """The login for a registry, the narrowest entry first as podman has it; None where there is none.

    Files that cannot be read, and helpers that fail, are as good as absent: the registry then says what it lacks.
    """
    for path in files(env):
        try:
            data = json.loads(path.read_bytes())
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(data, dict) and (login := _in_file(data, registry, repository, env)):
            return login
    return None


def _in_file(data: dict[str, Any], registry: str, repository: str, env: Mapping[str, str]) -> Login | None:
    auths, helpers = _map(data.get("auths")), _map(data.get("credHelpers"))
    for key in _keys(registry, repository):
        if helper := helpers.get(key):
            return _ask_helper(helper, key, env)
        if login := _entry(auths.get(key)):
            return login
    store = data.get("credsStore")
    if store:
        for key in _HUB_KEYS[:1] if registry in _HUB_KEYS else (registry, f"https://{registry}"):
            if login := _ask_helper(store, key, env):
                return login
    return None


def _keys(registry: str, repository: str) -> Iterator[str]:
    parts = repository.split("/")
    for count in range(len(parts), 0, -1):
        yield "/".join([registry, *parts[:count]])
    for name in _HUB_KEYS if registry in _HUB_KEYS else (registry,):
        yield name
        if not name.startswith("https://"):
            yield from (f"https://{name}", f"https://{name}/v1/", f"https://{name}/v2/", f"http://{name}")


def _entry(entry: object) -> Login | None:
    found = _map(entry)
    if token := found.get("identitytoken"):
        return Login("", str(token), identity=True)
    try:
        user, colon, password = base64.b64decode(str(found.get("auth") or ""), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None
    return Login(user, password.rstrip("\0")) if colon and user else None


def _ask_helper(name: object, server: str, env: Mapping[str, str]) -> Login | None:
    if not isinstance(name, str) or not re.fullmatch(r"[\w.-]+", name):
        return None
    try:
        done = subprocess.run(
            [f"docker-credential-{name}", "get"], input=server.encode(), env=dict(env), capture_output=True,
            timeout=_HELPER_S, check=True,
        )  # fmt: skip
        said = _map(json.loads(done.stdout))
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    user, secret = said.get("Username"), said.get("Secret")
    if not isinstance(user, str) or not isinstance(secret, str) or not secret:
        return None
    return Login("", secret, identity=True) if user == "<token>" else Login(user, secret)


def _map(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
