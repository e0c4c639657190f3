"""Machine: where the engine runs. What the search found is an output, never an input."""

from __future__ import annotations

import secrets
import time

from .clouds import adapter
from .resource import Change, FailedError, InitFailedError, Resource, Run, Values, carry, compare
from .values import UNKNOWN, known


class Machine(Resource):
    token = "sluicegate:index:Machine"
    required = {"cloud": "string", "stack": "string", "stackId": "string", "gpu": "object", "claim": "string"}
    optional = {"search": "object", "price": "number", "root": "string"}
    outputs = {
        "machineId": "string", "address": "string", "zone": "string", "hourlyPrice": "number", "attempts": "array",
        "token": "string", "host": "object",
    }  # fmt: skip
    secrets = ()

    def check(self, inputs: Values) -> list[tuple[str, str]]:
        if inputs["cloud"] == "local" and known(inputs["gpu"]) and inputs["gpu"].get("type") != "cpu":
            return [("gpu.type", f"{inputs['gpu'].get('type')!r} is not on cloud local; allowed: cpu")]
        return []

    def diff(self, old_inputs: Values, old_outputs: Values, new: Values) -> list[Change]:
        # The search is a wish: a machine moves only when where it runs is outside of it (local: there is one place).
        return compare(old_inputs, new, ("price",), ("cloud", "gpu", "root", "stack", "stackId"))

    def preview(self, run: Run, old_outputs: Values | None, new: Values) -> Values:
        facts = {name: (old_outputs or {}).get(name, UNKNOWN) for name in self.outputs}
        return new | facts | {"hourlyPrice": new.get("price")}

    def create(self, run: Run, inputs: Values) -> tuple[str, Values]:
        token = secrets.token_hex(16)
        began = time.monotonic()
        cloud = adapter(inputs["cloud"])
        facts = cloud.claim(inputs, token)
        attempt = {
            "place": facts["zone"], "market": inputs["cloud"], "outcome": "adopted" if facts["adopted"] else "accepted",
            "reason": None, "next": None, "s": round(time.monotonic() - began, 3),
        }  # fmt: skip
        id = f"{inputs['cloud']}-{token[:12]}"
        outputs = inputs | {k: v for k, v in facts.items() if k != "adopted"}
        outputs |= {"machineId": id, "token": token, "attempts": [attempt]}
        try:
            cloud.own(facts["host"], token)
        except FailedError as e:
            raise InitFailedError(id, outputs, str(e)) from e  # it is claimed, and may cost: it must be in the state
        run.say(f"machine {id} in {facts['zone']}: {facts['host']['root']}")
        return id, outputs

    def update(self, run: Run, id: str, old: Values, new: Values) -> Values:
        return carry(new, old, self.outputs) | {"hourlyPrice": new.get("price")}

    def read(self, run: Run, id: str, inputs: Values, outputs: Values) -> Values | None:
        there = adapter(outputs["cloud"]).find(outputs["host"])
        return outputs if there and there["token"] == outputs["token"] else None

    def delete(self, run: Run, id: str, outputs: Values) -> None:
        if not adapter(outputs["cloud"]).release(outputs["host"], outputs["token"]):
            run.say(f"left alone: what is at {outputs['host']['root']} now belongs to another claim of this stack")
