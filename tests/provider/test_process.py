"""The plugin as the process the engine starts: one line on stdout, silence on stderr, and an end with its engine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from sluicegate.provider.values import encode
from tests.provider.resource_cases import INPUTS, urn
from tests.skips import cannot_here

ROOT = Path(__file__).parents[2]
PLUGIN = [str(ROOT / ".venv" / "bin" / "pulumi-resource-sluicegate")]
LIMIT_S = 20


@contextmanager
def started(command: list[str] = PLUGIN, **options: Any) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=LIMIT_S)


def port(process: subprocess.Popen[str]) -> int:
    assert process.stdout
    return int(process.stdout.readline())


def info(port_: int) -> str:
    with grpc.insecure_channel(f"127.0.0.1:{port_}") as channel:
        return str(
            provider_pb2_grpc.ResourceProviderStub(channel).GetPluginInfo(empty_pb2.Empty(), timeout=LIMIT_S).version
        )


def within(condition: Callable[[], bool], limit_s: float = LIMIT_S) -> bool:
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("ignored", [False, True], ids=["as in a terminal", "ignored as in a background job"])
def test_it_prints_a_port_answers_there_and_ends_at_once_when_its_engine_does(ignored: bool) -> None:
    with started(preexec_fn=(lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)) if ignored else None) as process:
        assert info(port(process)) == "0.1.0"
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT_S)
        assert (process.returncode, out, err) == (0, "", "")
        # The engine waits 5 s for it at the end of each of its runs.
        assert time.monotonic() - began < 4


def test_it_outlives_a_sigint_for_as_long_as_an_operation_runs(tmp_path: Path) -> None:
    # A host program that answers only when it is let go: the operation is a Read that waits for it.
    gate = tmp_path / "go"
    os.mkfifo(gate)
    (tmp_path / "sitecustomize.py").write_text(
        "import sluicegate.provider.clouds.local as l\n"
        f"l.find = lambda host: (open({str(gate)!r}).read(), {{'token': 'tok'}})[1]\n"
    )
    held: list[int] = []
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    with started(env={**os.environ, "PYTHONPATH": path}) as process:
        with grpc.insecure_channel(f"127.0.0.1:{port(process)}") as channel:
            stub = provider_pb2_grpc.ResourceProviderStub(channel)
            there = INPUTS["Machine"] | {
                "token": "tok",
                "host": {"cloud": "local", "root": "/", "run": "/", "stack": "s"},
            }
            request = provider_pb2.ReadRequest(id="m", urn=urn("Machine"), properties=encode(there))
            answer = stub.Read.future(request, timeout=LIMIT_S)
            assert within(lambda: opened(gate, held))  # the operation waits at the other end
            process.send_signal(signal.SIGINT)
            assert not within(lambda: process.poll() is not None, 1)
            os.close(held.pop())
            assert answer.result(LIMIT_S).id == "m"
        assert within(lambda: process.poll() is not None)
        assert process.returncode == 0


def opened(fifo: Path, held: list[int]) -> bool:
    """Hold the writing end, once something reads at the other."""
    try:
        held.append(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True


def test_it_ends_when_the_engine_was_killed_without_a_word() -> None:
    middle = f"import subprocess, time\np = subprocess.Popen({PLUGIN!r})\nprint(p.pid, flush=True)\ntime.sleep(60)"
    with started([sys.executable, "-c", middle]) as parent:
        assert parent.stdout
        lines = {int(parent.stdout.readline()), int(parent.stdout.readline())}
        pid = next(n for n in lines if Path(f"/proc/{n}/cmdline").exists() and b"sluicegate" in _command(n))
        parent.kill()
        parent.wait()
        try:
            assert within(lambda: b"sluicegate" not in _command(pid))
        finally:
            if b"sluicegate" in _command(pid):
                os.kill(pid, signal.SIGKILL)


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_it_starts_with_an_empty_environment() -> None:
    with started(env={}, cwd="/") as process:
        assert info(port(process)) == "0.1.0"


def test_it_starts_without_a_network() -> None:
    unshare = ["unshare", "--user", "--map-root-user", "--net"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
        cannot_here("network namespaces")
    with started([*unshare, *PLUGIN], stdin=subprocess.DEVNULL) as process:
        assert port(process) > 0


def test_neither_a_clouds_sdk_nor_a_model_library_is_loaded_before_it_is_needed() -> None:
    program = (
        "import sys, sluicegate.provider.main, sluicegate.provider.serving\n"
        "print(*sorted({m.split('.')[0] for m in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    loaded = set(done.stdout.split())
    assert "grpc" in loaded
    assert not loaded & {"boto3", "botocore", "nebius", "pydantic", "requests", "paramiko", "huggingface_hub"}


def test_our_own_rooms_load_nothing_that_pulumi_has_not_loaded_already() -> None:
    """Pulumi's own Python loads yaml and dill; none of ours may add to what every run pays."""
    program = (
        "import sys, grpc, google.rpc.status_pb2, pulumi.runtime.proto.provider_pb2_grpc\n"
        "before = set(sys.modules)\n"
        "import sluicegate.provider.main, sluicegate.provider.serving\n"
        "print(*sorted({m.split('.')[0] for m in set(sys.modules) - before}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert set(done.stdout.split()) <= {"sluicegate", "secrets", "hmac", "pulumi", "google"} | set(
        sys.stdlib_module_names
    )


def test_pulumi_reads_the_schema_from_the_plugin(tmp_path: Path) -> None:
    from tools import environment

    command = ["pulumi", "package", "get-schema", PLUGIN[0]]
    env = environment.environ()
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert '"sluicegate:index:Engine"' in done.stdout
