"""What a supervisor that systemd started does first: find out whether it is the first one, and what is still wanted."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .files import link_atomic, read_json, write_json
from .places import private_folder
from .processes import Proc, boot
from .service import Service, note_event


def resume(folder: Path, spec: dict[str, Any]) -> int | None:
    """Note this process as the owner; how often the service was restarted before. None: nothing is to be run.

    systemd starts it when it was killed and at each boot; then only what has passed its gate is run again. It notes
    itself, as its starter cannot know whom systemd has made of it since; and only once it is to run something: a
    short-lived owner of nothing would make a child that went with its supervisor look like one that exited.
    """
    service, gated = Service(folder), (folder / "gated").exists()
    before = Proc.read(read_json(folder / "supervisor.json"))
    rebooted = (before.boot if before else spec["boot"]) != boot()
    first = before is None and not rebooted
    if not (first or gated):
        return None
    service.end_leftovers()
    for socket in spec["sockets"]:
        private_folder(Path(socket).parent)  # a reboot may have emptied what it lies in
    me = Proc.of(os.getpid())
    assert me is not None
    write_json(folder / "supervisor.json", me.dump())
    if first:
        return 0
    restarts = int(service.state.get("restarts", 0)) + 1
    why = "the machine was started anew" if rebooted else "its supervisor was killed"
    note_event(folder, "restart", f"{why}; restart {restarts}")
    if rebooted and spec.get("links"):
        _link(folder, spec)
    return restarts


def _link(folder: Path, spec: dict[str, Any]) -> None:
    """Lead the front's link to this release again, if it is the one that serves.

    After a reboot only: any other time that the link is missing, a swap holds the requests back.
    """
    current, link = map(Path, spec["links"])
    if current.resolve() == folder.parent.resolve() and not link.is_symlink():
        link_atomic(Path(spec["sockets"][0]).name, link)
