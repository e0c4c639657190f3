"""Images to digests: Debian's registry with real pushes, and one that answers as none should."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.recipes.faults import RecipeError
from sluicegate.recipes.images import Image, loopback, parse_image
from sluicegate.recipes.registry import ResolvedImage, requires_of, resolve_image
from sluicegate.recipes.registry_http import LARGEST, RegistryHttp
from sluicegate.recipes.registry_login import Login, find_login
from tests.recipes import image_registry, odd_registry
from tests.recipes.image_registry import PASSWORD, USER, Registry
from tests.recipes.odd_registry import Odd

CUDA = ["PATH=/bin", "CUDA_VERSION=13.0.2", "NVIDIA_REQUIRE_CUDA=cuda>=13.0 brand=unknown,driver>=535,driver<536"]
CONFIG = {"os": "linux", "architecture": "amd64", "config": {"Env": CUDA}}
LAYERS = {"schemaVersion": 2, "layers": [{"digest": "sha256:" + "a" * 64, "size": 100}]}


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    with image_registry.serving(tmp_path_factory.mktemp("registry")) as registry:
        yield registry


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    with image_registry.serving(tmp_path_factory.mktemp("private"), login=True) as registry:
        yield registry


@pytest.fixture
def odd() -> Iterator[Odd]:
    with odd_registry.serving(Odd()) as registry:
        yield registry


def resolve(text: str, env: dict[str, str] | None = None, slept: list[float] | None = None) -> ResolvedImage:
    image = parse_image(text, "engine.image", "edit the recipe")
    sleep = (slept if slept is not None else []).append
    return resolve_image(RegistryHttp(image, sleep=sleep, login=lambda r, p: find_login(r, p, env or {})))


def refused(text: str, env: dict[str, str] | None = None) -> str:
    with pytest.raises(RecipeError) as caught:
        resolve(text, env)
    assert len(str(caught.value).splitlines()) == 1
    assert PASSWORD not in str(caught.value)
    return str(caught.value)


def test_a_tag_becomes_the_indexs_digest_each_platforms_their_bytes_and_the_cuda_it_asks_for(real: Registry) -> None:
    pushed = real.push("team/engine", "v1", {"linux/amd64": CUDA, "linux/arm64": []})
    found = resolve(f"{real.host}/team/engine:v1")
    assert str(found.ref) == f"oci:{real.host}/team/engine@{pushed.digest}"
    assert {name: (p.digest, p.bytes) for name, p in found.platforms.items()} == {
        name: (pushed.platforms[name], pushed.sizes[name]) for name in ("linux/amd64", "linux/arm64")
    }
    assert found.requires == {"cuda": ">=13.0"}
    assert resolve(f"{real.host}/team/engine@{pushed.digest}") == found
    assert resolve(f"{real.host}/team/engine:moved@{pushed.digest}") == found


def test_an_image_for_one_platform_has_the_digest_of_its_manifest(real: Registry) -> None:
    pushed = real.push("team/single", "v1", {"linux/amd64": []}, index=False)
    found = resolve(f"{real.host}/team/single:v1")
    assert found.ref.sha256 == pushed.digest.removeprefix("sha256:")
    assert found.platforms["linux/amd64"].digest == pushed.digest
    assert found.requires == {}


def test_a_tag_or_repository_that_is_not_there_is_one_line(real: Registry) -> None:
    real.push("team/engine", "v1", {"linux/amd64": []})
    assert f"a tag or digest of {real.host}/team/engine that is there, not v2" in refused(f"{real.host}/team/engine:v2")
    assert "that is there, not latest" in refused(f"{real.host}/no/such")
    windows = real.push("team/windows", "v1", {"windows/amd64": []})
    assert windows.digest
    assert "an image with a Linux platform in it" in refused(f"{real.host}/team/windows:v1")


def auths(host: str, user: str, password: str) -> str:
    return json.dumps({"auths": {host: {"auth": base64.b64encode(f"{user}:{password}".encode()).decode()}}})


def test_a_private_image_needs_the_login_that_docker_podman_or_a_helper_keeps(
    private: Registry, tmp_path: Path
) -> None:
    pushed = private.push("team/engine", "v1", {"linux/amd64": CUDA})
    image = f"{private.host}/team/engine:v1"
    assert f"run `docker login {private.host}`" in refused(image)
    for name, env in (
        ("d/config.json", {"DOCKER_CONFIG": str(tmp_path / "d")}),
        ("home/.docker/config.json", {"HOME": str(tmp_path / "home")}),
        ("run/containers/auth.json", {"XDG_RUNTIME_DIR": str(tmp_path / "run")}),
        ("auth.json", {"REGISTRY_AUTH_FILE": str(tmp_path / "auth.json")}),
    ):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(auths(private.host, USER, PASSWORD))
        assert resolve(image, env).ref.sha256 == pushed.digest[7:]
        file.write_text(auths(private.host, USER, "wrong"))
        assert "a login that may read it" in refused(image, env)
        file.write_text("<<<<<<< HEAD")
        assert "docker login" in refused(image, env)


def test_a_credential_helper_is_asked_for_its_own_registry(private: Registry, tmp_path: Path) -> None:
    pushed = private.push("team/engine", "v1", {"linux/amd64": []})
    helper = tmp_path / "docker-credential-here"
    answer = json.dumps({"Username": USER, "Secret": PASSWORD})
    helper.write_text(f"#!/bin/sh\nread server; [ $server = {private.host} ] && echo '{answer}'\n")
    helper.chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "DOCKER_CONFIG": str(tmp_path)}
    for config in ({"credHelpers": {private.host: "here"}}, {"credsStore": "here"}):
        (tmp_path / "config.json").write_text(json.dumps(config))
        assert resolve(f"{private.host}/team/engine:v1", env).ref.sha256 == pushed.digest[7:]
    (tmp_path / "config.json").write_text(json.dumps({"credHelpers": {private.host: "../here"}}))
    assert "docker login" in refused(f"{private.host}/team/engine:v1", env)


def test_a_token_is_fetched_with_the_login_or_without_and_never_over_plain_http_from_afar(
    odd: Odd, tmp_path: Path
) -> None:
    digest = odd.add("v1", LAYERS, CONFIG)
    odd.token_for = ""
    assert resolve(f"{odd.host}/a/b:v1").ref.sha256 == digest[7:]
    assert [path for path, _ in odd.asked if "token" in path] == ["/token?service=here&scope=repository%3Aa%2Fb%3Apull"]
    odd.token_for = f"{USER}:{PASSWORD}"
    assert "docker login" in refused(f"{odd.host}/a/b:v1")
    (tmp_path / "config.json").write_text(auths(odd.host, USER, PASSWORD))
    assert resolve(f"{odd.host}/a/b:v1", {"DOCKER_CONFIG": str(tmp_path)}).ref.sha256 == digest[7:]
    (tmp_path / "config.json").write_text(json.dumps({"auths": {odd.host: {"identitytoken": "idt"}}}))
    assert resolve(f"{odd.host}/a/b:v1", {"DOCKER_CONFIG": str(tmp_path)}).ref.sha256 == digest[7:]
    assert any("grant_type=refresh_token&refresh_token=idt" in path for path, _ in odd.asked)
    odd.realm = "http://tokens.example.org/"
    assert "a token service over https" in refused(f"{odd.host}/a/b:v1")


def test_without_a_digest_header_the_bodys_hash_counts_and_a_wrong_body_or_header_is_refused(odd: Odd) -> None:
    digest = odd.add("v1", LAYERS, CONFIG)
    odd.digest_header = None
    assert resolve(f"{odd.host}/a/b:v1").ref.sha256 == digest[7:]
    odd.digest_header = "sha256:" + "f" * 64
    assert "its Docker-Content-Digest says: sha256:ffff" in refused(f"{odd.host}/a/b:v1")
    odd.digest_header = None
    odd.bodies[f"/manifests/{digest}"] += b" "
    assert f"a body with the hash asked for: {digest}" in refused(f"{odd.host}/a/b@{digest}")
    blob = next(path for path in odd.bodies if path.startswith("/blobs/"))
    odd.bodies[blob] = b"{}"
    assert "a config with the hash its manifest says" in refused(f"{odd.host}/a/b:v1")


def test_a_rate_limit_is_waited_for_and_a_long_one_is_told(odd: Odd) -> None:
    odd.add("v1", LAYERS, CONFIG)
    slept: list[float] = []
    odd.trouble = [(429, {"Retry-After": "9"}), (500, {})]
    assert resolve(f"{odd.host}/a/b:v1", slept=slept).platforms
    assert slept == [9.0, 1.0]
    odd.trouble = [(429, {"Retry-After": "21600"})]
    assert "HTTP 429; it wants 21600 s of rest; to mend: pin again later" in refused(f"{odd.host}/a/b:v1")
    odd.trouble = [(200, {"Content-Length": "10"})] * 4
    assert "the answer was cut" in refused(f"{odd.host}/a/b:v1")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"<html>", "a JSON map"),
        (b"[]", "a JSON map"),
        (b"{}", "an image manifest or index of schema 2"),
        (b'{"schemaVersion": 1, "layers": []}', "schema 2"),
        (b'{"schemaVersion": 2, "layers": []}', "named by sha256:<64 hex>"),
        (b'{"schemaVersion": 2, "manifests": {}}', "a Linux platform"),
        (b'{"schemaVersion": 2, "manifests": [1, {"platform": {"os": "linux", "architecture": "amd64"}}]}', "sha256:"),
        (b" " * (LARGEST + 1), "at most"),
    ],
)
def test_what_is_no_image_is_one_line(body: bytes, said: str, odd: Odd) -> None:
    odd.bodies["/manifests/v1"] = body
    assert said in refused(f"{odd.host}/a/b:v1")


def test_sizes_that_are_none_are_refused(odd: Odd) -> None:
    odd.add("v1", LAYERS | {"layers": [{"size": "9"}]}, CONFIG)
    assert "every layer's size" in refused(f"{odd.host}/a/b:v1")


def test_an_unreachable_registry_is_one_line() -> None:
    assert "an answer of 127.0.0.1:1: not reachable (connection refused)" in refused("127.0.0.1:1/a/b:v1")


@pytest.mark.parametrize(
    ("env", "requires"),
    [
        (CUDA, {"cuda": ">=13.0"}),
        (["CUDA_VERSION=12.9.1"], {"cuda": ">=12.9"}),
        (["NVIDIA_REQUIRE_CUDA=brand=tesla"], {}),
        (["X"], {}),
        ([7], {}),
        (None, {}),
    ],
)
def test_the_cuda_an_image_asks_for_is_in_its_environment(env: Any, requires: dict[str, str]) -> None:
    assert requires_of({"config": {"Env": env}}) == requires


@pytest.mark.parametrize(
    ("text", "image"),
    [
        ("docker.io/vllm/vllm-openai:v0.32.0", Image("docker.io", "vllm/vllm-openai", "v0.32.0", None)),
        ("localhost:5000/a:b", Image("localhost:5000", "a", "b", None)),
        (f"ghcr.io/a/b/c@sha256:{'0' * 64}", Image("ghcr.io", "a/b/c", None, f"sha256:{'0' * 64}")),
    ],
)
def test_an_images_name_is_taken_apart(text: str, image: Image) -> None:
    assert parse_image(text, "k", "m") == image


@pytest.mark.parametrize(
    "text", ["vllm/vllm-openai:v1", "ubuntu", "docker.io/A/b", "docker.io/a b", "docker.io/", "docker.io/a:", "", 7,
             "docker.io/a@sha256:0", "https://docker.io/a", "docker.io/../a", "docker.io/a\n"],
)  # fmt: skip
def test_a_name_that_is_no_image_is_refused(text: object) -> None:
    with pytest.raises(RecipeError, match="the registry named"):
        parse_image(text, "k", "m")


def test_docker_hub_is_asked_where_its_registry_is_and_plain_http_stays_on_this_machine() -> None:
    assert parse_image("docker.io/ubuntu:1", "k", "m").api == "https://registry-1.docker.io/v2/library/ubuntu"
    assert parse_image("ghcr.io/a/b:1", "k", "m").api == "https://ghcr.io/v2/a/b"
    assert parse_image("localhost:5000/a/b:1", "k", "m").api == "http://localhost:5000/v2/a/b"
    assert [loopback(h) for h in ("127.0.0.1:1", "localhost", "[::1]:5", "127.0.0.1.example.org", "10.0.0.1")] == [
        True, True, True, False, False,
    ]  # fmt: skip


def test_the_narrowest_login_of_docker_hub_is_found_under_the_key_docker_writes(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(auths("https://index.docker.io/v1/", "u", "p"))
    assert find_login("docker.io", "a/b", {"DOCKER_CONFIG": str(tmp_path)}) == Login("u", "p")
    assert find_login("ghcr.io", "a/b", {"DOCKER_CONFIG": str(tmp_path)}) is None
    assert "p'" not in repr(Login("u", "p"))


@settings(deadline=None)
@given(st.text() | st.from_regex(r"[a-z.:/@0-9]{0,40}"))
def test_junk_names_raise_nothing_but_a_recipe_error(text: str) -> None:
    try:
        image = parse_image(text, "k", "m")
    except RecipeError:
        return
    assert text.startswith(image.name)
