"""An image's name as people write it, taken apart."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from .faults import Fault, RecipeError

_IMAGE = re.compile(
    r"(?P<registry>localhost|[a-z0-9][a-z0-9-]*(?:\.[a-z0-9-]+)+|[a-z0-9][a-z0-9-]*(?=:\d))(?P<port>:\d{1,5})?"
    r"/(?P<repository>[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*)"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?",
    re.ASCII,
)
ALLOWED = "REGISTRY/REPOSITORY:TAG or REGISTRY/REPOSITORY@sha256:<64 hex>, the registry named (docker.io/…), lower-case"


@dataclass(frozen=True)
class Image:
    """`name` is registry and repository as written; a digest, where there is one, counts and not the tag."""

    registry: str
    repository: str
    tag: str | None
    digest: str | None

    @property
    def name(self) -> str:
        return f"{self.registry}/{self.repository}"

    @property
    def wanted(self) -> str:
        """What the registry is asked for: the digest, else the tag."""
        return self.digest or self.tag or "latest"

    @property
    def api(self) -> str:
        """Where the registry's own interface for this repository begins. Plain http on this machine only."""
        if self.registry in ("docker.io", "index.docker.io"):
            official = "" if "/" in self.repository else "library/"
            return f"https://registry-1.docker.io/v2/{official}{self.repository}"
        return f"{'http' if loopback(self.registry) else 'https'}://{self.registry}/v2/{self.repository}"


def loopback(host: str) -> bool:
    """Whether a host, with or without its port, is this machine itself."""
    name = host.rpartition(":")[0] if re.search(r":\d+$", host) else host
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


def parse_image(text: object, key: str, mend: str) -> Image:
    """An image's name taken apart. Raises RecipeError, one fault under `key`."""
    match = _IMAGE.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise RecipeError([Fault(key, text, ALLOWED, mend)])
    registry = match["registry"] + (match["port"] or "")
    return Image(registry, match["repository"], match["tag"], match["digest"])
