"""What Engine does with each answer of the host program. The host itself is a script here."""

from __future__ import annotations

from typing import Any

import pytest

from sluicegate.provider.engine import NothingServesError
from sluicegate.provider.engine_text import failure_text
from sluicegate.provider.resource import FailedError, InitFailedError, Run, UnreachableError
from sluicegate.provider.values import UNKNOWN
from tests.provider.fake_host import FAILED, GONE, HOST, SERVING, STATUS, FakeCloud, FakeHost, until_told
from tests.provider.resource_cases import BY_NAME, DIGEST, FACTS, INPUTS, OUTPUTS

ENGINE, NEW, OLD = BY_NAME["Engine"], INPUTS["Engine"], OUTPUTS["Engine"]
DOWN = STATUS | {"result": "down", "serving": None, "health": "dead", "why": "it exited"}
UNREACHABLE = UnreachableError("the host program did not answer `status`: no route")
MOVED = NEW | {"host": HOST | {"root": "/new"}, "machineId": "local-2"}
FIRST_FAILED = NEW | dict.fromkeys(FACTS["Engine"]) | {"phases": {}, "token": "tok"}


def run(**options: Any) -> Run:
    return Run("urn", **options)


def test_a_create_prepares_then_activates_and_says_what_serves(host: FakeHost) -> None:
    id, outputs = ENGINE.create(run(), NEW)
    assert host.verbs() == ["status", "prepare", "activate"]
    assert id == f"engine-{outputs['token'][:12]}"
    assert (
        outputs["lock"] == outputs["serving"] == outputs["lastHealthy"]["lock"] == outputs["record"]["lock"] == DIGEST
    )
    assert outputs["phases"] == {"load": 1.5}
    assert set(outputs) == set(NEW) | set(FACTS["Engine"])


@pytest.mark.parametrize("failing", ["prepare", "activate"])
def test_a_first_create_that_fails_is_in_the_state_with_what_is_there(failing: str, host: FakeHost) -> None:
    host.jobs[failing] = FAILED | {"result": "failed"}
    host.answers["status"] = DOWN
    with pytest.raises(InitFailedError) as caught:
        ENGINE.create(run(), NEW)
    assert caught.value.outputs["serving"] is None
    assert caught.value.outputs["token"]
    assert "nothing serves now." in str(caught.value).splitlines()[0]


@pytest.mark.parametrize("error", [UNREACHABLE, GONE])
def test_a_create_that_gets_no_answer_is_in_the_state_too(error: Exception, host: FakeHost) -> None:
    host.answers["status"] = error
    with pytest.raises(InitFailedError, match=str(error)):
        ENGINE.create(run(), NEW)


def test_an_update_that_was_reverted_is_a_plain_error(host: FakeHost) -> None:
    host.jobs["activate"] = FAILED
    with pytest.raises(FailedError, match="aaaaaaaaaaaa serves now") as caught:
        ENGINE.update(run(), "id", OLD, NEW)
    assert not isinstance(caught.value, NothingServesError)


def test_an_update_after_which_nothing_serves_says_so_in_the_outputs(host: FakeHost) -> None:
    host.jobs["activate"] = FAILED | {"result": "failed"}
    host.answers["status"] = [STATUS, DOWN]
    with pytest.raises(InitFailedError) as caught:
        ENGINE.update(run(), "id", OLD, NEW)
    assert caught.value.outputs == OLD | {"serving": None}


def test_what_cannot_be_told_after_a_failure_is_no_outage(host: FakeHost) -> None:
    host.jobs["activate"] = FAILED
    host.answers["status"] = [STATUS, UNREACHABLE]
    with pytest.raises(FailedError, match="what serves cannot be told from here"):
        ENGINE.update(run(), "id", OLD, NEW)


def test_a_failure_on_a_new_machine_is_plain_while_the_old_one_serves(cloud: FakeCloud) -> None:
    cloud.hosts["/new"] = FakeHost(answers={"status": DOWN}, jobs={"activate": FAILED})
    with pytest.raises(FailedError, match="aaaaaaaaaaaa serves now"):
        ENGINE.update(run(), "id", OLD, MOVED)


@pytest.mark.parametrize("old", [DOWN, UNREACHABLE])
def test_a_failure_on_a_new_machine_whose_old_one_is_gone_says_that_nothing_serves(old: Any, cloud: FakeCloud) -> None:
    cloud.hosts["/new"] = FakeHost(answers={"status": DOWN}, jobs={"activate": FAILED})
    cloud.hosts["/r"].answers["status"] = old
    with pytest.raises(InitFailedError, match="nothing serves now"):
        ENGINE.update(run(), "id", OLD, MOVED)


def test_an_update_after_a_failed_create_heals_it(host: FakeHost) -> None:
    outputs = ENGINE.update(run(), "id", FIRST_FAILED, NEW)
    assert (outputs["lock"], outputs["serving"], outputs["token"]) == (DIGEST, DIGEST, "tok")
    assert outputs["phases"] == {"load": 1.5}
    host.jobs["activate"] = FAILED | {"result": "failed"}
    host.answers["status"] = DOWN
    with pytest.raises(InitFailedError):
        ENGINE.update(run(), "id", FIRST_FAILED, NEW)


def test_an_update_that_only_gated_again_keeps_the_seconds_of_the_start(host: FakeHost) -> None:
    host.jobs["prepare"] = SERVING | {"result": "prepared", "phases": {"image": 0.0}}
    host.jobs["activate"] = SERVING | {"phases": {}, "was": {"gate": [], "phases": {"load": 7.0}}}
    old = OLD | {"lock": DIGEST, "phases": {"load": 9.0}}
    assert ENGINE.update(run(), "id", old, NEW)["phases"] == {"load": 9.0}
    # A run that was killed before it could say so had started it.
    assert ENGINE.create(run(), NEW)[1]["phases"] == {"image": 0.0, "load": 7.0}


def test_a_job_that_was_killed_whole_is_asked_for_once_more(host: FakeHost) -> None:
    killed = FAILED | {"result": "down", "cause": {"kind": "killed", "text": "it ended", "transient": True}}
    answers = [killed, SERVING]
    host.jobs["activate"] = lambda _run: answers.pop(0)
    assert ENGINE.update(run(), "id", OLD, NEW)["serving"] == DIGEST
    assert host.verbs().count("activate") == 2
    host.jobs["activate"] = killed
    with pytest.raises(FailedError, match="it ended"):
        ENGINE.update(run(), "id", OLD, NEW)
    assert host.verbs().count("activate") == 4


def test_a_job_of_an_earlier_run_is_followed_first(host: FakeHost) -> None:
    host.answers["status"] = STATUS | {"jobs": ["j-activate"]}
    ENGINE.update(run(), "id", OLD, NEW)
    assert host.verbs() == ["status", "follow", "prepare", "activate"]


def test_a_lock_file_that_is_not_what_is_pinned_starts_nothing(host: FakeHost) -> None:
    wrong = NEW | {"pins": NEW["pins"] | {"lock": "sha256:" + "0" * 64}}
    with pytest.raises(FailedError, match="run: sluicegate recipe pin"):
        ENGINE.update(run(), "id", OLD, wrong)
    with pytest.raises(FailedError, match="cannot read the lock file"):
        ENGINE.update(run(), "id", OLD, NEW | {"lockFile": "/nowhere/x.json"})
    assert "prepare" not in host.verbs()


def test_asked_to_stop_before_the_swap_nothing_is_stopped(host: FakeHost) -> None:
    stopped = run()

    def prepared(asked: Run) -> dict[str, Any]:
        asked.cancel.set()
        return SERVING | {"result": "prepared"}

    host.jobs["prepare"] = prepared
    with pytest.raises(FailedError, match="nothing was touched"):
        ENGINE.update(stopped, "id", OLD, NEW)


@pytest.mark.parametrize(
    ("timeout_s", "why"), [(0.0, "asked to give up: cancelled"), (0.05, "custom timeout of 0.05 s")]
)
def test_a_stopped_update_says_why_and_what_serves(timeout_s: float, why: str, host: FakeHost) -> None:
    stopped = run(timeout_s=timeout_s)

    def job(asked: Run) -> dict[str, Any]:
        if not timeout_s:
            asked.cancel.set()
        return until_told(asked)

    host.jobs["activate"] = job
    with pytest.raises(FailedError, match="aaaaaaaaaaaa serves now") as caught:
        ENGINE.update(stopped, "id", OLD, NEW)
    assert why in str(caught.value)


def test_read_of_what_serves_brings_it_back_into_the_outputs(host: FakeHost) -> None:
    lost = OLD | {"serving": None}
    assert ENGINE.read(run(), "id", NEW, lost) == OLD
    host.answers["status"] = STATUS | {"health": "busy", "why": "3 requests running"}
    said: list[tuple[str, str]] = []
    assert ENGINE.read(run(log=lambda *line: said.append(line)), "id", NEW, OLD) == OLD
    assert said == [("busy: 3 requests running", "warning")]


@pytest.mark.parametrize("there", [{"machine": None}, {"engine_owner": None}, {"engine_owner": "another"}])
def test_read_says_gone_only_when_the_machine_says_so(there: dict[str, Any], host: FakeHost) -> None:
    host.answers["status"] = STATUS | there
    assert ENGINE.read(run(), "id", NEW, OLD) is None


@pytest.mark.parametrize("error", [UNREACHABLE, GONE])
def test_read_never_takes_no_answer_for_gone(error: Exception, host: FakeHost) -> None:
    host.answers["status"] = error
    with pytest.raises(UnreachableError):
        ENGINE.read(run(), "id", NEW, OLD)


@pytest.mark.parametrize(
    ("there", "serving", "reason"),
    [(DOWN, None, "nothing serves: it exited"), (STATUS | {"serving": "sha256:b"}, "sha256:b", "b serves")],
)
def test_read_of_a_sick_one_says_what_is_there(there: Any, serving: Any, reason: str, host: FakeHost) -> None:
    host.answers["status"] = there
    with pytest.raises(InitFailedError, match=reason) as caught:
        ENGINE.read(run(), "id", NEW, OLD)
    assert caught.value.outputs == OLD | {"serving": serving}


def test_delete_acts_only_with_its_own_token(host: FakeHost) -> None:
    ENGINE.delete(run(), "id", OLD)
    assert host.asked == [("deactivate", {"what": "engine", "token": "tok"})]


def test_a_preview_knows_lock_and_upstream_and_tells_what_a_change_costs() -> None:
    said: list[str] = []
    noted = run(log=lambda text, _: said.append(text))
    first = ENGINE.preview(noted, None, NEW)
    assert (first["lock"], first["upstream"], first["token"]) == (DIGEST, "current.sock", UNKNOWN)
    assert said == []
    assert ENGINE.preview(noted, OLD, NEW)["token"] == "tok"
    assert said.pop() == "what runs is gated again; only what is dead is started"
    ENGINE.preview(noted, OLD, NEW | {"pins": NEW["pins"] | {"engine": "pypi:e==2#sha256:0"}})
    assert said == [
        "one engine restart; requests are held for up to 120 s meanwhile",
        "same model; only speed should change (engine moved): checked by ladder, not proven",
    ]
    said.clear()
    ENGINE.preview(noted, OLD, NEW | {"pins": NEW["pins"] | {"weights": "pypi:w==2#sha256:0"}})
    assert said[1] == "the answers may change: weights moved"
    said.clear()
    ENGINE.preview(noted, OLD, NEW | {"host": UNKNOWN})
    assert said == ["the machine moves: the new one is gated before the old one goes"]


CAUSES = [
    None,
    {"kind": "oom", "text": "CUDA out of memory.\nTried to\tallocate", "mend": "smaller\nlength", "transient": False},
    {"kind": "gate", "text": "x" * 5000, "transient": False},
]


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize("after", [STATUS, DOWN, {"result": "unknown", "serving": None}])
@pytest.mark.parametrize("gave_up", [False, True])
def test_a_failure_is_a_sentence_and_at_most_twelve_lines_with_the_next_command(
    cause: Any, after: Any, gave_up: bool
) -> None:
    log = [f"line {i}\r\x1b[31m{'y' * 900}\nmore" for i in range(30)]
    done = FAILED | {"cause": cause, "log_tail": log, "phases": {"load": 1.0, "weights": 2.0}}
    run = Run("urn:pulumi:dev::project::type::name")
    if gave_up:
        run.cancel.set()
    lines = failure_text(run, NEW | {"pins": NEW["pins"] | {"drafter": "d"}}, done, after).split("\n")
    assert len(lines) <= 12
    assert ("asked to give up: cancelled" in lines) == gave_up
    assert lines[0].startswith("smollm2-135m/q4 (")
    assert lines[0].endswith(" now.")
    assert ".;" not in lines[0]
    assert lines[-1].startswith("next: ")
    assert any(line.startswith("now: ") for line in lines)
    assert sum(line.startswith("log: ") for line in lines) == 4
    assert all(line.isprintable() and len(line) < 500 for line in lines)


@pytest.mark.parametrize("project", ["project", "my.project"])
def test_a_lock_that_failed_before_is_told_with_the_whole_command_however_long_its_cause(project: str) -> None:
    cause = {"kind": "failed before", "text": "nothing was stopped: " + "x" * 5000, "transient": False, "retry": 3}
    new = NEW | {"host": HOST | {"stack": f"{project}.dev"}}
    text = failure_text(Run(f"urn:pulumi:dev::{project}::type::name"), new, FAILED | {"cause": cause}, STATUS)
    assert "nothing was stopped" in text.split("\n")[0]
    assert text.endswith("pulumi config set --path endpoint.retry 3 --stack dev")
