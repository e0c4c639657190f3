"""The unit file of a supervisor."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from .self import _KEPT

RESTART_S = 1
MARGIN_S = 15  # what a supervisor may take beside the time its child has to finish


class UnitFailed(RuntimeError):
    """systemd cannot be made to do what was asked; the message ends with the mend."""

    kind, transient = "machine", True


def text_of(service: Path, argv: list[str], environ: Mapping[str, str], stop_s: float, stack: str, user: bool) -> str:
    """The unit file. Raises UnitFailed for a path that none can hold."""
    if not all(word.isprintable() for word in (str(service), *argv)):
        raise UnitFailed(f"{str(service)!r} has characters that no unit file can hold; set another machine.root")
    # The program is looked up as it stands: only in what follows it is a dollar a variable's.
    exec_start = [_quoted(argv[0]), *(_quoted(word).replace("$", "$$") for word in argv[1:])]
    kept = {k: v for k, v in sorted(environ.items()) if _KEPT.fullmatch(k) and v.isprintable()}
    lines = [
        "# Written by sluicegate, and removed by it with what it runs.",
        "[Unit]",
        f"Description=sluicegate: {percent(service.name)} of stack {percent(stack)}",
        f"ConditionPathExists={percent(service)}/service.json",
        "StartLimitIntervalSec=0",  # however often it is killed, it comes back
        "",
        "[Service]",
        "Type=exec",
        f"ExecStart={' '.join(exec_start)}",
        *(f"Environment={_quoted(f'{name}={value}')}" for name, value in kept.items()),
        f"StandardOutput=append:{percent(service)}/supervisor.log",
        f"StandardError=append:{percent(service)}/supervisor.log",
        "Restart=on-failure",
        f"RestartSec={RESTART_S}",
        "KillMode=mixed",
        f"TimeoutStopSec={stop_s + MARGIN_S:g}",
        "OOMPolicy=continue",  # an engine that took too much memory is its supervisor's to restart
        "",
        "[Install]",
        f"WantedBy={target(user)}",
    ]
    return "\n".join(lines) + "\n"


def target(user: bool) -> str:
    return "default.target" if user else "multi-user.target"


def percent(value: object) -> str:
    return str(value).replace("%", "%%")


def _quoted(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{percent(escaped)}"'
