"""A stack from its first `up` to its end, through the pulumi CLI on the real engine, model and front."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import openai
import requests

from tests.stack.harness import Project, Trickle, post, until


def test_the_first_up_serves_and_says_what_it_served(served: Project) -> None:
    out = served.outputs()
    expected = {"url", "model", "api_key", "lock", "recipe", "pins", "accepted", "phases", "attempts", "last_healthy"}
    assert expected | {"record"} <= set(out)
    assert out["lock"] == out["pins"]["lock"] == out["last_healthy"]["lock"] == out["record"]["lock"]
    assert [c["check"] for c in out["record"]["gate"]] == ["port", "identity", "model", "completion", "steady"]
    assert all(c["ok"] for c in out["record"]["gate"])
    assert out["accepted"] == "trial"
    assert out["phases"]["load"] > 0
    assert post(out).json()["usage"]["completion_tokens"] >= 1


def test_a_second_up_is_no_operation_and_restarts_nothing(served: Project) -> None:
    before = served.engine_pid()
    said = served.up("--refresh").out
    assert "12 unchanged" in said
    assert served.pulumi("preview", "--refresh", "--expect-no-changes", "--stack", served.name).code == 0
    assert served.engine_pid() == before


def test_the_openai_client_gets_whole_and_streamed_answers(served: Project) -> None:
    out = served.outputs()
    client = openai.OpenAI(base_url=f"{out['url']}/v1", api_key=out["api_key"], max_retries=0)
    messages = [{"role": "user", "content": "Say hello."}]
    whole = client.chat.completions.create(model=out["model"], messages=messages, max_tokens=12)
    assert whole.choices[0].message.content
    assert whole.usage is not None
    chunks = list(client.chat.completions.create(
        model=out["model"], messages=messages, max_tokens=12, stream=True, stream_options={"include_usage": True}
    ))  # fmt: skip
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text
    assert chunks[-1].usage is not None
    assert client.models.list().data[0].id == out["model"]


def test_only_the_allowed_paths_with_the_key_are_open(served: Project) -> None:
    out = served.outputs()
    assert requests.get(f"{out['url']}/v1/models", timeout=10).status_code == 401
    assert post(out, key="wrong-key-wrong-key").status_code == 401
    for path in ("/metrics", "/props", "/slots", "/invocations", "/health", "/"):
        answer = requests.get(out["url"] + path, timeout=10, headers={"Authorization": f"Bearer {out['api_key']}"})
        assert answer.status_code == 404, path
    assert requests.get(f"{out['url']}/lb-health", timeout=10).status_code == 200


def test_the_commands_of_a_user_work_on_it(served: Project) -> None:
    def sluicegate(*words: str) -> str:
        done = subprocess.run(["sluicegate", *words, "--stack", served.name], cwd=served.folder, env=served.env,
                              capture_output=True, text=True, timeout=120, check=False)  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    out = served.outputs()
    assert "tokens a second, first after" in sluicegate("ask", "Say hello.", "--max-tokens", "24")
    assert "healthy, serving" in sluicegate("status")
    assert json.loads(sluicegate("status", "--json"))["faults"] == []
    assert "slot" in sluicegate("logs", "-n", "20")
    lines = sluicegate("env").splitlines()
    assert lines == [f"export OPENAI_BASE_URL={out['url']}/v1", f"export OPENAI_API_KEY={out['api_key']}"]


def test_the_key_is_nowhere_in_clear(served: Project) -> None:
    key = served.outputs()["api_key"]
    seen = {
        "state": served.state(),
        "preview": served.pulumi("preview", "--diff", "--stack", served.name).text,
        "preview --json": served.pulumi("preview", "--json", "--stack", served.name).text,
        "outputs": served.pulumi("stack", "output", "--json", "--stack", served.name).out,
    }
    for path in served.home.rglob("*"):
        if path.is_file() and path.name not in ("key", "key.previous"):
            seen[str(path)] = path.read_text(errors="replace")
    for pid in served.processes():
        for part in ("cmdline", "environ"):
            seen[f"{part} of {pid}"] = Path(f"/proc/{pid}/{part}").read_text(errors="replace")
    assert [place for place, text in seen.items() if key in text] == []
    for name in ("key", "key.previous"):
        assert (served.home / "front" / name).stat().st_mode & 0o777 == 0o600


def test_a_changed_context_length_swaps_in_place_and_fails_no_request(served: Project) -> None:
    before, shipped = served.engine_pid(), served.config["recipe"]
    longer = served.vary("smollm2-135m/q4", "longer", {"serve.max_model_len": 4096, "serve.max_num_seqs": 2})
    served.use(longer)
    paths = served.preview()["Engine"]["detailedDiff"]
    assert set(paths) == {"argv[7]", "pins.lock", "recipe"}  # 4 slots of 2,048 tokens are 2 of 4,096: same --ctx-size
    with Trickle(served.outputs()) as trickle:
        served.up()
    assert trickle.failed == []
    assert trickle.sent > 3
    assert not os.path.exists(f"/proc/{before}")
    gate = served.outputs()["record"]["gate"]
    assert any("4096 tokens of context" in c["seen"] for c in gate)
    assert any("a prompt of" in c["seen"] for c in gate)
    served.use(shipped)
    served.up()


def test_recipes_are_switched_to_f16_and_to_a_drafter_whose_acceptance_is_measured(served: Project) -> None:
    for recipe in ("smollm2-135m/f16", "smollm2-135m/q4-ngram"):
        digest = served.use(recipe)
        assert served.ops() == {"Volume": "same", "Machine": "same", "Engine": "update", "Front": "same"}
        with Trickle(served.outputs()) as trickle:
            served.up()
        assert trickle.failed == []
        assert served.outputs()["lock"] == digest
    checks = {c["check"]: c["seen"] for c in served.outputs()["record"]["gate"]}
    assert "drafted tokens accepted" in checks["speculation"]
    served.use("smollm2-135m/q4")
    served.up()


def test_a_rotated_key_fails_no_request_and_leaves_the_engine_alone(served: Project) -> None:
    old, engine = served.outputs(), served.engine_pid()
    served.set(endpoint={"keyRotation": "2", "keyOverlapS": 60})
    assert served.ops() == {"Volume": "same", "Machine": "same", "Engine": "same", "Front": "update"}
    with Trickle(old) as trickle:
        served.up()
    new = served.outputs()
    assert trickle.failed == []
    assert new["api_key"] != old["api_key"]
    assert served.engine_pid() == engine
    assert post(new).status_code == post(old).status_code == 200
    served.set(endpoint={"keyRotation": "3", "keyOverlapS": 0})
    served.up()
    assert post(new).status_code == post(old).status_code == 401
    assert post(served.outputs()).status_code == 200


def test_two_stacks_side_by_side_do_not_know_of_each_other(served: Project, project: Callable[..., Project]) -> None:
    other = project("smollm2-135m/q4")
    other.up()
    mine, theirs = served.outputs(), other.outputs()
    assert mine["url"] != theirs["url"]
    assert mine["api_key"] != theirs["api_key"]
    assert post(theirs, key=mine["api_key"]).status_code == 401
    engine = served.engine_pid()
    other.destroy()
    assert served.engine_pid() == engine
    assert post(served.outputs()).status_code == 200


def test_destroy_leaves_no_process_socket_or_file_and_keeps_the_cache(project: Callable[..., Project]) -> None:
    p = project()
    p.up()
    run, cache = Path(json.loads((p.home / "machine.json").read_text())["run"]), p.root / "sources"
    assert list(run.glob("*.sock"))
    kept = sorted(f.name for f in cache.glob("*/complete"))
    said = p.destroy().text
    assert "kept the cache at" in said
    assert not p.home.exists()
    assert not run.exists()
    until("every process has ended", lambda: not p.processes(), 20)
    assert sorted(f.name for f in cache.glob("*/complete")) == kept
    assert "resources" not in json.loads(p.state())["deployment"]


def test_destroy_removes_the_cache_too_when_told_so(project: Callable[..., Project], tmp_path: Path) -> None:
    p = project(root=tmp_path / "root", cache={"keep": False})
    p.up()
    assert list((tmp_path / "root" / "sources").iterdir())
    p.destroy()
    assert not (tmp_path / "root").exists()


def test_preview_needs_no_network_and_no_environment(project: Callable[..., Project]) -> None:
    p = project()
    bare = {k: p.env[k] for k in ("PATH", "HOME", "PULUMI_HOME", "PULUMI_BACKEND_URL", "PULUMI_CONFIG_PASSPHRASE")}
    bare |= {"PULUMI_SKIP_UPDATE_CHECK": "true", "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true"}
    # Loopback is all that pulumi and its plugins speak over.
    words = f"ip link set lo up && exec pulumi preview --stack {p.name} --non-interactive"
    alone = ["unshare", "--map-root-user", "--net", "sh", "-c", words]
    done = subprocess.run(alone, cwd=p.folder, env=bare, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "12 to create" in done.stdout
