"""A state and a machine's answer as they are for a healthy stack, and ways to change them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sluicegate.cli.stack import Stack
from sluicegate.cli.truth import Truth

LOCK, OTHER = "sha256:" + "a" * 64, "sha256:" + "b" * 64
CLAIM = {"stack_id": "id", "token": "t", "phase": "owned", "at": "2026-11-30T15:00:00Z", "root": "/r", "run": "/s"}
HEALTHY: dict[str, Any] = {
    "result": "serving", "serving": LOCK, "health": "healthy", "why": None, "restarts": 2, "jobs": [],
    "last_job": {"job": "j-activate", "result": "serving", "cause": None}, "events": [], "machine": CLAIM,
    "engine_owner": "e", "front": {"healthy": True, "why": None, "token": "f", "port": 1},
}  # fmt: skip
# As a first `up` that was cut while its engine was being made leaves the machine, once the job has ended.
CUT = HEALTHY | {"front": None}
NOTHING = HEALTHY | {"result": "down", "serving": None, "health": "none", "front": None, "engine_owner": None}
ENGINE = {
    "recipe": "m/q4", "lock": LOCK, "serving": LOCK, "token": "e", "phases": {"load": 1.26},
    "lastHealthy": {"lock": LOCK, "at": "2026-11-30T16:00:00Z"},
}  # fmt: skip
MADE = {
    "Machine": {"host": {"cloud": "local", "root": "/r", "run": "/s", "stack": "p.dev"}, "token": "t"},
    "Engine": ENGINE, "Front": {"url": "http://127.0.0.1:1", "token": "f"},
}  # fmt: skip


def pending(kind: str, name: str = "serve-0-engine", **inputs: Any) -> dict[str, Any]:
    return {"type": kind, "resource": {"urn": f"urn:pulumi:dev::p::a$b::{name}", "inputs": inputs}}


def state(operations: Any = (), **kinds: Any) -> dict[str, Any]:
    """An exported state; a kind that is None is not in it."""
    made = [{"type": f"sluicegate:index:{k}", "outputs": v} for k, v in (MADE | kinds).items() if v is not None]
    old = {"type": "sluicegate:index:Engine", "delete": True, "outputs": {"recipe": "old"}}
    own = {"type": "pulumi:pulumi:Stack", "urn": "urn:stack"}
    ids = {"type": "random:index/randomId:RandomId", "outputs": {"hex": "id"}}
    return {"deployment": {"resources": [own, ids, old, *made], "pending_operations": list(operations)}}


def truth(there: dict[str, Any] | None = HEALTHY, operations: Any = (), *, kinds: Any = None, **known: Any) -> Truth:
    return Truth(Stack("dev", Path("/p"), state(operations, **(kinds or {}))), there, **known)
