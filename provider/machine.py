"""Machine: where the engine runs. What the search found is an output, never an input."""

from __future__ import annotations

import secrets

from . import life
from .clouds import adapter
from .clouds.calls import CREATING, Found, Tags
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
        token, name = secrets.token_hex(16), run.urn.rpartition("::")[2]
        cloud = adapter(inputs["cloud"])
        tags: Tags = {"stack_id": inputs["stackId"], "name": name, "token": token, "phase": CREATING}
        got = life.obtain(cloud, inputs, tags, run)
        id = f"{inputs['cloud']}-{token[:12]}"
        outputs = inputs | _facts(inputs, got.machine) | {"machineId": id, "token": token, "attempts": got.attempts}
        trouble = got.trouble
        try:
            life.own(cloud, inputs, got.machine)
        except FailedError as e:
            trouble = trouble or str(e)
        if trouble:
            raise InitFailedError(id, outputs, trouble)  # it is claimed, and may cost: it must be in the state
        run.say(f"machine {id} in {outputs['zone']}: {outputs['host']['root']}")
        return id, outputs

    def update(self, run: Run, id: str, old: Values, new: Values) -> Values:
        machine = life.resume(adapter(old["cloud"]), old, run)
        return carry(new, old, self.outputs) | _facts(new, machine)

    def read(self, run: Run, id: str, inputs: Values, outputs: Values) -> Values | None:
        return outputs if life.is_there(adapter(outputs["cloud"]), outputs) else None

    def delete(self, run: Run, id: str, outputs: Values) -> None:
        if not adapter(outputs["cloud"]).release(outputs["host"], outputs["token"]):
            run.say(f"left alone: what is at {outputs['host']['root']} now belongs to another claim of this stack")


def _facts(wish: Values, machine: Found) -> Values:
    price = wish["price"] if wish.get("price") is not None else machine["price"]
    return {"host": machine["host"], "address": machine["address"], "zone": machine["zone"], "hourlyPrice": price}
