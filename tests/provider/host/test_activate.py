"""The swap: the new release serves at its end, or the old one does again. Real jobs, the stub in the engine's place."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from sluicegate.provider.host.completion import Completion, complete
from sluicegate.provider.host.engine_http import Target, get
from sluicegate.provider.host.files import locked, read_json
from sluicegate.provider.host.service import Service
from tests.provider.host.kit import DEADLINE_S, Stack, pids_with, until

PATTERN = {"match": "disk is on fire", "cause": "the disk", "mend": "put it out"}


def answers(stack: Stack) -> bool:
    """Whether a completion comes through the link that the front uses."""
    return complete(Target(socket=stack.places.current_sock), "stub", "hello", 8, DEADLINE_S).done


def events(job: Path) -> str:
    return (job / "events.jsonl").read_text()


def test_the_first_activation_serves_and_says_what_was_seen(stack: Stack) -> None:
    spec = stack.engine()
    done = stack.activate(spec)
    assert (done["result"], done["lock"], done["serving"]) == ("serving", spec["digest"], spec["digest"])
    assert [c["check"] for c in done["gate"]] == ["port", "identity", "model", "completion", "steady"]
    assert all(c["ok"] for c in done["gate"])
    assert done["phases"].keys() == {"load", "first_token"}
    assert stack.places.current.resolve() == stack.places.release(spec["digest"])
    assert stack.places.current_sock.readlink() == Path(stack.places.socket(spec["digest"]).name)
    assert answers(stack)


def test_the_same_lock_again_restarts_nothing(stack: Stack) -> None:
    spec = stack.serve()
    pid = stack.pid(spec)
    done = stack.activate(spec | {"token": "another"})
    assert done["result"] == "serving"
    assert len(done["gate"]) == 5
    assert stack.pid(spec) == pid
    assert stack.status()["engine_owner"] == "another"


def test_a_serving_lock_whose_gate_is_not_on_record_is_gated_where_it_runs(stack: Stack) -> None:
    spec = stack.serve()
    pid = stack.pid(spec)
    (stack.places.release(spec["digest"]) / "gate.json").write_text('{"gate": []}')
    done = stack.activate(spec)
    assert [c["check"] for c in done["gate"]] == ["port", "identity", "model", "completion", "steady"]
    assert stack.pid(spec) == pid


def test_the_same_lock_again_starts_what_is_dead(stack: Stack) -> None:
    spec = stack.serve()
    pid = stack.pid(spec)
    Service(stack.places.release(spec["digest"]) / "engine").stop()
    assert stack.status()["health"] == "dead"
    assert stack.activate(spec)["result"] == "serving"
    assert stack.pid(spec) != pid
    assert answers(stack)


def test_another_lock_takes_over_and_the_old_process_is_gone(stack: Stack) -> None:
    old = stack.serve("--tokens", "9")
    new = stack.serve("--tokens", "10")
    assert stack.pid(old) is None
    assert not stack.places.socket(old["digest"]).exists()
    assert complete(Target(socket=stack.places.current_sock), "stub", "x", 8, DEADLINE_S).completion_tokens == 10
    third = stack.serve("--tokens", "11")
    # The one before is kept to go back to, older ones are not.
    kept = sorted(p.name for p in (stack.places.home / "releases").iterdir())
    assert kept == sorted(stack.places.release(s["digest"]).name for s in (new, third))


def test_a_lock_that_fails_its_gate_gives_way_to_the_old_one_which_is_gated(stack: Stack) -> None:
    old = stack.serve()
    bad = stack.engine("--exit-at-completion", "1", "--say", "the disk is on fire", facts={"patterns": [PATTERN]})
    done = stack.activate(bad)
    assert (done["result"], done["lock"], done["serving"]) == ("reverted", bad["digest"], old["digest"])
    assert [(c["check"], c["ok"]) for c in done["gate"]][-1] == ("completion", False)
    assert done["cause"]["kind"] == "the disk"
    assert done["cause"]["mend"] == "put it out"
    assert "exited with code 5" in done["cause"]["text"]
    assert done["log_tail"] == ["the disk is on fire"]
    assert stack.pid(bad) is None
    assert answers(stack)
    assert stack.status()["serving"] == old["digest"]
    assert stack.status()["engine_owner"] == old["token"]


def test_a_first_lock_that_fails_leaves_nothing_running(stack: Stack) -> None:
    bad = stack.engine("--exit-at-start", "3")
    done = stack.activate(bad)
    assert (done["result"], done["serving"]) == ("failed", None)
    assert "exited with code 3" in done["cause"]["text"]
    assert stack.status()["result"] == "down"
    assert not stack.places.current_sock.is_symlink()
    until(lambda: not pids_with(str(stack.places.run)), "no process")


def test_a_remembered_failure_is_refused_without_stopping_what_serves(stack: Stack) -> None:
    old = stack.serve()
    bad = stack.engine("--exit-at-start", "3")
    assert stack.activate(bad)["result"] == "reverted"
    pid = stack.pid(old)
    done = stack.activate(bad)
    assert (done["result"], done["serving"]) == ("failed", old["digest"])
    assert "failed its gate here" in done["cause"]["text"]
    assert "exited with code 3" in done["cause"]["text"]
    assert done["cause"]["retry"] == 1
    assert stack.pid(old) == pid
    assert answers(stack)


def test_a_raised_retry_tries_again_and_a_success_is_forgotten(stack: Stack, tmp_path: Path) -> None:
    old = stack.serve()
    broken = tmp_path / "broken"
    broken.touch()
    spec = stack.engine("--fail-when", str(broken))
    assert stack.activate(spec)["result"] == "reverted"
    broken.unlink()
    assert stack.activate(spec)["result"] == "failed"
    assert stack.activate(spec | {"retry": 1})["result"] == "serving"
    assert not stack.places.failed(spec["digest"]).exists()
    assert stack.activate(old)["result"] == "serving"
    assert stack.activate(spec)["result"] == "serving"


def test_a_remembered_failure_is_tried_again_when_nothing_serves(stack: Stack, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.touch()
    spec = stack.engine("--fail-when", str(broken))
    assert stack.activate(spec)["result"] == "failed"
    broken.unlink()
    assert stack.activate(spec)["result"] == "serving"


def test_a_transient_cause_is_not_remembered(stack: Stack, tmp_path: Path) -> None:
    stack.serve()
    broken = tmp_path / "broken"
    broken.touch()
    facts = {"patterns": [PATTERN | {"transient": True}]}
    spec = stack.engine("--say", "the disk is on fire", "--fail-when", str(broken), facts=facts)
    assert stack.activate(spec)["cause"]["transient"]
    broken.unlink()
    assert stack.activate(spec)["result"] == "serving"


def test_a_lock_that_is_not_prepared_stops_nothing(stack: Stack) -> None:
    old = stack.serve()
    pid = stack.pid(old)
    done = stack.run("activate", stack.engine("--tokens", "9"))
    assert done["result"] == "failed"
    assert "prepare it first" in done["cause"]["text"]
    assert stack.pid(old) == pid
    assert answers(stack)


def test_giving_up_before_anything_was_stopped_leaves_the_old_one_alone(stack: Stack) -> None:
    old, new = stack.serve(), stack.engine("--tokens", "9")
    pid = stack.pid(old)
    assert stack.run("prepare", new)["result"] == "prepared"
    with locked(stack.places.home / "lock", "the test", 10):
        job = stack.start("activate", new)
        stack.ask("revert", job=job.name)
        done = stack.wait(job)
    assert done["cause"]["kind"] == "cancelled"
    assert stack.pid(old) == pid
    assert answers(stack)


def test_giving_up_while_the_old_one_drains_lets_it_serve_on(stack: Stack, tmp_path: Path) -> None:
    old, new = stack.serve(), stack.engine("--tokens", "9")
    pid, go = stack.pid(old), tmp_path / "go"
    assert stack.run("prepare", new)["result"] == "prepared"
    stream = Stream(stack, go)
    job = stack.start("activate", new)
    until(lambda: "finishes its running ones" in events(job), "the drain")
    stack.ask("revert", job=job.name)
    done = stack.wait(job)
    assert (done["result"], done["serving"]) == ("reverted", old["digest"])
    assert stack.pid(old) == pid
    assert answers(stack)
    assert stream.end().completion_tokens == 8


@pytest.mark.parametrize("flag", ["--never-ready", "--hang"])
def test_giving_up_while_the_new_one_starts_brings_the_old_one_back(stack: Stack, flag: str) -> None:
    old, new = stack.serve(), stack.engine(flag)
    assert stack.run("prepare", new)["result"] == "prepared"
    job = stack.start("activate", new)
    until(lambda: stack.pid(new) and stack.places.socket(new["digest"]).exists(), "the new one's start")
    stack.ask("revert", job=job.name)
    done = stack.wait(job)
    assert (done["result"], done["serving"]) == ("reverted", old["digest"])
    assert done["cause"]["kind"] == "cancelled"
    assert stack.pid(new) is None
    assert answers(stack)
    assert not stack.places.failed(new["digest"]).exists()


def test_when_the_old_one_does_not_come_back_either_nothing_serves_and_that_is_said(
    stack: Stack, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    stack.serve("--fail-when", str(broken))
    broken.touch()
    bad = stack.engine("--exit-at-start", "3")
    assert stack.run("prepare", bad)["result"] == "prepared"
    job = stack.start("activate", bad)
    done = stack.wait(job)
    assert (done["result"], done["serving"]) == ("failed", None)
    assert "does not come back" in events(job)
    assert stack.status()["result"] == "down"
    until(lambda: not pids_with(str(stack.places.run)), "no process")


def test_a_fault_of_our_own_in_the_middle_of_a_swap_brings_the_old_one_back(stack: Stack) -> None:
    old, new = stack.serve(), stack.engine("--tokens", "9")
    assert stack.run("prepare", new)["result"] == "prepared"
    complete = stack.places.release(new["digest"]) / "complete"
    spec = read_json(complete)
    assert spec
    del spec["engine"]["prompts"]
    complete.write_text(json.dumps(spec))
    done = stack.run("activate", new)
    assert (done["result"], done["serving"]) == ("reverted", old["digest"])
    assert done["cause"]["transient"]
    assert answers(stack)


def test_an_identity_that_does_not_fit_fails(stack: Stack) -> None:
    done = stack.activate(stack.engine("--map-nothing"))
    assert done["result"] == "failed"
    assert "has mapped nothing of file:" in done["cause"]["text"]


def test_of_two_at_once_the_second_waits(stack: Stack) -> None:
    specs = [stack.engine("--tokens", n) for n in ("9", "10")]
    for spec in specs:
        assert stack.run("prepare", spec)["result"] == "prepared"
    first, second = (stack.start("activate", spec) for spec in specs)
    assert [stack.wait(job)["result"] for job in (first, second)] == ["serving", "serving"]
    # Not a line of the second's swap lies between the lines of the first's.
    ends = [json.loads(events(first).splitlines()[-2])["t"], json.loads(events(second).splitlines()[0])["t"]]
    assert ends == sorted(ends)
    assert stack.status()["serving"] == specs[1]["digest"]
    assert len(pids_with(str(stack.places.run))) == 1


def test_a_running_stream_of_the_old_engine_finishes_before_it_is_stopped(stack: Stack, tmp_path: Path) -> None:
    old, new = stack.serve(), stack.engine("--tokens", "9")
    go = tmp_path / "go"
    assert stack.run("prepare", new)["result"] == "prepared"
    stream = Stream(stack, go)
    job = stack.start("activate", new)
    until(lambda: "finishes its running ones" in events(job), "the drain")
    assert not stack.places.current_sock.exists()
    assert stack.pid(old)
    assert stream.end() == stream.seen
    assert stream.end().done
    assert stack.wait(job)["result"] == "serving"
    assert stack.pid(old) is None


def test_an_engine_that_does_not_drain_is_stopped_after_its_time(stack: Stack, tmp_path: Path) -> None:
    old = stack.serve(facts={"drain_s": 0.3})
    stream = Stream(stack, tmp_path / "never")
    stack.serve("--tokens", "9")
    assert stack.pid(old) is None
    (tmp_path / "never").touch()
    stream.thread.join()
    assert "after 1 chunks" in str(stream.error) or stream.error is None


def test_a_serving_engine_that_exits_is_started_again_by_its_supervisor(stack: Stack, tmp_path: Path) -> None:
    go = tmp_path / "go"
    spec = stack.serve("--exit-when", str(go))
    pid = stack.pid(spec)
    go.touch()
    until(lambda: stack.pid(spec) != pid, "the exit")
    go.unlink()
    until(lambda: stack.status()["health"] == "healthy", "health")
    assert stack.status()["restarts"] >= 1


def test_how_a_lock_is_run_here_follows_what_prepare_was_told_last(stack: Stack) -> None:
    spec = stack.serve()
    pid = stack.pid(spec)
    changed = spec | {"engine": spec["engine"] | {"steady_s": 0.1}}
    assert stack.activate(changed)["result"] == "serving"
    assert stack.pid(spec) == pid
    kept = read_json(stack.places.release(spec["digest"]) / "complete")
    assert kept
    assert kept["engine"]["steady_s"] == 0.1


def test_a_command_line_that_the_engine_refuses_costs_no_swap(stack: Stack) -> None:
    old = stack.serve()
    done = stack.run("prepare", stack.engine("--unheard-of", facts={"check": ["--check"]}))
    assert done["result"] == "failed"
    assert done["cause"] == {
        "kind": "command line",
        "text": "stub_engine.py refuses its command line: stub_engine.py: error: unrecognized arguments: --unheard-of",
        "transient": False,
    }
    assert stack.status()["serving"] == old["digest"]


def test_a_bad_log_pattern_is_told_by_prepare(stack: Stack) -> None:
    done = stack.run("prepare", stack.engine(facts={"patterns": [{"match": "(", "phase": "load"}]}))
    assert done["result"] == "failed"


class Stream:
    """A completion through current.sock that is held after its first chunk until `go` is there."""

    def __init__(self, stack: Stack, go: Path, how: str = "until") -> None:
        self.go, self.seen = go, Completion()
        self.error: Exception | None = None
        target = Target(socket=stack.places.current_sock)

        def run() -> None:
            try:
                self.seen = complete(target, "stub", f"{how} {go}", 8, DEADLINE_S)
            except Exception as e:  # noqa: BLE001 - shown by the test that waits for it
                self.error = e

        self.thread = threading.Thread(target=run)
        self.thread.start()
        until(lambda: "stub_running 1" in metrics_of(stack), "the stream's start")

    def end(self) -> Completion:
        self.go.touch()
        self.thread.join()
        assert self.error is None
        return self.seen


def metrics_of(stack: Stack) -> str:
    return get(Target(socket=stack.places.current_sock), "/metrics", DEADLINE_S)[1].decode()


def test_a_failure_that_cannot_be_noted_down_is_taken_back_all_the_same(stack: Stack) -> None:
    """As on a full disk: here a file lies where the folder of failed locks has to be."""
    old = stack.serve()
    (stack.places.home / "failed").write_text("")
    done = stack.activate(stack.engine("--exit-at-start", "3"))
    assert (done["result"], done["serving"]) == ("reverted", old["digest"])
    assert stack.status()["health"] == "healthy"
