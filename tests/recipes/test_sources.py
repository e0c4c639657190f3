"""References name exact bits or are refused."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.recipes.faults import RecipeError
from sluicegate.recipes.sources import (
    FileRef,
    HubRef,
    ImageRef,
    Ref,
    WheelRef,
    parse_pin,
    parse_ref,
    pin_text,
    safe_path,
)

HEX40, HEX64 = "0123456789" * 4, "0123456789abcdef" * 4
word = st.from_regex(r"[a-z0-9]([a-z0-9._-]{0,10}[a-z0-9])?", fullmatch=True)
hex64 = st.text("0123456789abcdef", min_size=64, max_size=64)
path_part = st.text(st.characters(blacklist_characters="/\\"), min_size=1, max_size=12).filter(safe_path)
refs: st.SearchStrategy[Ref] = st.one_of(
    st.builds(
        HubRef,
        st.one_of(word, st.builds("{}/{}".format, word, word)),
        st.text("0123456789abcdef", min_size=40, max_size=40),
    ),
    st.builds(ImageRef, st.just("docker.io/vllm/vllm-openai") | st.just("localhost:5000/a/b-c"), hex64),
    st.builds(WheelRef, word, st.from_regex(r"[0-9][a-z0-9.]{0,8}", fullmatch=True), hex64),
    st.builds(FileRef, st.lists(path_part, min_size=1, max_size=3).map("/".join), hex64),
)


@given(refs)
def test_a_reference_is_the_same_after_its_text_and_back(ref: Ref) -> None:
    assert parse_ref(str(ref)) == ref
    assert parse_pin(pin_text(str(ref)), "pins.x", "mend") == ref


@given(st.one_of(st.text(), st.binary(), st.integers(), st.none(), st.from_regex(r"(hf|oci|pypi|file):.{0,90}")))
def test_junk_is_refused_and_nothing_else_happens(junk: object) -> None:
    with contextlib.suppress(RecipeError):
        assert str(parse_ref(junk)) == junk


@pytest.mark.parametrize(
    "text",
    [
        "hf:Qwen/Qwen3.8-27B-FP8@main",
        "hf:Qwen/Qwen3.8-27B-FP8@017b9c7",
        f"hf:Qwen/Qwen3.8-27B-FP8@{HEX40.upper()}x",
        f"hf:../x@{HEX40}",
        f"hf:a/b/c@{HEX40}",
        "oci:docker.io/vllm/vllm-openai:v0.32.0",
        f"oci:docker.io/vllm/vllm-openai:v0.32.0@sha256:{HEX64}",
        f"oci:vllm-openai@sha256:{HEX64}",
        f"oci:docker.io/vllm/vllm-openai@sha256:{HEX64[:-1]}",
        "pypi:xllamacpp==2026.10.11549",
        f"pypi:xllamacpp>=2026#sha256:{HEX64}",
        f"file:../model.gguf#sha256:{HEX64}",
        f"file:/etc/passwd#sha256:{HEX64}",
        f"file:a//b#sha256:{HEX64}",
        f"file:a\\b#sha256:{HEX64}",
        f"file:a\nb#sha256:{HEX64}",
        f"hf:a/b@{HEX40}\n",
        "s3:bucket/key",
        "",
    ],
)
def test_what_names_no_exact_bits_is_refused_with_the_forms_allowed(text: str) -> None:
    with pytest.raises(RecipeError) as caught:
        parse_ref(text, "pins.weights", "pin it")
    (fault,) = caught.value.faults
    assert (fault.key, fault.value, fault.mend) == ("pins.weights", text, "pin it")
    assert "sha256:<64 hex>" in fault.allowed or "no '..'" in fault.allowed
