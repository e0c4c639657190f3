"""Why a start failed, as the host reads it out of the engine's log: a case for each way that is known.

The logs are made up around the texts that tell the causes apart; that an engine still prints those is not shown here.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from sluicegate.provider.host.files import write_json
from sluicegate.provider.host.gate import GateFailed
from sluicegate.provider.host.places import Places
from sluicegate.provider.host.release import Release
from sluicegate.provider.host.starting import cause_of
from sluicegate.recipes.engines.llamacpp import PATTERNS as LLAMACPP
from sluicegate.recipes.engines.vllm_log import PATTERNS as VLLM

HERE = Path(__file__).parent
ENGINES = {"vllm": VLLM, "llamacpp": LLAMACPP}
KNOWN: dict[str, Any] = {name: json.loads((HERE / f"{name}_failures.json").read_text()) for name in ENGINES}
CASES = [pytest.param(name, case, id=f"{name}: {case['row']}") for name in ENGINES for case in KNOWN[name]["cases"]]
DIGEST = "sha256:" + "0" * 64


def classified(folder: Path, engine: str, log: list[str], exit: int | None) -> dict[str, Any]:
    """What the host program makes of a log and the gate's verdict."""
    release = Release(Places(folder, folder, "p.s"), DIGEST)
    write_json(release.folder / "complete", {"digest": DIGEST, "engine": {"patterns": ENGINES[engine]}})
    release.service.log.parent.mkdir(parents=True)
    release.service.log.write_text("\n".join(log) + "\n")
    seen = "not ready in time" if exit is None else f"exited with code {exit}"
    return cause_of(GateFailed("port", seen), release)


@pytest.mark.parametrize(("engine", "case"), CASES)
def test_a_failure_is_named_by_its_cause_and_has_a_mend(engine: str, case: dict[str, Any], tmp_path: Path) -> None:
    noise = {"before": [], "after": []} if case.get("quiet") else KNOWN[engine]["noise"]
    found = classified(tmp_path, engine, [*noise["before"], *case["log"], *noise["after"]], case["exit"])
    assert found["text"].startswith("port: ")
    if case["cause"]:
        assert (found["kind"], found["transient"]) == (case["cause"], case["transient"])
        assert found["mend"]
    elif not case.get("exit_only"):
        assert (found["kind"], found["transient"]) == ("gate", False)


@pytest.mark.parametrize(
    ("engine", "case"),
    [param for param in CASES if dict(param.values[1]).get("exit_only")],  # type: ignore[arg-type] # pytest says object
)
def test_an_end_without_a_word_is_told_by_how_the_gate_words_its_exit(engine: str, case: dict[str, Any]) -> None:
    verdict = str(GateFailed("port", f"exited with code {case['exit']}"))
    hit = next(p for p in ENGINES[engine] if re.search(p["match"], verdict))
    assert hit["cause"] == case["exit_only"]
    assert hit["mend"]


@pytest.mark.parametrize("engine", ENGINES)
def test_what_stands_in_every_log_is_no_cause(engine: str, tmp_path: Path) -> None:
    noise = KNOWN[engine]["noise"]
    assert classified(tmp_path, engine, [*noise["before"], *noise["after"]], 1)["kind"] == "gate"


@pytest.mark.parametrize("engine", ENGINES)
def test_every_cause_has_a_case(engine: str) -> None:
    shown = {case["cause"] or case.get("exit_only") for case in KNOWN[engine]["cases"]}
    assert {p["cause"] for p in ENGINES[engine] if "cause" in p} == shown - {None}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_cause_is_told_in_one_short_line_and_its_mend_too(engine: str) -> None:
    for pattern in ENGINES[engine]:
        for text in (pattern.get("cause", "x"), pattern.get("mend", "x")):
            assert text
            assert len(text) < 200
            assert text.isprintable()
