"""What goes into the front's configuration: refused before Caddy sees it where it could become more than a word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.provider.host.caddyfile import FrontFailed, caddyfile, check
from sluicegate.provider.host.places import Places

PLACES = Places(Path("/root"), Path("/run/x"), "p.s")
GOOD: dict[str, Any] = {"paths": ["/v1/*"], "hold_s": 20, "port": 8080, "key": "a-key-of-the-tests", "domain": None}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("paths", [p]) for p in ("v1/*", "", "/v1 /*", "/v1\n}", "/v1{", "/v1}", "/*/x", '/"', "/`", "/{$X}", 3)),
        ("paths", []),
        *(("domain", d) for d in ("a b.example", "a.example\n{", "a.example {", "A.example", "-a.example", "*.a.b")),
        *(("domain", d) for d in ("http://a.example", "a.example:80", "a.example/x", "{env.HOME}.example", 3)),
        *(("port", p) for p in (0, 65536, -1, "80", 80.5, True)),
        *(("hold_s", h) for h in (-1, "20", None, float("nan"), float("inf"), True)),
        *(("key", k) for k in ("", "with space", "a\nb", "tab\t", "star*", "*", "käse", None)),
    ],
)  # fmt: skip
def test_what_could_become_more_than_a_word_is_refused_and_named(key: str, value: Any) -> None:
    with pytest.raises(FrontFailed, match=f"^{key}: ") as failed:
        check(PLACES, GOOD | {key: value})
    assert key != "key" or value in ("", "*", None) or value not in str(failed.value)


@pytest.mark.parametrize("root", ["/a{b", '/a"b', "/a`b", "/a\nb", "/a\\b"])
def test_a_root_that_cannot_be_quoted_is_refused(root: str) -> None:
    with pytest.raises(FrontFailed, match=r"^places: "):
        check(Places(Path(root), Path("/run/x"), "p.s"), GOOD)


@pytest.mark.parametrize(
    "key", ["!\"#$%&'()+,-./:;<=>?@[\\]^_`{|}~", "{env.HOME}", "{file./etc/passwd}", "a*b", "$HOME"]
)
def test_every_other_printable_character_may_be_in_a_key(key: str) -> None:
    check(PLACES, GOOD | {"key": key})


@given(st.text(), st.text(), st.text())
def test_whatever_is_let_through_stays_one_word_of_its_line(path: str, domain: str, key: str) -> None:
    spec = GOOD | {"paths": ["/v1/*", f"/{path}"], "domain": domain, "key": key}
    try:
        check(PLACES, spec)
    except FrontFailed:
        return
    plain = caddyfile(PLACES, GOOD | {"domain": "a.example", "paths": ["/v1/*", "/x"]})
    made = caddyfile(PLACES, spec | {"domain": domain or "a.example"})
    assert [len(line.split()) for line in made.splitlines()] == [len(line.split()) for line in plain.splitlines()]


def test_only_with_a_domain_does_it_listen_beyond_loopback() -> None:
    assert "\nhttp://:8080 {\n\tbind 127.0.0.1\n" in caddyfile(PLACES, GOOD)
    assert "bind" not in caddyfile(PLACES, GOOD | {"domain": "llm.example.org"})
    assert "\nllm.example.org {\n" in caddyfile(PLACES, GOOD | {"domain": "llm.example.org"})


def test_the_key_is_in_no_configuration() -> None:
    assert GOOD["key"] not in caddyfile(PLACES, GOOD)
