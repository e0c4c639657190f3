"""Each check of the gate, against a stub that passes it and one that does not."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sluicegate.provider.host.engine_http import Target, Unanswered
from sluicegate.provider.host.gate import GateFailed, Watch, open_gate
from tests.provider.host.kit import DEADLINE_S, FACTS, STUB

Gate = Callable[..., Watch]


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    """Starts the stub with flags and opens the gate before it: the watch, when every check passed."""
    started: list[subprocess.Popen[bytes]] = []

    def run(
        *flags: str, deadline_s: float = DEADLINE_S, identity: Callable[[], str] | None = None, **facts: Any
    ) -> Watch:
        path = tmp_path / "s"
        stub = subprocess.Popen([sys.executable, "-P", STUB, "--socket", path, *flags])
        started.append(stub)

        def exited() -> str | None:
            return None if stub.poll() is None else f"exited with code {stub.returncode}"

        watch = Watch(time.monotonic() + deadline_s, exited, identity or (lambda: "the stub"), time.sleep)
        watch.tell = lambda text: watch.results.append({"told": text})
        run.watch = watch  # type: ignore[attr-defined]
        open_gate(watch, Target(socket=path), FACTS | facts, "stub")
        return watch

    yield run
    for stub in started:
        stub.kill()
        stub.wait()


def fails(gate: Gate, check: str, *flags: str, **more: Any) -> str:
    """What the failing check said; it is the last result, and those before it passed."""
    with pytest.raises(GateFailed) as failed:
        gate(*flags, **more)
    results = gate.watch.results  # type: ignore[attr-defined]
    assert failed.value.check == check
    assert results[-1] == {"check": check, "ok": False, "seen": failed.value.seen, "s": results[-1]["s"]}
    assert results[-1]["s"] >= 0
    assert all(r["ok"] for r in results[:-1])
    return failed.value.seen


def test_every_check_that_passes_is_in_the_results_with_what_was_seen(gate: Gate) -> None:
    facts = {
        "version": {"path": "/version", "field": "version", "value": "1.0"}, "speculation": True,
        "fingerprint": True, "fingerprint_value": "stub-print", "acceptance_floor": 0.5,
    }  # fmt: skip
    seen = gate("--drafted", "10", "--accepted", "6", **facts).results
    assert [(r["check"], r["ok"]) for r in seen] == [
        (c, True) for c in ("port", "identity", "version", "model", "completion", "speculation", "steady")
    ]
    assert [r["seen"] for r in seen][:4] == ["/health answered 200", "the stub", "1.0", "stub, 1024 tokens of context"]
    assert seen[4]["seen"].startswith("8 tokens, first after ")
    assert seen[5]["seen"] == "6 of 10 drafted tokens accepted (0.60)"


def test_an_engine_that_dies_at_its_start_fails_with_its_exit_code(gate: Gate) -> None:
    assert fails(gate, "port", "--exit-at-start", "3") == "the engine exited with code 3"


def test_an_engine_that_is_never_ready_fails_at_the_deadline_with_its_last_answer(gate: Gate) -> None:
    seen = fails(gate, "port", "--never-ready", deadline_s=2)
    assert seen == "not ready within its deadline; last answer: HTTP 503"


def test_a_wrong_identity_fails_and_is_in_the_results(gate: Gate) -> None:
    def other() -> str:
        raise Unanswered("runs something else")

    assert fails(gate, "identity", identity=other) == "runs something else"


def test_another_version_fails(gate: Gate) -> None:
    want = {"path": "/version", "field": "version", "value": "2.0"}
    assert fails(gate, "version", version=want) == "version 1.0, the lock says 2.0"


@pytest.mark.parametrize("path", ["/health", "/v1/headers", "/metrics"])
def test_a_version_that_cannot_be_read_fails(gate: Gate, path: str) -> None:
    fails(gate, "version", version={"path": path, "field": "version", "value": "1.0"})


def test_another_models_name_fails(gate: Gate) -> None:
    assert fails(gate, "model", "--model", "other") == "serves ['other'], the lock says 'stub'"


def test_another_context_length_fails(gate: Gate) -> None:
    seen = fails(gate, "model", "--max-len", "512")
    assert seen == "stub with a context of 512 tokens, the lock says 1024"


def test_a_list_of_models_of_another_shape_fails(gate: Gate) -> None:
    assert "serves []" in fails(gate, "model", models="/v1/headers")


def test_an_engine_that_dies_at_its_first_request_fails_with_its_exit_code(gate: Gate) -> None:
    assert fails(gate, "completion", "--exit-at-completion", "1").endswith("; the engine exited with code 5")


def test_a_completion_answered_500_fails_with_the_answer(gate: Gate) -> None:
    seen = fails(gate, "completion", "--completion-status", "500")
    assert "HTTP 500" in seen
    assert "as asked" in seen


@pytest.mark.parametrize("flag", ["--hang", "--drip", "--endless"])
def test_a_completion_without_end_fails_at_the_deadline_though_health_is_good(gate: Gate, flag: str) -> None:
    def identity() -> str:
        gate.watch.deadline = time.monotonic() + 0.7  # type: ignore[attr-defined]
        return "the stub"

    assert "answer in" in fails(gate, "completion", flag, identity=identity)


@pytest.mark.parametrize(("part", "name"), [("done", "[DONE]"), ("usage", "usage"), ("finish", "a finish reason")])
def test_a_stream_that_lacks_a_part_of_its_end_fails(gate: Gate, part: str, name: str) -> None:
    assert fails(gate, "completion", "--without", part) == f"completion: the stream ended without {name}"


@pytest.mark.parametrize(
    ("chunk", "said"),
    [
        ('data: {"error": {"message": "out of memory"}}', "out of memory"),
        ('data: {"object": "error", "message": "out of memory"}', "out of memory"),
        ("event: error\ndata: {}", "an error event"),
        ("data: not JSON", "not JSON"),
        ("data: [1]", "another shape"),
        ('data: {"choices": 3}', "another shape"),
        ('data: {"choices": [{"delta": {"content": ["a"]}}]}', "another shape"),
    ],
)
def test_a_chunk_that_is_none_fails_with_what_came(gate: Gate, chunk: str, said: str) -> None:
    assert said in fails(gate, "completion", "--odd-chunk", chunk)


def test_a_single_token_proves_nothing(gate: Gate) -> None:
    assert "1 tokens" in fails(gate, "completion", "--tokens", "1")


def test_tokens_without_any_text_prove_nothing(gate: Gate) -> None:
    assert "0 tokens" in fails(gate, "completion", "--tokens", "0")


def test_reasoning_counts_as_text(gate: Gate) -> None:
    assert gate("--reasoning").results[-1]["ok"]


def test_another_fingerprint_fails(gate: Gate) -> None:
    seen = fails(gate, "completion", fingerprint=True, fingerprint_value="sha256:1")
    assert seen == "fingerprint 'stub-print', expected 'sha256:1'"


def test_a_long_context_is_asked_with_a_long_prompt(gate: Gate) -> None:
    results = gate("--max-len", "4096", max_model_len=4096).results
    assert "a prompt of 2100 tokens" in [r["seen"] for r in results]


@pytest.mark.parametrize(
    ("drafted", "accepted", "floor", "said"),
    [
        (0, 0, None, "nothing was drafted"),
        (10, 0, None, "not helping: 0 of 10"),
        (10, 1, 0.2, "not helping: 1 of 10 drafted tokens accepted (0.10), the recipe's floor is 0.2"),
    ],
)
def test_a_drafter_that_does_not_help_fails(gate: Gate, drafted: int, accepted: int, floor: Any, said: str) -> None:
    flags = ("--drafted", str(drafted), "--accepted", str(accepted))
    assert said in fails(gate, "speculation", *flags, speculation=True, acceptance_floor=floor)


def test_a_drafter_below_the_floor_passes_with_a_note_where_the_recipe_says_warn(gate: Gate) -> None:
    flags = ("--drafted", "10", "--accepted", "1")
    results = gate(*flags, speculation=True, acceptance_floor=0.2, not_helping="warn").results
    told = [r["told"] for r in results if "told" in r]
    assert told == [r["seen"] for r in results if r.get("check") == "speculation"]
    assert "healthy, but the drafter is not helping" in told[0]


def test_no_drafts_fail_even_where_the_recipe_says_warn(gate: Gate) -> None:
    assert "nothing was drafted" in fails(gate, "speculation", speculation=True, not_helping="warn")


def test_speculation_without_metrics_fails(gate: Gate) -> None:
    assert "/metrics: HTTP 404" in fails(gate, "speculation", "--no-metrics", speculation=True)


def test_an_engine_that_dies_after_its_completion_is_not_steady(gate: Gate) -> None:
    seen = fails(gate, "steady", "--exit-after-completions", "1", steady_s=DEADLINE_S)
    assert seen.endswith("the engine exited with code 6")


def test_no_check_begins_after_the_deadline(gate: Gate) -> None:
    def late() -> str:
        gate.watch.deadline = time.monotonic()  # type: ignore[attr-defined]
        return "late"

    assert fails(gate, "model", identity=late) == "the deadline had passed before this check"


def test_giving_up_ends_a_request_that_gets_no_answer(tmp_path: Path) -> None:
    class GaveUp(Exception):
        pass

    def pause(seconds: float) -> None:
        if watch.passed_at.get("model"):
            raise GaveUp
        time.sleep(seconds)

    path = tmp_path / "s"
    stub = subprocess.Popen([sys.executable, "-P", STUB, "--socket", path, "--hang"])
    try:
        watch = Watch(time.monotonic() + DEADLINE_S, lambda: None, lambda: "it", pause)
        target = Target(socket=path, give_up=lambda: "model" in watch.passed_at)
        with pytest.raises(GaveUp):
            open_gate(watch, target, FACTS, "stub")
    finally:
        stub.kill()
        stub.wait()
