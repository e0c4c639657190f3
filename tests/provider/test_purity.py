"""Check, Diff and previews only think: nothing is started, connected to or written."""

from __future__ import annotations

from typing import Any

import pytest

from sluicegate.provider.resource import Run
from sluicegate.provider.values import UNKNOWN
from tests.provider.resource_cases import BY_NAME, INPUTS, OUTPUTS


@pytest.mark.parametrize("name", list(BY_NAME))
def test_check_diff_and_previews_start_no_process_and_open_no_socket(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def touched(*_: Any, **__: Any) -> Any:
        raise AssertionError("the world was touched")

    for target in (
        "subprocess.Popen.__init__",
        "socket.socket.connect",
        "socket.getaddrinfo",
        "os.mkdir",
        "os.replace",
    ):
        monkeypatch.setattr(target, touched)
    resource, new, old = BY_NAME[name], INPUTS[name], OUTPUTS[name]
    changed = new | {k: UNKNOWN for k in ("host", "machineId", "stackId", "apiKey") if k in new}
    for inputs_ in (new, changed):
        assert resource.check(inputs_) == []
        resource.diff(new, old, inputs_)
        for before in (None, old):
            made = resource.preview(Run("urn"), before, inputs_)
            assert set(made) == set(new) | set(resource.outputs)
