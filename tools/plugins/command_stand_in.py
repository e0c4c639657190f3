"""Stand-in for pulumi-command: the local Command, with the state of the official plugin (its 1.x line).

Kinder than the official one in two ways: a command with secret inputs is not quoted in an error, and a line of any
length can be logged. Not served: assetPaths and archivePaths.
"""

from __future__ import annotations

import os
import secrets
from typing import Any

from tools.plugins import commands
from tools.plugins.handling import FailedError, Run
from tools.plugins.process import serve
from tools.plugins.values import SECRET, UNKNOWN, Properties, has, reveal, secret

_LOGGED = {"stdout": ("stdout",), "stderr": ("stderr",), "none": ()}


class Command:
    """Runs `create`, then `update` (else `create` again) on changes, and `delete` at the end."""

    def check(self, inputs: Properties) -> list[tuple[str, str]]:
        """Only what this stand-in does not serve is refused."""
        mend = "run make official where Pulumi's downloads are reachable, to fetch the real plugin"
        return [
            (key, f"the stand-in for pulumi-command does not serve {key}: {mend}")
            for key in ("assetPaths", "archivePaths")
            if inputs.get(key)
        ]

    def compared(self, inputs: Properties) -> Properties:
        """All inputs count as they are."""
        return inputs

    def replaces(self, key: str) -> bool:
        """A changed trigger; anything else runs the command again in place."""
        return key == "triggers"

    def preview(self, _name: str, inputs: Properties, _old: Properties) -> Properties:
        """What a command prints is known when it has run."""
        return {**inputs, "stdout": UNKNOWN, "stderr": UNKNOWN}

    async def create(self, name: str, inputs: Properties, run: Run) -> tuple[str, Properties]:
        """The id is the name with eight random hex digits, as the official plugin makes it."""
        outputs = await self._run(inputs.get("create"), inputs, {}, run)
        return f"{name}{secrets.token_hex(4)}", outputs

    async def update(self, inputs: Properties, old: Properties, run: Run) -> Properties:
        """By `update`, else by `create`."""
        given = [inputs[key] for key in ("update", "create") if inputs.get(key) is not None]
        return await self._run(given[0] if given else None, inputs, old, run)

    async def delete(self, old: Properties, run: Run) -> None:
        """With the inputs in the state, which are the last ones that ran."""
        await self._run(old.get("delete"), old, old, run)

    async def _run(self, wrapped: Any, inputs: Properties, old: Properties, run: Run) -> Properties:
        given = reveal(inputs)
        previous = {key: reveal(old.get(key)) or "" for key in ("stdout", "stderr")}
        hidden = has(inputs, SECRET)
        if wrapped is None:
            return {**inputs, **{key: _wrapped(text, hidden) for key, text in previous.items()}}
        command = reveal(wrapped)
        # Lines of a command that was given a secret are not shown: they may hold it.
        logged = () if hidden else _LOGGED.get(given.get("logging"), ("stdout", "stderr"))
        try:
            finished = await commands.run(
                commands.arguments(given, command),
                env=commands.environment(given, previous, os.environ),
                folder=given.get("dir"),
                stdin=given.get("stdin"),
                timeout_s=run.timeout_s,
                cancelled=run.engine.cancelled,
                log=dict.fromkeys(logged, run.status),
            )
        except OSError as error:
            raise FailedError(
                f"the command could not be started: {error.strerror or error}: {error.filename}"
            ) from error
        if failure := finished.failure():
            said = finished.streams.both.decode(errors="replace")
            quoted = "a command with secret inputs (text and output withheld)" if hidden else f'"{command}":\n{said}'
            raise FailedError(f"{failure}: running {quoted}")
        printed = {"stdout": finished.streams.stdout, "stderr": finished.streams.stderr}
        texts = {key: value.decode(errors="replace").removesuffix("\n") for key, value in printed.items()}
        return {**inputs, **{key: _wrapped(text, hidden) for key, text in texts.items()}}


def _wrapped(text: str, hidden: bool) -> Any:
    return secret(text) if hidden else text


HANDLERS: dict[str, Any] = {"command:local:Command": Command()}


def main(version: str) -> None:
    """Serve as pulumi-command of this version."""
    serve("command", version, HANDLERS)
