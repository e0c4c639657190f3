"""What every resource is made of: the protocol, a change, a run, and the three ways to fail."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from .values import UNKNOWN, known

Values = dict[str, Any]


class FailedError(Exception):
    """Nothing changed, or the old state serves again: the stack's state stays as it was."""


class InitFailedError(Exception):
    """The resource is there but does not do its work: it goes into the state with `outputs`, and is tried again."""

    def __init__(self, id: str, outputs: Values, reason: str) -> None:
        super().__init__(reason)
        self.id, self.outputs = id, outputs


class UnreachableError(FailedError):
    """What is true cannot be told from here; never taken for 'gone'."""


@dataclass(frozen=True)
class Change:
    """One leaf that differs: its path as the engine prints it (`pins.engine`, `argv[2]`)."""

    path: str
    kind: str = "update"  # add, update or delete
    replace: bool = False


@dataclass
class Run:
    """One operation as a resource sees it: whom to tell, when to give up, what never to print."""

    urn: str
    timeout_s: float = 0  # 0: none
    cancel: threading.Event = field(default_factory=threading.Event)
    log: Callable[[str, str], None] = lambda text, how: None  # noqa: ARG005 - the default tells nobody
    secrets: tuple[str, ...] = ()
    secret_names: set[str] = field(default_factory=set)  # outputs that leave as secrets
    began: float = field(default_factory=time.monotonic)

    @property
    def stack(self) -> str:
        """The stack's name, as commands that mend are told it; only the URN has it apart from the project's."""
        return self.urn.split("::")[0].removeprefix("urn:pulumi:")

    def say(self, text: str) -> None:
        """A line that stays under Diagnostics."""
        self.log(self.mask(text), "line")

    def warn(self, text: str) -> None:
        """A line that stays, as a warning."""
        self.log(self.mask(text), "warning")

    def show(self, text: str) -> None:
        """Text for the status column, overwritten by the next."""
        self.log(self.mask(text), "column")

    def gave_up(self) -> str | None:
        """Why this operation should end early, or None."""
        if self.cancel.is_set():
            return "cancelled"
        if self.timeout_s and time.monotonic() - self.began > self.timeout_s:
            return f"the custom timeout of {self.timeout_s:g} s has passed"
        return None

    def mask(self, text: str) -> str:
        """`text` without the secrets, plain or as JSON writes them, and without what no message can carry."""
        for secret in sorted(filter(None, self.secrets), key=len, reverse=True):
            for form in (secret, json.dumps(secret)[1:-1]):
                text = text.replace(form, "[secret]")
        return text.encode("utf-8", "replace").decode("utf-8")


class Resource(Protocol):
    """A resource's decisions. `check`, `diff` and `preview` are pure; the others touch the world and may block."""

    token: str
    required: Mapping[str, str]  # input name -> schema type
    optional: Mapping[str, str]
    outputs: Mapping[str, str]  # beyond the echoed inputs
    secrets: tuple[str, ...]

    def check(self, inputs: Values) -> list[tuple[str, str]]:
        """(property, what is wrong with it) for each fault."""

    def diff(self, old_inputs: Values, old_outputs: Values, new: Values) -> list[Change]: ...

    def preview(self, run: Run, old_outputs: Values | None, new: Values) -> Values:
        """Outputs as far as they are known; notes on cost and downtime go to `run.say`."""

    def create(self, run: Run, inputs: Values) -> tuple[str, Values]: ...

    def update(self, run: Run, id: str, old: Values, new: Values) -> Values: ...

    def read(self, run: Run, id: str, inputs: Values, outputs: Values) -> Values | None:
        """Outputs as the world is; None when the cloud or the machine itself says the thing is gone."""

    def delete(self, run: Run, id: str, outputs: Values) -> None: ...


def carry(new: Values, old: Values, outputs: Mapping[str, str]) -> Values:
    """The new inputs with the facts of before: an input that was taken out must not live on among the outputs."""
    return new | {name: old[name] for name in outputs if name in old}


_ODD = re.compile(r"[^A-Za-z0-9_]")  # the engine prints keys with any of these in brackets and quotes


def _quoted(key: str) -> str:
    return key.replace('"', '\\"')


def leaves(old: Any, new: Any, path: str, *, replace: bool = False) -> list[Change]:
    """The leaf paths at which two values differ. An unknown value counts as changed, never as a reason to replace."""
    if old is UNKNOWN or new is UNKNOWN:
        return [Change(path)]
    if isinstance(old, dict) and isinstance(new, dict):
        found = []
        for key in sorted({*old, *new}):
            inner = f'{path}["{_quoted(key)}"]' if _ODD.search(key) else f"{path}.{key}" if path else key
            found += _item(old.get(key), new.get(key), key in old, key in new, inner, replace)
        return found
    if isinstance(old, list) and isinstance(new, list):
        found = []
        for i in range(max(len(old), len(new))):
            a, b = (x[i] if i < len(x) else None for x in (old, new))
            found += _item(a, b, i < len(old), i < len(new), f"{path}[{i}]", replace)
        return found
    same = old == new and isinstance(old, bool) == isinstance(new, bool)  # True == 1
    return [] if same else [Change(path, "update", replace and known(new))]


def _item(old: Any, new: Any, in_old: bool, in_new: bool, path: str, replace: bool) -> list[Change]:
    if in_old and in_new:
        return leaves(old, new, path, replace=replace)
    if (old if in_old else new) is None:
        return []  # an absent optional and a null one are the same wish
    return [Change(path, "add" if in_new else "delete", replace and known(new))]


def compare(old: Values, new: Values, updates: tuple[str, ...], replaces: tuple[str, ...] = ()) -> list[Change]:
    """Leaf changes of the named inputs; inputs named in neither list never make a change."""
    found = []
    for name in updates:
        found += _item(old.get(name), new.get(name), name in old, name in new, name, False)
    for name in replaces:
        found += _item(old.get(name), new.get(name), name in old, name in new, name, True)
    return found
