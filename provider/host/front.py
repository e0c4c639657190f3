"""The front: Caddy before the engine's socket. Key by file, allowed paths only, requests held while nothing listens."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

from .caddyfile import FrontFailed, caddyfile, check
from .engine_http import Target, Unanswered, get
from .errand import FetchError
from .files import Busy, locked, tail, write_atomic, write_json
from .jobs import Cancelled, Job
from .keyfile import write_key
from .places import Places
from .public import note_of, public, refuses_strangers
from .service import Service
from .sources import fetch

# What a change writes, and a failed one restores.
WRITTEN = ("Caddyfile", "key", "key.previous", "key.until", "front.json")
STOP_S = 35  # an open stream may go on for this long when the front is stopped


def front(job: Job, spec: dict[str, Any]) -> dict[str, Any]:
    """The `front` job: make the front as asked, and answer only after one completion through its own address."""
    places, changed = Places.of(spec), list[str]()
    try:
        return _front(job, places, spec, changed)
    except (FrontFailed, FetchError, Busy, Cancelled) as e:
        cause = {"kind": getattr(e, "kind", "cancelled"), "text": str(e), "transient": getattr(e, "transient", True)}
        return {"result": "failed", "cause": cause, "changed": bool(changed)}


def _front(job: Job, places: Places, spec: dict[str, Any], changed: list[str]) -> dict[str, Any]:
    """`changed` gets what of the front is not as it was, as soon as it is not: a failure must say so."""
    check(places, spec)
    with job.phase("front"), locked(places.home / "front.lock", f"job {job.id}", 30, job.check_cancel):
        write_atomic(places.front / "source", spec["caddy"]["ref"])
        caddy = fetch(job, places, "front", spec["caddy"]["ref"], spec["caddy"], None) / spec["caddy"]["binary"]
        places.make_run()
        service, before = Service(places.front), note_of(places) or {}
        running = service.child() is not None and _answers(places)
        port = int(spec.get("port") or before.get("port") or _free_port())
        url = f"https://{spec['domain']}" if spec.get("domain") else f"http://127.0.0.1:{port}"
        note = {"port": port, "url": url, "token": spec["token"]}
        if not running:
            service.stop()
        if not (spec.get("domain") or (running and before.get("url") == url)):
            _refuse_taken(port)
        kept = {name: _bytes(places.front / name) for name in WRITTEN}
        try:
            _configure(caddy, places, spec | {"port": port}, running)
            changed.append("its configuration and key")
            write_key(places.front, spec["key"], float(spec["key_overlap_s"]))
            write_json(places.front / "front.json", note)  # before the start, so that what was started can be ended
            if not running:
                _start(service, caddy, places, url)
            began = time.monotonic()
            seen = public(job, service, url, spec)
            checked = {"check": "public", "ok": True, "seen": seen, "s": round(time.monotonic() - began, 3)}
        except Exception:  # whatever it was, what ran must be as it was
            if running and changed and _put_back(job, caddy, places, kept, str(before.get("url"))):
                changed.clear()
            raise
        service.keep()
    return {"result": "serving", "url": url, "port": port, "gate": [checked]}


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def _put_back(job: Job, caddy: Path, places: Places, kept: dict[str, bytes | None], url: str) -> bool:
    """Make a running front what it was, address and keys; whether it is. No ^C cuts this."""
    job.emit("front", "note", text=f"going back to {url}")
    try:
        with locked(places.front / "key.lock", "putting back", 10):
            for name, data in kept.items():
                if data is None:
                    (places.front / name).unlink(missing_ok=True)
                else:
                    write_atomic(places.front / name, data)
        _reload(caddy, places, places.front / "Caddyfile")
    except (OSError, Busy, FrontFailed) as e:
        job.emit("front", "fail", text=f"it does not go back: {e}")
        return False
    return refuses_strangers(url) is None


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def _refuse_taken(port: int) -> None:
    """Caddy itself would share the port with another Caddy, and each would get some of the other's requests."""
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind(("127.0.0.1", port))
        except OSError as e:
            raise FrontFailed(
                f"port {port} cannot be had ({e.strerror}); end what listens there, or set another endpoint.port", True
            ) from e


def _configure(caddy: Path, places: Places, spec: dict[str, Any], running: bool) -> None:
    """Put the configuration in place; what runs takes it over first, so that the file says what is in force."""
    config, new = places.front / "Caddyfile", places.front / "Caddyfile.new"
    wanted = caddyfile(places, spec)
    if running and config.exists() and config.read_text() == wanted:
        return
    write_atomic(new, wanted)
    if running:  # one that is started says by itself what it cannot read
        words = ["validate", "--adapter", "caddyfile", "--config", str(new)]
        _run(caddy, places, words, "refuses its configuration")
        _reload(caddy, places, new)
    os.replace(new, config)


def _reload(caddy: Path, places: Places, config: Path) -> None:
    words = ["reload", "--adapter", "caddyfile", "--config", str(config), "--address", f"unix/{_admin(places)}"]
    _run(caddy, places, words, "does not reload")


def _answers(places: Places) -> bool:
    """Whether Caddy can be told of a change: else (its socket swept away, the process hung) it is started anew."""
    try:
        return get(Target(socket=_admin(places)), "/config/", 5)[0] == 200
    except Unanswered:
        return False


def _admin(places: Places) -> Path:
    return places.run / "front-admin.sock"


def _environment(places: Places) -> dict[str, str]:
    home = str(places.front / "caddy")
    return {"PATH": os.environ.get("PATH", ""), "HOME": home, "XDG_CONFIG_HOME": home, "XDG_DATA_HOME": home}


def _run(caddy: Path, places: Places, words: list[str], what: str) -> None:
    env = _environment(places)
    try:
        done = subprocess.run([caddy, *words], env=env, capture_output=True, text=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        raise FrontFailed(f"caddy {what}: no answer in 60 s", True) from None
    if done.returncode:
        said = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise FrontFailed(f"caddy {what}: {said[0][:400]}")


def _start(service: Service, caddy: Path, places: Places, url: str) -> None:
    service.log.unlink(missing_ok=True)
    argv = [str(caddy), "run", "--adapter", "caddyfile", "--config", str(places.front / "Caddyfile")]
    service.start(argv, _environment(places), STOP_S, [_admin(places)], units=places.units)
    end = time.monotonic() + 15
    while time.monotonic() < end and not service.exited():
        # Our own Caddy and nobody else's, and only once it listens: it answers when its configuration is in force.
        if _answers(places):
            return
        time.sleep(0.02)
    said = tail(service.log, 1) or ["it said nothing"]
    service.stop(1)
    raise FrontFailed(f"caddy does not start at {url}: {said[0][:400]}", True)
