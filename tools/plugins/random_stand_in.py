"""Stand-in for pulumi-random: RandomId and RandomPassword, with the state of the official plugin (its 4.x line).

One output is left out: RandomPassword's bcryptHash, which would need a dependency of its own.
"""

from __future__ import annotations

import base64
import secrets
from typing import Any

from tools.plugins import passwords
from tools.plugins.handling import Run
from tools.plugins.process import serve
from tools.plugins.values import UNKNOWN, Properties, reveal, secret

# The official state's schema mark; without it the official plugin would take the state for a much older one.
_PASSWORD_META = '{"schema_version":"3"}'


class RandomId:
    """Bytes from the system, shown four ways."""

    def check(self, inputs: Properties) -> list[tuple[str, str]]:
        """`byteLength` is a whole number from 1 on."""
        given = reveal(inputs.get("byteLength"))
        if given == UNKNOWN or (isinstance(given, float) and given >= 1 and given == int(given)):
            return []
        return [("byteLength", f"byteLength is {given!r}: give a whole number, 1 or more")]

    def compared(self, inputs: Properties) -> Properties:
        """All inputs count as they are."""
        return inputs

    def replaces(self, _key: str) -> bool:
        """A random value never changes in place."""
        return True

    def preview(self, _name: str, inputs: Properties, old: Properties) -> Properties:
        """Known only once made."""
        return {"b64Std": UNKNOWN, "b64Url": UNKNOWN, "dec": UNKNOWN, "hex": UNKNOWN, **old, **inputs}

    async def create(self, _name: str, inputs: Properties, _run: Run) -> tuple[str, Properties]:
        """The id is the URL-safe text without the prefix."""
        raw = secrets.token_bytes(int(reveal(inputs["byteLength"])))
        prefix = reveal(inputs.get("prefix")) or ""
        url = base64.urlsafe_b64encode(raw).decode().rstrip("=")
        made = {
            "b64Std": prefix + base64.b64encode(raw).decode(),
            "b64Url": prefix + url,
            "dec": prefix + str(int.from_bytes(raw)),
            "hex": prefix + raw.hex(),
            "id": url,
        }
        return url, {**inputs, **made}

    async def update(self, inputs: Properties, old: Properties, _run: Run) -> Properties:
        """Nothing random moves; only what the engine asks to be remembered of the inputs."""
        return {**old, **inputs}

    async def delete(self, _old: Properties, _run: Run) -> None:
        """There is nothing outside the state."""


class RandomPassword(RandomId):
    """A secret text."""

    def check(self, inputs: Properties) -> list[tuple[str, str]]:
        """Lengths and kinds that can be met."""
        return passwords.faults(reveal(inputs))

    def compared(self, inputs: Properties) -> Properties:
        """An input left out and the same one given with its default do not differ."""
        return passwords.filled(inputs)

    def preview(self, _name: str, inputs: Properties, old: Properties) -> Properties:
        """Known only once made, and secret then."""
        return {"result": secret(UNKNOWN), **old, **passwords.filled(inputs)}

    async def create(self, _name: str, inputs: Properties, _run: Run) -> tuple[str, Properties]:
        """The id is the official plugin's constant."""
        filled = passwords.filled(inputs)
        result = passwords.generate(reveal(filled))
        return "none", {**filled, "__meta": _PASSWORD_META, "id": "none", "result": secret(result)}

    async def update(self, inputs: Properties, old: Properties, _run: Run) -> Properties:
        """As for RandomId, with the defaults in the state."""
        return {**old, **passwords.filled(inputs)}


HANDLERS: dict[str, Any] = {
    "random:index/randomId:RandomId": RandomId(),
    "random:index/randomPassword:RandomPassword": RandomPassword(),
}


def main(version: str) -> None:
    """Serve as pulumi-random of this version."""
    serve("random", version, HANDLERS)
