"""Faults of a stack's config: each with the command that mends it, none with a secret's value."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import replace

from sluicegate.recipes.faults import Fault, Faults

# A key that is not one of ours, yet named like a secret: its value is one that was put in the wrong place.
_SECRET_NAME = re.compile(r"(?i)(api|ssh|private|access)[._-]?key|^key$|token$|auth|secret|passw|credential")
_NEVER_SHOWN = ("ssh", "aws", "nebius")  # maps of access to a cloud, where such values are put by mistake
HIDDEN = "[not shown]"


class ConfigFaults(Faults):
    """Collects faults of one stack; `secret` are its keys that Pulumi keeps encrypted."""

    def __init__(self, stack: str, prefix: str, secret: set[str]) -> None:
        super().__init__()
        self._stack, self._prefix, self._secret = stack, prefix, secret

    def has(self, key: str) -> bool:
        """Whether something was found wrong with this very key."""
        return any(fault.key == key for fault in self.found)

    def remove(self, path: str, *, whole: bool = False) -> str:
        """The command that takes a key out; `whole`: `path` is a key as it stands in the file, dots and all."""
        if not path.isprintable() or path.endswith('\\"]'):  # no shell or no `--path` takes it (a backslash at its end)
            return f"take the key out of Pulumi.{self._stack}.yaml"
        named = shlex.quote(self._prefix + path) if whole else self._named(path)
        return f"pulumi config rm {named} --stack {self._stack}"

    def put(self, path: str, value: str) -> str:
        """The command that sets a key."""
        return f"pulumi config set {self._named(path)} {value} --stack {self._stack}"

    def of_recipe(self, faults: Iterable[Fault]) -> None:
        """Faults of recipe, lock and pins; what pins a recipe is told which stack, what is no pin is removed."""
        for fault in faults:
            mend = self.remove(fault.key) if fault.mend.startswith("remove it") else self._for_stack(fault.mend)
            self.found.append(replace(fault, allowed=self._for_stack(fault.allowed), mend=mend))

    def shown(self) -> Iterator[Fault]:
        """What was found, as it may be printed."""
        for fault in self.found:
            names = re.split(r'[.\[\]"]+', fault.key)
            hide = {fault.key, names[0]} & {*self._secret, *_NEVER_SHOWN} or any(map(_SECRET_NAME.search, names))
            known = fault.value is None or fault.value == "[in clear]"
            yield replace(fault, value=HIDDEN if hide and not known else _without_secrets(fault.value))

    def _for_stack(self, text: str) -> str:
        return re.sub(r"`(sluicegate recipe pin [^`]+)`", rf"`\1 --stack {self._stack}`", text)

    def _named(self, path: str) -> str:
        top, rest = re.fullmatch(r"([^.\[]*)(.*)", path, re.DOTALL).groups()  # type: ignore[union-attr]
        return f"--path {shlex.quote(f'{self._prefix}{top}{rest}')}" if rest else shlex.quote(f"{self._prefix}{top}")


def _without_secrets(value: object) -> object:
    if isinstance(value, dict):
        return {k: HIDDEN if _SECRET_NAME.search(str(k)) else _without_secrets(v) for k, v in value.items()}
    return [_without_secrets(item) for item in value] if isinstance(value, list) else value
