"""Engine: prepare, start, gate, and revert on failure, in one Update. Its plain inputs are the pins, argv and env."""

from __future__ import annotations

import hashlib
import json
import secrets
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .clouds import adapter
from .engine_text import Teller, failure_text, preview_notes, short
from .hostclient import Host, HostError
from .resource import Change, FailedError, InitFailedError, Resource, Run, UnreachableError, Values, carry, compare
from .values import UNKNOWN, known

TOOL = "0.1.0"
RUNNER = {"llamacpp": Path(__file__).with_name("llama_server.py")}


class Engine(Resource):
    token = "sluicegate:index:Engine"
    required = {
        "host": "object", "machineId": "string", "recipe": "string", "pins": "object", "argv": "array", "env": "object",
        "gpu": "object", "model": "string", "facts": "string", "lockFile": "string", "gateDeadlineS": "number",
        "retry": "integer", "holdS": "number",
    }  # fmt: skip
    optional = {"hourlyPrice": "number"}
    outputs = {
        "lock": "string", "serving": "string", "upstream": "string", "phases": "object", "lastHealthy": "object",
        "record": "object", "token": "string",
    }  # fmt: skip
    secrets = ()

    def check(self, inputs: Values) -> list[tuple[str, str]]:
        faults = []
        if known(pins := inputs["pins"]):
            faults += [(f"pins.{n}", "missing; expected a string")
                       for n in ("lock", "engine", "weights") if not isinstance(pins.get(n), str)]  # fmt: skip
        for name, least in (("gateDeadlineS", 1), ("holdS", 0), ("retry", 0)):
            if known(value := inputs[name]) and value < least:
                faults.append((name, f"{value!r} is too small; allowed: a number from {least}"))
        return faults

    def diff(self, old_inputs: Values, old_outputs: Values, new: Values) -> list[Change]:
        # Deadlines, retries, the price and where the lock file lies change nothing that serves.
        return compare(old_inputs, new, ("pins", "argv", "env", "host", "machineId", "recipe", "model", "gpu"))

    def preview(self, run: Run, old_outputs: Values | None, new: Values) -> Values:
        lock = new["pins"]["lock"] if known(new["pins"]) else UNKNOWN
        facts = dict.fromkeys(self.outputs, UNKNOWN) | {"lock": lock, "upstream": "current.sock"}
        if old_outputs:
            for note in preview_notes(old_outputs, new):
                run.say(note)
            facts["token"] = old_outputs["token"]
        return {**new, **facts}

    def create(self, run: Run, inputs: Values) -> tuple[str, Values]:
        token = secrets.token_hex(16)
        id = f"engine-{token[:12]}"
        empty = inputs | {"lock": None, "serving": None, "upstream": None, "phases": {}, "lastHealthy": None}
        empty |= {"record": None, "token": token}
        try:
            return id, self._serve(run, inputs, empty)
        except FailedError as e:
            raise InitFailedError(id, empty, str(e)) from e

    def update(self, run: Run, id: str, old: Values, new: Values) -> Values:
        try:
            return self._serve(run, new, old)
        except NothingServesError as e:
            lost = old | {"serving": None}
            raise InitFailedError(id, lost, str(e)) from e

    def read(self, run: Run, id: str, inputs: Values, outputs: Values) -> Values | None:
        try:
            there = _host(outputs).ask("status")
        except HostError as e:
            raise UnreachableError(f"cannot tell what serves: {e}") from e
        if there["machine"] is None or there["engine_owner"] != outputs["token"]:
            return None
        if there["result"] != "serving":
            raise InitFailedError(id, outputs | {"serving": None}, f"nothing serves: {there['why'] or 'no release'}")
        found = outputs | {"serving": there["serving"]}
        if there["serving"] != outputs["lock"]:
            reason = f"{short(there['serving'])} serves, the stack's state says {short(outputs['lock'])}"
            raise InitFailedError(id, found, reason)
        if there["health"] == "busy":
            run.warn(f"busy: {there['why']}")
        return found

    def delete(self, run: Run, id: str, outputs: Values) -> None:
        _host(outputs).ask("deactivate", {"what": "engine", "token": outputs["token"]})

    def _serve(self, run: Run, new: Values, old: Values) -> Values:
        """Make `new` serve; outputs when it does. Raises FailedError when the old one serves, else NothingServes."""
        host, tell = _host(new), Teller(run)
        for job in host.ask("status", {"engine": False})["jobs"]:
            run.say(f"a job of an earlier run is still at it: {job}")
            host.follow(run, job, tell)
        spec = _spec(new, old["token"])
        done = _job(host, run, "prepare", spec, tell)
        if done["result"] == "prepared":
            phases = done["phases"]
            done = _job(host, run, "activate", spec, tell)
            done["phases"] = phases | done["phases"]
        if done["result"] != "serving":
            after = _after(new, old)
            text = failure_text(run, new, done, after)
            raise NothingServesError(text) if after["result"] == "down" else FailedError(text)
        run.say(f"serving {new['recipe']} ({short(new['pins']['lock'])}): {tell.summary(done)}")
        at = _now()
        took = done["phases"]
        if was := done.get("was"):  # it served already: this run started nothing
            took = (old.get("lock") == new["pins"]["lock"] and old["phases"]) or took | was.get("phases", {})
        return carry(new, old, self.outputs) | {
            "lock": new["pins"]["lock"], "serving": new["pins"]["lock"], "upstream": "current.sock",
            "phases": took,
            "lastHealthy": {"lock": new["pins"]["lock"], "at": at},
            "record": _record(new, done | {"phases": took}, at),
        }  # fmt: skip


class NothingServesError(FailedError):
    """The change failed and nothing answers now."""


def _job(host: Host, run: Run, verb: str, spec: Values, tell: Teller) -> Values:
    """A job's answer. One that was killed whole, and can answer for nothing, is asked for once more."""
    done = host.run_job(run, verb, spec, tell)
    if done["result"] == "down" and not run.gave_up():
        run.warn(f"the `{verb}` job was killed; it is started once more")
        done = host.run_job(run, verb, spec, tell)
    return done


def _host(values: Values) -> Host:
    host: Host = adapter(values["host"]["cloud"]).connect(values["host"])
    return host


def _after(new: Values, old: Values) -> Values:
    """What serves after a failure: on the new machine, else on the one before, which is deleted only when all is well.

    `result` is serving, down, or unknown when that cannot be told from here.
    """
    try:
        there: Values = _host(new).ask("status")
        if there["result"] == "serving" or old["host"] == new["host"]:
            return there
    except FailedError:
        if old["host"] == new["host"]:
            return {"result": "unknown", "serving": None}
    try:
        before: Values = _host(old).ask("status")
    except FailedError:
        return {"result": "down", "serving": None}  # given back before the new one was asked for
    return before


def _spec(new: Values, token: str) -> Values:
    """What the host needs to make these pins serve. The lock file is held against its seal once more."""
    path = Path(new["lockFile"])
    try:
        raw = path.read_bytes()
    except OSError as e:
        raise FailedError(f"cannot read the lock file {path}: {e.strerror}") from e
    if (got := f"sha256:{hashlib.sha256(raw).hexdigest()}") != new["pins"]["lock"]:
        raise FailedError(
            f"{path} is {got}, the pins say {new['pins']['lock']}; run: sluicegate recipe pin {new['recipe']}"
        )
    lock: dict[str, Any] = json.loads(raw)
    runner = RUNNER.get(lock["engine"]["name"])
    if runner is None:
        raise FailedError(
            f"engine {lock['engine']['name']!r} needs the container runtime; allowed here: {', '.join(RUNNER)}"
        )
    return {
        "digest": new["pins"]["lock"], "lock": lock, "engine": json.loads(new["facts"]), "model": new["model"],
        "command": [sys.executable, "-P", str(runner)], "files_base": str(path.resolve().parents[3]),
        "deadline_s": new["gateDeadlineS"], "revert_s": max(120, new["gateDeadlineS"]), "retry": new["retry"],
        "token": token,
    }  # fmt: skip


def _record(new: Values, done: Values, at: str) -> Values:
    return {
        "schema": 1, "lock": new["pins"]["lock"], "gpu": new["gpu"], "accepted_at": at, "gate": done["gate"],
        "phases": done["phases"], "speed": None,
        "evidence": {"driver": None, "cloud": new["host"]["cloud"], "tool": TOOL},
    }  # fmt: skip


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
