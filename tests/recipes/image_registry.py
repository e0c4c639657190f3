"""Debian's docker-registry on loopback, and pushing small images to it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests

from tests.skips import cannot_here

USER, PASSWORD = "someone", "open sesame"
_HTPASSWD = f"{USER}:$2b$04$zfOOtTHGMwL1YONDYNwgSug9L6P2iNYSRR/8etKHRd8R6vrMlcPq.\n"  # bcrypt of the password
_KEPT = Path(__file__).parents[2] / ".cache" / "tests" / "docker-registry"
INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


def program() -> str:
    """The registry's program: the machine's own, else Debian's, unpacked and not installed: no service starts."""
    if found := shutil.which("docker-registry"):
        return found
    kept = _KEPT / "usr" / "bin" / "docker-registry"
    if kept.is_file():
        return str(kept)
    if not shutil.which("apt-get"):
        cannot_here("docker-registry: no apt-get")
    _KEPT.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_KEPT.parent) as folder:
        download = ["apt-get", "download", "docker-registry"]
        done = subprocess.run(download, cwd=folder, capture_output=True, check=False)
        if done.returncode and os.geteuid() == 0:
            subprocess.run(["apt-get", "update"], capture_output=True, check=False)
            done = subprocess.run(download, cwd=folder, capture_output=True, check=False)
        packages = list(Path(folder).glob("*.deb"))
        if done.returncode or not packages:
            cannot_here("docker-registry: apt-get has none")
        subprocess.run(["dpkg-deb", "-x", str(packages[0]), f"{folder}/out"], check=True)
        with contextlib.suppress(OSError):  # another run was first
            os.rename(f"{folder}/out", _KEPT)
    return str(kept)


@dataclass
class Pushed:
    """An image as it was pushed: digests by platform, the index's, and bytes to fetch."""

    digest: str = ""
    platforms: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)


class Registry:
    """A running registry; `host` is how images name it."""

    def __init__(self, host: str, login: tuple[str, str] | None) -> None:
        self.host, self.login = host, login

    def push(self, repository: str, tag: str, platforms: dict[str, list[str]], index: bool = True) -> Pushed:
        """An image with a config, its Env as given, and two layers for each platform (`linux/amd64`)."""
        pushed, entries = Pushed(), []
        for platform, env in platforms.items():
            os_, _, arch = platform.partition("/")
            config = json.dumps({"os": os_, "architecture": arch, "config": {"Env": env}}).encode()
            blobs = [self.blob(repository, f"{repository} {platform} {n}".encode() * 99) for n in range(2)]
            config_digest = self.blob(repository, config)
            layers = [{"mediaType": LAYER, "digest": digest, "size": size} for digest, size in blobs]
            manifest = {
                "schemaVersion": 2, "mediaType": MANIFEST, "layers": layers,
                "config": {"mediaType": CONFIG, "digest": config_digest[0], "size": config_digest[1]},
            }  # fmt: skip
            body = json.dumps(manifest).encode()
            digest = pushed.platforms[platform] = self.manifest(repository, body, MANIFEST, None if index else tag)
            pushed.sizes[platform] = sum(size for _, size in blobs) + len(config)
            entries.append({"mediaType": MANIFEST, "digest": digest, "size": len(body),
                            "platform": {"os": os_, "architecture": arch}})  # fmt: skip
        pushed.digest = next(iter(pushed.platforms.values()))
        if index:
            attestation = entries[0] | {"platform": {"os": "unknown", "architecture": "unknown"}}
            whole = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [attestation, *entries]}
            pushed.digest = self.manifest(repository, json.dumps(whole).encode(), INDEX, tag)
        return pushed

    def blob(self, repository: str, body: bytes) -> tuple[str, int]:
        digest = "sha256:" + hashlib.sha256(body).hexdigest()
        start = self.send("POST", f"/v2/{repository}/blobs/uploads/")
        joint = "&" if "?" in start.headers["Location"] else "?"
        self.send("PUT", f"{start.headers['Location']}{joint}digest={digest}", data=body)
        return digest, len(body)

    def manifest(self, repository: str, body: bytes, kind: str, tag: str | None) -> str:
        digest = "sha256:" + hashlib.sha256(body).hexdigest()
        self.send("PUT", f"/v2/{repository}/manifests/{tag or digest}", data=body, headers={"Content-Type": kind})
        return digest

    def send(self, method: str, path: str, **options: Any) -> requests.Response:
        url = path if path.startswith("http") else f"http://{self.host}{path}"
        answer = requests.request(method, url, auth=self.login, timeout=20, **options)
        answer.raise_for_status()
        return answer


@contextlib.contextmanager
def serving(folder: Path, login: bool = False) -> Iterator[Registry]:
    """A registry that keeps what is pushed in `folder`, with a login where wanted, until the block ends."""
    name = program()
    for _ in range(5):  # the port may be taken between its choice and its use
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            host = f"127.0.0.1:{probe.getsockname()[1]}"
        config: dict[str, Any] = {
            "version": 0.1, "log": {"level": "error"}, "http": {"addr": host},
            "storage": {"filesystem": {"rootdirectory": str(folder / "store")}},
        }  # fmt: skip
        if login:
            (folder / "htpasswd").write_text(_HTPASSWD)
            config["auth"] = {"htpasswd": {"realm": "here", "path": str(folder / "htpasswd")}}
        (folder / "config.yml").write_text(json.dumps(config))
        with (folder / "log").open("ab") as log:
            process = subprocess.Popen([name, "serve", str(folder / "config.yml")], stdout=log, stderr=log)
        try:
            if _answers(host, process):
                yield Registry(host, (USER, PASSWORD) if login else None)
                return
        finally:
            process.terminate()
            process.wait()
    raise RuntimeError((folder / "log").read_text())


def _answers(host: str, process: subprocess.Popen[bytes]) -> bool:
    until = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < until:
        with contextlib.suppress(requests.RequestException):
            if requests.get(f"http://{host}/v2/", timeout=5).status_code in (200, 401):
                return process.poll() is None
        time.sleep(0.05)
    return False
