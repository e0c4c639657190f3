"""The scripted server as a process, shared by the tests of the race."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


class StageProcess:
    """The scripted server; `url` of a scenario, and the log of what it really sent."""

    def __init__(self, port: int) -> None:
        self._root = f"http://127.0.0.1:{port}"

    def url(self, scenario: str, ttft_ms: int, tokens: int) -> str:
        return f"{self._root}/{scenario}/{ttft_ms}/{tokens}/v1"

    def log(self) -> list[Any]:
        with urllib.request.urlopen(f"{self._root}/log", timeout=30) as answer:
            return list(json.load(answer))


@pytest.fixture(scope="session")
def stage() -> Iterator[StageProcess]:
    script = Path(__file__).with_name("stage.py")
    core = str(min(os.sched_getaffinity(0)))
    process = subprocess.Popen([sys.executable, script, core], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin
    assert process.stdout
    try:
        yield StageProcess(int(process.stdout.readline()))
    finally:
        process.stdin.close()
        process.wait(10)
        process.stdout.close()
