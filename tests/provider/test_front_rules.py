"""What may stand in the front's configuration is said in three rooms that may not import each other: alike."""

from __future__ import annotations

import pytest

from sluicegate.components import sections, settings
from sluicegate.provider import front
from sluicegate.provider.host import caddyfile
from sluicegate.provider.host.caddyfile import FrontFailed
from sluicegate.provider.host.places import Places


def test_config_plugin_and_host_have_the_same_rules_for_paths_and_domains() -> None:
    assert f"^{front.PATH.pattern}$" == sections.PATH
    assert front.PATH.pattern == caddyfile._PATH.pattern
    assert front.DOMAIN.pattern == caddyfile._DOMAIN.pattern
    assert "^" + front.DOMAIN.pattern.removeprefix("(?=.{1,253}$)") + "$" == sections.DOMAIN


@pytest.mark.parametrize("key", ["0123456789abcdef*", "0123456789 abcdef", "0123456789abcd\n\n\n"])
def test_config_plugin_and_host_refuse_the_same_keys(key: str, tmp_path) -> None:  # type: ignore[no-untyped-def] # a fixture
    inputs = {"apiKey": key, "paths": ["/v1/*"]}
    assert [name for name, _ in front.Front().check(inputs)] == ["apiKey"]
    assert not settings.KEY.fullmatch(key)
    with pytest.raises(FrontFailed, match="key: not usable"):
        caddyfile.check(Places(tmp_path, tmp_path, "s"), inputs | {"hold_s": 1, "key": key})
