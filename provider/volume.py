"""Volume: a claim on disk space. It names no place; the machine makes the disk where it lands."""

from __future__ import annotations

from .clouds import adapter
from .resource import Change, FailedError, Resource, Run, Values, carry, compare
from .values import UNKNOWN


class Volume(Resource):
    token = "sluicegate:index:Volume"
    required = {"cloud": "string", "name": "string", "sizeGb": "number", "keep": "boolean"}
    optional = {"throughput": "number", "root": "string"}
    outputs = {"disks": "array"}
    secrets = ()

    def check(self, inputs: Values) -> list[tuple[str, str]]:
        size = inputs["sizeGb"]
        if size is not UNKNOWN and not size > 0:
            return [("sizeGb", f"{size!r} is not a size; allowed: a number of GB above 0")]
        return []

    def diff(self, old_inputs: Values, old_outputs: Values, new: Values) -> list[Change]:
        return compare(old_inputs, new, ("sizeGb", "keep", "throughput", "root"), ("cloud", "name"))

    def preview(self, run: Run, old_outputs: Values | None, new: Values) -> Values:
        stays = old_outputs and old_outputs.get("root") == new.get("root")
        return new | {"disks": old_outputs["disks"] if old_outputs and stays else UNKNOWN}

    def create(self, run: Run, inputs: Values) -> tuple[str, Values]:
        return inputs["name"], inputs | {"disks": adapter(inputs["cloud"]).disks(inputs)}

    def update(self, run: Run, id: str, old: Values, new: Values) -> Values:
        disks = old["disks"] + [d for d in adapter(new["cloud"]).disks(new) if d not in old["disks"]]
        return carry(new, old, self.outputs) | {"disks": disks}

    def read(self, run: Run, id: str, inputs: Values, outputs: Values) -> Values | None:
        return outputs

    def delete(self, run: Run, id: str, outputs: Values) -> None:
        cloud = adapter(outputs["cloud"])
        for disk in outputs["disks"]:
            try:
                if not outputs["keep"]:
                    run.say(f"removed {len(cloud.empty_disk(disk))} cached sources from {disk['where']}")
                elif size := cloud.disk_bytes(disk) / 1e9:
                    run.say(f"kept the cache at {disk['where']}, {size:.2f} GB (sluicegate:cache.keep is true)")
            except FailedError as e:
                # A place that was wished for and could never be used must not keep the stack from its end.
                run.say(f"left alone: {disk['where']}: {e}")
