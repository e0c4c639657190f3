"""From an image's name to its bits: index and platform digests, bytes to fetch, the CUDA it asks for."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .registry_http import MAKE_SURE, RegistryHttp
from .sources import SHA256, ImageRef

if TYPE_CHECKING:
    from .model import Platform

INDEXES = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
MANIFESTS = ("application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json")
ANY = ", ".join(INDEXES + MANIFESTS)
FIRST = "linux/amd64"  # whose config says what the image asks of a machine, where the image has it
MOST_PLATFORMS = 32
_DEFAULT_VARIANTS = {"linux/arm64/v8": "linux/arm64"}


@dataclass(frozen=True)
class ResolvedImage:
    """An image's bits: its reference (the index where there is one), each platform's, and `{"cuda": ">=13.0"}`."""

    ref: ImageRef
    platforms: dict[str, Platform]
    requires: dict[str, str]


def resolve_image(registry: RegistryHttp) -> ResolvedImage:
    """Everything a lock says of an image: one request for the index, one a platform, one for a config.

    Raises RecipeError for what is no image for Linux, and for every body that is not what its hash says.
    """
    from .model import Platform

    top, digest = _manifest(registry, registry.image.wanted)
    ref = ImageRef(registry.image.name, digest.removeprefix("sha256:"))
    if "manifests" not in top:
        config = _blob(registry, _digest(registry, top.get("config")))
        name = _platform_name(config)
        found = {name: (top, digest)} if name else {}
    else:
        found = {n: _manifest(registry, d) for n, d in _listed(registry, top).items()}
        config = {}
    if not found:
        registry.refuse("an image with a Linux platform in it", "name another image")
    platforms = {name: Platform(digest=d, bytes=_bytes(registry, m)) for name, (m, d) in found.items()}
    if not config:
        main = found.get(FIRST) or next(iter(found.values()))
        config = _blob(registry, _digest(registry, main[0].get("config")))
    return ResolvedImage(ref, platforms, requires_of(config))


def _manifest(registry: RegistryHttp, wanted: str) -> tuple[dict[str, Any], str]:
    """A manifest or index by tag or digest, and the digest of its bytes."""
    body, said = registry.get(f"/manifests/{wanted}", ANY)
    digest = "sha256:" + hashlib.sha256(body).hexdigest()
    for claim, whose in ((wanted, "asked for"), (said or "", "its Docker-Content-Digest says")):
        if claim.startswith("sha256:") and claim != digest:
            registry.refuse(f"a body with the hash {whose}: {claim}; the body gives {digest}", "pin again")
    data = registry.object(body)
    if data.get("schemaVersion") != 2 or ("manifests" not in data and "layers" not in data):
        registry.refuse("an image manifest or index of schema 2", MAKE_SURE)
    return data, digest


def _blob(registry: RegistryHttp, digest: str) -> dict[str, Any]:
    body, _ = registry.get(f"/blobs/{digest}", "*/*")
    if digest != (found := "sha256:" + hashlib.sha256(body).hexdigest()):
        registry.refuse(f"a config with the hash its manifest says: {digest}; the body gives {found}", "pin again")
    return registry.object(body)


def _digest(registry: RegistryHttp, descriptor: object) -> str:
    digest = descriptor.get("digest") if isinstance(descriptor, dict) else None
    if not isinstance(digest, str) or not SHA256.fullmatch(digest):
        registry.refuse("a manifest whose parts are named by sha256:<64 hex>", MAKE_SURE)
    return digest


def _listed(registry: RegistryHttp, index: dict[str, Any]) -> dict[str, str]:
    """Platform -> digest of an index, attestations and other systems left out; of two alike the first counts."""
    entries = index["manifests"] if isinstance(index["manifests"], list) else []
    found: dict[str, str] = {}
    for entry in entries:
        platform = entry.get("platform") if isinstance(entry, dict) else None
        if isinstance(platform, dict) and (name := _platform_name(platform)):
            found.setdefault(name, _digest(registry, entry))
    if len(found) > MOST_PLATFORMS:
        registry.refuse(f"an index of at most {MOST_PLATFORMS} platforms", MAKE_SURE)
    return dict(sorted(found.items()))


def _platform_name(platform: Mapping[str, Any]) -> str | None:
    """`linux/amd64`, `linux/arm/v7`; None for other systems and for `unknown/unknown`, which marks attestations."""
    parts = [platform.get("os"), platform.get("architecture"), platform.get("variant")]
    words = [part for part in parts if isinstance(part, str) and re.fullmatch(r"[a-z0-9._-]+", part)]
    if len(words) < 2 or words[0] != "linux" or words[1] == "unknown":
        return None
    return _DEFAULT_VARIANTS.get("/".join(words), "/".join(words))


def _bytes(registry: RegistryHttp, manifest: dict[str, Any]) -> int:
    """Bytes to fetch: the layers as they are compressed, and the config."""
    parts = manifest["layers"] if isinstance(manifest.get("layers"), list) else []
    sizes = [part.get("size") if isinstance(part, dict) else None for part in [*parts, manifest.get("config")]]
    if not all(type(size) is int and 0 <= size < 1 << 50 for size in sizes):
        registry.refuse("a manifest that says every layer's size", MAKE_SURE)
    return sum(size for size in sizes if size is not None)


def requires_of(config: Mapping[str, Any]) -> dict[str, str]:
    """What an image asks of the driver: `{"cuda": ">=13.0"}` from NVIDIA_REQUIRE_CUDA, else from CUDA_VERSION.

    The first word of NVIDIA_REQUIRE_CUDA is the rule; its further groups name older drivers that may do all the same.
    """
    inner = config.get("config")
    listed = inner.get("Env") if isinstance(inner, dict) else None
    pairs = (item.partition("=") for item in listed or [] if isinstance(item, str)) if isinstance(listed, list) else ()
    env = {name: value for name, _, value in pairs}
    if match := re.match(r"\s*cuda>=(\d+\.\d+)", env.get("NVIDIA_REQUIRE_CUDA", "")):
        return {"cuda": f">={match[1]}"}
    if match := re.match(r"(\d+\.\d+)", env.get("CUDA_VERSION", "")):
        return {"cuda": f">={match[1]}"}
    return {}
