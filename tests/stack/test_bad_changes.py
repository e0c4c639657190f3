"""Every way a change can be bad, on a stack that serves and on a first `up`, through the pulumi CLI.

On an update the old release serves again (or never stopped), the state says so, the same change fails at once the
second time and says why, and the old pins are 0 operations. On a first `up` the resource is in the state with its
error, and the next `up` goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.stack.faults import FAULTS, faulty, weights_of
from tests.stack.harness import Project, Trickle, post, until


@dataclass(frozen=True)
class Bad:
    """A change, what is said of it, and whether the old engine has to be stopped to find out."""

    make: Callable[[Project], str]
    said: str
    stops: bool = True
    remembered: bool = True


def _wrong_hash(p: Project) -> str:
    (p.folder / "models").mkdir(exist_ok=True)
    (p.folder / "models/wrong.gguf").write_bytes(b"GGUF")
    return weights_of(p, "wrong", "0" * 64)


BAD = {
    "a file that is missing": Bad(
        lambda p: weights_of(p, "none", "0" * 64), "no file models/none.gguf in the project", False, False
    ),
    "a file with another hash": Bad(_wrong_hash, "models/wrong.gguf has sha256", False, False),
    "an argument the engine refuses": Bad(
        lambda p: p.vary("smollm2-135m/q4", "mistyped", {"args": ["--thread-count", "1"]}),
        "unrecognized arguments: --thread-count", False, False,
    ),
}  # fmt: skip
SAID = {
    "dies at start": "exited with code 1",
    "dies at its first request": "exited with code 5",
    "answers 500": "completion: HTTP 500",
    "hangs on completions": "completion: no answer in ",
    "answers with another model's name": "answered by model 'somebody-else', the lock says 'smollm2-135m'",
    "streams without end": "completion: no whole answer in|completion: no answer in",
    "accepts no draft": "the drafter is not helping: 0 of",
    "never ready": "not ready within its deadline; last answer: HTTP 503",
}
BAD |= {fault: Bad(lambda p, fault=fault: faulty(p, fault), SAID[fault]) for fault in FAULTS}  # type: ignore[misc] # a default


def said(text: str, bad: Bad) -> bool:
    flat = " ".join(text.split())
    return any(part in flat for part in bad.said.split("|"))


@pytest.mark.parametrize("name", BAD)
def test_on_a_stack_that_serves_it_costs_nothing_that_lasts(name: str, served: Project) -> None:
    bad, before, good, pid = BAD[name], served.outputs(), dict(served.config), served.engine_pid()
    try:
        served.set(endpoint={"gateDeadlineS": 5})
        served.use(bad.make(served))
        with Trickle(before) as trickle:
            failed = served.up(check=False)
        assert failed.code != 0
        assert said(failed.text, bad), failed.text
        assert "serves now" in failed.text
        assert trickle.failed == []
        assert post(before).status_code == 200
        assert (served.engine_pid() == pid) == (not bad.stops)
        engine = served.resource("Engine")
        assert engine["outputs"]["lock"] == before["lock"]
        assert engine["inputs"]["pins"] == before["pins"]

        # The second try stops nothing, and says why.
        pid = served.engine_pid()
        again = served.up(check=False)
        assert again.code != 0
        assert said(again.text, bad), again.text
        assert ("nothing was stopped" in again.text) == bad.remembered
        assert served.engine_pid() == pid
    finally:
        served.config = good
        served.write()
    assert "12 unchanged" in served.up().out


@pytest.mark.parametrize("name", BAD)
def test_on_a_first_up_it_is_in_the_state_and_the_next_up_goes_on(name: str, project: Callable[..., Project]) -> None:
    p = project(endpoint={"gateDeadlineS": 5})
    good, bad = dict(p.config), BAD[name]
    p.use(bad.make(p))
    failed = p.up(check=False)
    assert failed.code != 0
    assert said(failed.text, bad), failed.text
    assert "nothing serves now" in failed.text
    engine = p.resource("Engine")
    assert engine["initErrors"]
    assert engine["outputs"].get("serving") is None
    assert not [line for line in p.processes().values() if "supervise" in line]
    p.config = {**good, "endpoint": {}}
    p.write()
    p.up()
    assert post(p.outputs()).status_code == 200
    assert p.resource("Engine")["id"] == engine["id"]
    assert not p.resource("Engine").get("initErrors")
    p.destroy()
    until("every process has ended", lambda: not p.processes(), 20)
    assert not p.home.exists()
