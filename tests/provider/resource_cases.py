"""Good inputs and outputs of each resource."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from sluicegate.provider.engine import Engine
from sluicegate.provider.front import Front
from sluicegate.provider.machine import Machine
from sluicegate.provider.resource import Resource
from sluicegate.provider.volume import Volume
from tests.provider.fake_host import HOST
from tests.recipes.recipe_cases import shipped_lock

KEY = 'a-key-with-"quotes"-in-it'
LOCK = shipped_lock("smollm2-135m/q4")
DIGEST = "sha256:" + hashlib.sha256(LOCK.read_bytes()).hexdigest()
BY_NAME: dict[str, Resource] = {"Volume": Volume(), "Machine": Machine(), "Engine": Engine(), "Front": Front()}

INPUTS: dict[str, dict[str, Any]] = {
    "Volume": {"cloud": "local", "name": "c", "sizeGb": 2, "keep": True, "root": "/r"},
    "Machine": {
        "cloud": "local", "stack": "p.s", "stackId": "1", "gpu": {"type": "cpu", "count": 1}, "claim": "c",
        "search": {"regions": []}, "price": 1.5, "root": "/r",
    },
    "Engine": {
        "host": HOST, "machineId": "local-1", "recipe": "smollm2-135m/q4", "argv": ["--ctx", "2048"], "env": {},
        "pins": {"lock": DIGEST, "engine": "pypi:e==1#sha256:0", "weights": "pypi:w==1#sha256:0"},
        "gpu": {"type": "cpu", "count": 1}, "model": "m", "facts": "{}", "lockFile": str(LOCK), "gateDeadlineS": 1200,
        "retry": 0, "holdS": 120,
    },
    "Front": {
        "host": HOST, "upstream": "current.sock", "model": "m", "apiKey": KEY, "paths": ["/v1/*"], "holdS": 120,
        "keyOverlapS": 60, "deadlineS": 120, "domain": "llm.example.org", "port": 8080,
    },
}  # fmt: skip
FACTS: dict[str, dict[str, Any]] = {
    "Volume": {"disks": [{"where": "/r"}]},
    "Machine": {
        "machineId": "local-1", "address": "127.0.0.1", "zone": "local", "hourlyPrice": 1.5, "attempts": [],
        "token": "tok", "host": HOST,
    },
    "Engine": {
        "lock": "sha256:" + "a" * 64, "serving": "sha256:" + "a" * 64, "upstream": "current.sock",
        "phases": {"load": 1.0}, "lastHealthy": {"lock": "x", "at": "y"}, "record": {}, "token": "tok",
    },
    "Front": {"url": "https://llm.example.org", "token": "tok"},
}  # fmt: skip
OUTPUTS = {name: json.loads(json.dumps(INPUTS[name] | FACTS[name])) for name in INPUTS}
HERE = Path(__file__).parent


def urn(name: str) -> str:
    """The URN of a resource as the engine writes it for one inside a component."""
    return f"urn:pulumi:s::p::sluicegate:index:Deployment$sluicegate:index:{name}::n"
