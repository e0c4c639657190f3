"""The front: Caddy before the engine's socket. Key by file, allowed paths only, requests held while nothing listens.

Its upstream never changes, so that a swap of engines needs no reload (which would answer held requests 502).
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

from .engine_http import Target, Unanswered, get
from .files import locked, read_json, write_atomic, write_json
from .gate import ask
from .jobs import Job
from .places import Places
from .service import Service
from .sources import fetch


class FrontFailed(Exception):
    """The front does not come up, or not as asked."""

    kind = "front"

    def __init__(self, text: str, transient: bool = False) -> None:
        super().__init__(text)
        self.transient = transient


def caddyfile(places: Places, spec: dict[str, Any]) -> str:
    """The whole configuration. Listens on loopback without a domain, else on the domain with TLS."""
    folder, address = places.front, spec.get("domain") or f"http://127.0.0.1:{spec['port']}"
    paths = " ".join(spec["paths"])
    keys = "\n".join(f'\t\theader Authorization "Bearer {{file.{folder}/{name}}}"' for name in ("key", "key.previous"))
    return f"""{{
	admin unix/{places.run}/front-admin.sock
	persist_config off
	storage file_system {folder}/caddy
	grace_period 30s
	log {{
		output stderr
		level WARN
	}}
}}
{address} {{
	@draining {{
		path /lb-health
		file {{
			root {folder}
			try_files draining
		}}
	}}
	@known {{
{keys}
	}}
	handle @draining {{
		respond 503
	}}
	handle /lb-health {{
		rewrite * /health
		reverse_proxy unix/{places.current_sock}
	}}
	@open path {paths}
	handle @open {{
		handle @known {{
			reverse_proxy unix/{places.current_sock} {{
				transport http {{
					keepalive off
				}}
				header_up -Authorization
				lb_try_duration {int(spec["hold_s"])}s
				lb_try_interval 50ms
				flush_interval -1
				request_buffers 8MB
			}}
		}}
		handle {{
			header WWW-Authenticate Bearer
			respond `{{"error":{{"message":"wrong or missing API key","type":"invalid_request_error","code":"invalid_api_key"}}}}` 401
		}}
	}}
	handle {{
		respond 404
	}}
	handle_errors 502 503 504 {{
		header Retry-After 5
		respond `{{"error":{{"message":"the engine is being changed; try again","type":"unavailable_error","code":503}}}}` 503
	}}
}}
"""  # noqa: E501 - the two JSON bodies stay whole


def front(job: Job, spec: dict[str, Any]) -> dict[str, Any]:
    """The `front` job: make the front as asked, and answer only after one completion through its own address."""
    places = Places.of(spec)
    with job.phase("front"), locked(places.home / "front.lock", f"job {job.id}", 30, job.cancelled):
        caddy = fetch(job, places, "front", spec["caddy"]["ref"], spec["caddy"], None) / spec["caddy"]["binary"]
        service = Service(places.front)
        before = (read_json(places.front / "front.json") or {}).get("port")
        port = int(spec.get("port") or before or _free_port())
        wanted = caddyfile(places, spec | {"port": port})
        places.make_run()
        _write_key(places, spec["key"], float(spec["key_overlap_s"]))
        config = places.front / "Caddyfile"
        changed = not config.exists() or config.read_text() != wanted
        if changed:
            write_atomic(places.front / "Caddyfile.new", wanted)
            _validate(caddy, places.front / "Caddyfile.new")
            os.replace(places.front / "Caddyfile.new", config)
        if service.child() is None:
            service.stop()
            _start(service, caddy, config, places, port)
        elif changed:
            _reload(caddy, config, places)
        write_atomic(places.front / "source", spec["caddy"]["ref"])
        write_json(places.front / "front.json", {"port": port, "token": spec["token"]})
        url = f"https://{spec['domain']}" if spec.get("domain") else f"http://127.0.0.1:{port}"
        seen = _public(job, service, Target(url=url, key=spec["key"]), spec["model"], float(spec["deadline_s"]))
        service.keep()
    return {"result": "serving", "url": url, "port": port, "gate": [{"check": "public", "ok": True, "seen": seen}]}


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def _write_key(places: Places, key: str, overlap_s: float) -> None:
    """The key is read per request. The one it replaces stays good for `overlap_s` seconds, so that clients can move."""
    current, previous = places.front / "key", places.front / "key.previous"
    old = current.read_text() if current.exists() else None
    if old == key:
        return
    if old and overlap_s > 0:
        write_atomic(previous, old)
        write_json(places.front / "key.until", {"until": time.time() + overlap_s})
    else:
        # A matcher over a file that is absent would compare with nothing: "Bearer " alone must open no door.
        write_atomic(previous, key)
    write_atomic(current, key)


def retire_key(folder: Path) -> None:
    """Called by the front's supervisor: end the overlap of a rotated key once its time has passed."""
    until = read_json(folder / "key.until")
    if until and time.time() >= until["until"]:
        write_atomic(folder / "key.previous", (folder / "key").read_text())
        (folder / "key.until").unlink(missing_ok=True)


def _environment(places: Places) -> dict[str, str]:
    home = str(places.front / "caddy")
    return {"PATH": os.environ.get("PATH", ""), "HOME": home, "XDG_CONFIG_HOME": home, "XDG_DATA_HOME": home}


def _validate(caddy: Path, config: Path) -> None:
    _run(caddy, ["validate", "--adapter", "caddyfile", "--config", str(config)], "refuses its configuration")


def _reload(caddy: Path, config: Path, places: Places) -> None:
    admin = f"unix/{places.run}/front-admin.sock"
    _run(caddy, ["reload", "--adapter", "caddyfile", "--config", str(config), "--address", admin], "does not reload")


def _run(caddy: Path, words: list[str], what: str) -> None:
    done = subprocess.run([str(caddy), *words], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise FrontFailed(f"caddy {what}: {done.stderr.strip().splitlines()[-1][:400]}")


def _start(service: Service, caddy: Path, config: Path, places: Places, port: int) -> None:
    service.log.unlink(missing_ok=True)
    argv = [str(caddy), "run", "--adapter", "caddyfile", "--config", str(config)]
    service.start(argv, _environment(places), 35, [places.run / "front-admin.sock"])
    end = time.monotonic() + 15
    while time.monotonic() < end and not service.exited():
        with socket.socket() as s:
            if service.child() and s.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    said = service.log.read_text(errors="replace").strip().splitlines() if service.log.exists() else []
    service.stop(1)
    raise FrontFailed(f"caddy does not start on port {port}: {said[-1][:400] if said else 'it said nothing'}", True)


def _public(job: Job, service: Service, target: Target, model: str, deadline_s: float) -> str:
    """One completion through the public address, with the key, as a client would ask it."""
    end, last = time.monotonic() + deadline_s, "nothing asked yet"
    while time.monotonic() < end:
        if service.exited():
            raise FrontFailed("caddy exited; see its log")
        try:
            seen = ask(target, model, "Say hello.", 8, max(1.0, min(60.0, end - time.monotonic())))
            status, _ = get(Target(url=target.url), "/v1/models", 5)
            if status != 401:
                raise FrontFailed(f"a request without a key was answered {status}, expected 401")
            return f"{seen.completion_tokens} tokens through {target.url}, first after {seen.first_s or 0:.2f} s"
        except Unanswered as e:
            last = str(e)
        job.sleep(0.1)
    raise FrontFailed(f"no completion through {target.url} within {deadline_s:.0f} s; last answer: {last}", True)


def close(places: Places, token: str) -> bool:
    """End the front if `token` is the one that opened it; True when it was."""
    if (read_json(places.front / "front.json") or {}).get("token") != token:
        return False
    Service(places.front).stop()
    shutil.rmtree(places.front, ignore_errors=True)
    return True
