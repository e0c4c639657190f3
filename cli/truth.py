"""Everything that can be known of a stack from here, asked once: its state, its machine, and the runs of Pulumi."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from sluicegate.provider.clouds import adapter, local
from sluicegate.provider.resource import FailedError

from .runs import Lock, Process, deploying, locks, orphans, project_name
from .stack import CliError, Stack, export, nothing_deployed, pulumi

Values = dict[str, Any]


@dataclass(frozen=True)
class Truth:
    """`there` is the machine's answer to `status`; None: there is no machine, or `unknown` says why it did not answer.

    `locks` is None where the backend does not tell. `config` is the stack's, as far as it was needed.
    """

    stack: Stack
    there: Values | None
    unknown: str | None = None
    locks: list[Lock] | None = field(default_factory=list)
    runs: list[Process] = field(default_factory=list)
    orphans: list[Process] = field(default_factory=list)
    config: Values = field(default_factory=dict)

    @property
    def jobs(self) -> list[str]:
        return list(self.there["jobs"]) if self.there else []

    @property
    def claim(self) -> Values | None:
        """What the machine says of the stack's claim on it."""
        return dict(self.there["machine"]) if self.there and self.there["machine"] else None

    @property
    def at_work(self) -> str | None:
        """Which run is really changing the stack now, if any. A job by itself is none: it needs nobody."""
        held = [f"pulumi ({lock.by})" for lock in self.locks or [] if lock.alive]
        unsure = self.jobs or self.unknown or self.locks is None or any(lock.alive is None for lock in self.locks)
        seen = [f"`{run.command}` (pid {run.pid})" for run in self.runs if unsure]
        return next(iter(held + seen), None)

    def pending(self, *kinds: str) -> list[tuple[str, str]]:
        """(what was being done, name) of each operation the state says is under way; of these kinds only."""
        found = [(op["type"], op["resource"]["urn"].rpartition("::")[2]) for op in self.stack.pending()]
        return [(kind, name) for kind, name in found if not kinds or kind in kinds]

    def recipe_of(self, digest: str | None) -> str | None:
        """The recipe of a lock that the state, an operation that was cut, or the config names."""
        cut = [op["resource"].get("inputs") or {} for op in self.stack.pending()]
        known = [self.stack.outputs("Engine"), *cut, self.config]
        return next((k["recipe"] for k in known if digest and _lock_of(k) == digest and k.get("recipe")), None)

    @property
    def stack_id(self) -> str | None:
        ids = (r for r in self.stack.resources() if str(r["type"]).endswith(":RandomId"))
        return next((r["outputs"]["hex"] for r in ids if (r.get("outputs") or {}).get("hex")), None)


def _lock_of(values: Values) -> str | None:
    lock: str | None = values.get("lock") or (values.get("pins") or {}).get("lock")
    return lock


def look(name: str | None, *, whole: bool = False) -> Truth:
    """Ask everyone. Raises CliError for a stack that is not there and, unless `whole`, for one with nothing in it.

    With `whole` the config is asked for in any case.
    """
    stack = export(name)
    host, there, unknown = stack.outputs("Machine").get("host"), None, None
    config = config_of(stack) if whole or not host else {}
    try:
        host = host or lost_machine(stack, config)
        there = adapter(host["cloud"]).connect(host).ask("status") if host else None
    except FailedError as e:
        unknown = str(e)
    truth = Truth(stack, there, unknown, locks(stack), deploying(stack), orphans(stack), config)
    if not (whole or host or unknown or truth.locks or truth.pending()):
        raise nothing_deployed(stack)
    return truth


def config_of(stack: Stack) -> Values:
    """The stack's config by the names of its keys; empty where Pulumi does not tell it."""
    found: Values = {}
    with suppress(CliError):
        found = json.loads(pulumi(stack.project, "config", "--json", "--stack", stack.name) or "{}")
    return {key.removeprefix("sluicegate:"): v.get("objectValue", v.get("value")) for key, v in found.items()}


def lost_machine(stack: Stack, config: Values) -> Values | None:
    """A claim of this stack that its state does not know, as a run killed between the two leaves it."""
    if config.get("cloud") != "local":
        return None  # elsewhere the tags have to tell
    root = (config.get("machine") or {}).get("root")
    wish = {"stack": f"{project_name(stack)}.{stack.name.rpartition('/')[2]}", "root": root and stack.project / root}
    claim = local.find(local.host_of(wish))
    return claim["host"] if claim else None
