"""Asking a hub, through its own client as it is, on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sluicegate.recipes.faults import RecipeError
from sluicegate.recipes.hub import Hub, HubRepo
from sluicegate.recipes.hub_files import tokenizer_of, weights_of
from tests.recipes import loopback_hub
from tests.recipes.loopback_hub import PAGE, Big, model_files

ORG = "org/model"


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[loopback_hub.Hub]:
    for name in ("HF_TOKEN", "HF_ENDPOINT", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "none"))
    with loopback_hub.serving(loopback_hub.Hub()) as hub:
        yield hub


def client(there: loopback_hub.Hub, token: str | None = None, slept: list[float] | None = None) -> Hub:
    return Hub(token, there.url, (slept if slept is not None else []).append)


def refused(there: loopback_hub.Hub, revision: str | None = None, token: str | None = None, repo: str = ORG) -> str:
    with pytest.raises(RecipeError) as caught:
        client(there, token).at(repo, revision, "model")
    assert len(caught.value.faults) == 1
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_branch_becomes_a_commit_with_every_size_and_hash_in_one_request(there: loopback_hub.Hub) -> None:
    commit = there.add(ORG, model_files())
    hub = client(there)
    repo = hub.at(ORG, None, "model")
    assert hub.at(ORG, None, "model") is repo
    assert repo.commit == commit
    assert there.asked == [f"/api/models/{ORG}/revision/main?blobs=true"] or there.asked == [
        f"/api/models/{ORG}?blobs=true"
    ]
    files = {file.path: file for file in weights_of(repo, "model", gguf=False, precision="bf16", code=False)}
    assert files["model-00001-of-00002.safetensors"].sha256 == "01" * 32
    assert files["config.json"].git_sha1
    assert sorted(files) == sorted(set(model_files()) - {"pytorch_model.bin", "README.md"})


def test_a_repository_of_a_thousand_files_takes_one_request_and_a_mirror_without_sizes_one_a_page(
    there: loopback_hub.Hub,
) -> None:
    many = {f"model-{n:05}-of-01000.safetensors": Big(n, f"{n:064x}") for n in range(1, 1001)}
    there.add(ORG, model_files(**many))
    whole = client(there).at(ORG, "main", "model")
    assert len(there.asked) == 1
    assert len(weights_of(whole, "model", gguf=False, precision="fp8", code=False)) > 1000
    there.asked.clear()
    there.blobs = False
    assert client(there).at(ORG, "main", "model").files == whole.files
    assert len(there.asked) == 1 + -(-len(whole.files) // PAGE)


@pytest.mark.parametrize("short", [True, False])
def test_the_beginning_of_a_commit_becomes_the_whole_one_whether_or_not_the_hub_itself_does_that(
    short: bool, there: loopback_hub.Hub
) -> None:
    commit = there.add(ORG, model_files(), "017b9c7" + "a" * 33)
    for n in range(120):
        there.repos[ORG].commits[f"{n:040x}"] = {}
    there.short = short
    assert client(there).at(ORG, "017b9c7", "model").commit == commit


def test_a_beginning_of_two_commits_or_of_none_is_refused(there: loopback_hub.Hub) -> None:
    there.add(ORG, model_files(), "abcd" + "1" * 36)
    there.repos[ORG].commits["abcd" + "2" * 36] = {}
    there.short = False
    assert "model.revision: found 'abcd'; allowed: the beginning of one commit; 2 begin so: abcd111" in refused(
        there, "abcd"
    )
    assert "a branch, tag or commit that org/model has" in refused(there, "beef")
    assert "a branch, tag or commit that org/model has" in refused(there, "no-such-branch")
    assert "a branch, tag or commit that org/model has" in refused(there, "f" * 40)


def test_a_branch_named_like_a_commit_is_not_taken_for_one(there: loopback_hub.Hub) -> None:
    commit = there.add(ORG, model_files())
    there.repos[ORG].refs["c0ffee"] = commit
    assert f"it is the name of a branch or tag, which stands at {commit}" in refused(there, "c0ffee")


def test_a_branch_that_moves_between_two_looks_is_looked_at_once(there: loopback_hub.Hub) -> None:
    first = there.add(ORG, model_files())
    there.repos[ORG].commits["f" * 40] = model_files({"model_type": "other"})
    there.moving["main"] = [first, "f" * 40]
    hub = client(there)
    repo = hub.at(ORG, "main", "model")
    assert hub.json(repo, "config.json", "model")["model_type"] == "qwen3"
    assert hub.at(ORG, "main", "model").commit == first
    assert client(there).at(ORG, "main", "model").commit == "f" * 40


def test_gated_without_a_token_not_accepted_and_accepted_are_told_apart(there: loopback_hub.Hub) -> None:
    there.add(ORG, model_files(), gated=True)
    there.tokens = {"stranger": set(), "friend": {ORG}}
    said = refused(there)
    assert "a token: this repository is gated, and none was sent (401)" in said
    assert "set HF_TOKEN" in said
    said = refused(there, token="stranger")
    assert "a token whose owner has accepted its licence (403)" in said
    assert f"accept the licence at {there.url}/{ORG}" in said
    assert client(there, "friend").at(ORG, None, "model").gated
    assert "it refuses the one that was sent (401)" in refused(there, token="expired")


def test_missing_private_renamed_and_misnamed_repositories_are_told_apart(there: loopback_hub.Hub) -> None:
    there.tokens = {"stranger": set(), "friend": {ORG}}
    assert "a private one needs a token, and none was sent" in refused(there)
    assert "that is there and that the token may read" in refused(there, token="stranger")
    there.add(ORG, model_files(), private=True)
    assert "that is there and that the token may read" in refused(there, token="stranger")
    assert client(there, "friend").at(ORG, None, "model").commit
    there.add(ORG, model_files(), moved_to="org/new")
    assert "the repository's name of today, org/new" in refused(there)
    for name in ("model", "a/b/c", "../b", "a/..", "org/mo del", "", "hf:org/model", "a--b/c", "org/модель", "a/b\n"):
        assert "allowed: ORG/NAME" in refused(there, repo=name)


def test_a_rate_limit_is_waited_for_as_long_as_it_says_and_a_long_one_is_told(there: loopback_hub.Hub) -> None:
    there.add(ORG, model_files())
    slept: list[float] = []
    there.trouble = [(429, {"Retry-After": "7"}, b""), (503, {}, b""), (429, {"RateLimit": '"api";r=0;t=5'}, b"")]
    assert client(there, slept=slept).at(ORG, None, "model").commit
    assert slept == [7.0, 1.0, 5.0]
    there.trouble = [(429, {"Retry-After": "3600"}, b"")]
    assert "rate limit (HTTP 429); it wants 3600 s of rest; to mend: pin again later" in refused(there)
    there.trouble = [(502, {}, b"")] * 4
    assert "HTTP 502" in refused(there)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((200, {}, b"<html>"), "what a hub answers"),
        ((200, {}, b"[]"), "what a hub answers"),
        ((200, {}, b"{}"), "what a hub answers"),
        ((403, {}, b""), "a token with the right to read it (403)"),
        ((418, {}, b""), "HTTP 418"),
        ((200, {"Content-Length": "9999"}, b"{"), "not reachable"),
    ],
)
def test_what_no_hub_answers_is_one_line(answer: Any, said: str, there: loopback_hub.Hub) -> None:
    there.add(ORG, model_files())
    there.trouble = [answer] * 4
    assert said in refused(there)


@pytest.mark.parametrize("sha", [None, "017b9c7", 7, "main"])
def test_a_hub_that_does_not_name_the_whole_commit_is_refused(sha: object, there: loopback_hub.Hub) -> None:
    there.add(ORG, model_files())
    there.said = {"sha": sha}
    assert "a hub that names the whole commit" in refused(there)


@pytest.mark.usefixtures("there")
def test_an_unreachable_hub_and_one_over_plain_http_are_refused() -> None:
    closed = loopback_hub.Hub(url="http://127.0.0.1:1")
    assert "not reachable (connection refused)" in refused(closed)
    assert "http:// on this machine" in refused(loopback_hub.Hub(url="http://hub.example.org"))


def test_pages_are_not_followed_to_another_host_and_the_token_stays(there: loopback_hub.Hub) -> None:
    there.add(ORG, {f"{n}.safetensors": Big(1) for n in range(PAGE + 1)})
    there.tokens, there.blobs = {"mine": set()}, False
    with loopback_hub.serving(loopback_hub.Hub()) as other:
        there.next_host = other.url
        assert "not of 127.0.0.1" in refused(there, token="mine")
        assert other.asked == []


def test_a_small_file_that_is_not_what_its_listing_says_is_refused(there: loopback_hub.Hub) -> None:
    there.add(ORG, model_files())
    hub = client(there)
    repo = hub.at(ORG, None, "model")
    there.wrong_bodies = True
    with pytest.raises(RecipeError, match="with the hash that its listing says"):
        hub.json(repo, "config.json", "model")


def repo_of(files: dict[str, Any], there: loopback_hub.Hub) -> HubRepo:
    there.add(ORG, files)
    return client(there).at(ORG, None, "model")


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"pytorch_model.bin": Big(1), "config.json": b"{}"}, "pytorch_model.bin'; allowed: safetensors or GGUF"),
        ({"README.md": b""}, "1 files, none of them weights"),
        ({"sub/model.safetensors": Big(1)}, "in its top folder"),
        ({"model.safetensors": Big(-1)}, "with its size and hash"),
        ({"model.safetensors": Big(1, "xyz")}, "with its size and hash"),
        ({"a\\b.safetensors": Big(1)}, "no backslash"),
        ({"a\nb.safetensors": Big(1)}, "no control character"),
        ({"a-Q4_K_M.gguf": Big(1), "a-Q8_0.gguf": Big(1)}, "in the name of exactly one GGUF"),
        ({"a-00001-of-00003.gguf": Big(1), "a-00002-of-00003.gguf": Big(1)}, "all 3 parts"),
    ],
)
def test_a_repository_without_whole_safe_weights_is_refused(
    files: dict[str, Any], said: str, there: loopback_hub.Hub
) -> None:
    with pytest.raises(RecipeError) as caught:
        weights_of(repo_of(files, there), "model", gguf=False, precision="fp8", code=False)
    assert said in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_of_several_gguf_the_precision_names_one_and_names_may_be_odd(there: loopback_hub.Hub) -> None:
    files = {
        "m-Q4_K_M.gguf": Big(1),
        "m-Q4_K.gguf": Big(2),
        "mmproj-F16.gguf": Big(3),
        "ünï çødé %2F?.safetensors": Big(4),
    }
    repo = repo_of(files, there)
    assert [f.path for f in weights_of(repo, "model", gguf=True, precision="q4_k", code=False)] == ["m-Q4_K.gguf"]
    assert [f.path for f in weights_of(repo, "model", gguf=False, precision="bf16", code=False)] == [
        "ünï çødé %2F?.safetensors"
    ]


def test_code_of_the_repository_is_fetched_only_where_the_recipe_lets_it_run(there: loopback_hub.Hub) -> None:
    repo = repo_of(model_files(**{"modeling_x.py": b"pass"}), there)
    for code in (True, False):
        paths = [f.path for f in weights_of(repo, "model", gguf=False, precision="bf16", code=code)]
        assert ("modeling_x.py" in paths) is code


def test_the_same_weights_in_their_makers_own_layout_are_not_fetched_twice(there: loopback_hub.Hub) -> None:
    repo = repo_of(model_files(**{"consolidated.safetensors": Big(1)}), there)
    assert not [
        f for f in weights_of(repo, "model", gguf=False, precision="bf16", code=False) if "consolidated" in f.path
    ]


def test_a_tokenizer_of_its_own_brings_its_files_alone(there: loopback_hub.Hub) -> None:
    paths = [f.path for f in tokenizer_of(repo_of(model_files(), there), "tokenizer")]
    assert paths == ["chat_template.jinja", "config.json", "tokenizer.json", "tokenizer_config.json"]
    with pytest.raises(RecipeError, match="a repository with a tokenizer in it"):
        tokenizer_of(repo_of({"config.json": json.dumps({}).encode()}, there), "tokenizer")
