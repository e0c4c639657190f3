"""A stack of its own for a test: a project folder, a state, and the pulumi CLI on the real engine.

Everything deployed is real (Pulumi's engine, llama.cpp, Caddy). Fetched sources are shared between tests, as they are
between the stacks of one machine; everything else is a stack's own and gone after the test.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests
import yaml

from sluicegate.provider.clouds import local
from sluicegate.recipes.files import locks_of, read_lock, read_recipe, recipe_folders, write_lock
from sluicegate.recipes.locks import build_lock
from sluicegate.recipes.pins import pins_of
from tools import environment

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT / ".cache" / "tests" / "root"
DEADLINE_S = 240  # guards against hanging; no test measures time
PROGRAM = "from sluicegate.components import deploy\n\ndeploy()\n"


@dataclass
class Result:
    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err


@dataclass
class Project:
    """A project folder with one stack."""

    folder: Path
    name: str = field(default_factory=lambda: f"t{uuid.uuid4().hex[:8]}")
    env: dict[str, str] = field(default_factory=dict)
    root: Path = SHARED
    target: tuple[str, str] = ("local", "process")  # cloud and runtime

    def setup(self, recipe: str = "smollm2-135m/q4", **config: Any) -> Project:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "state").mkdir(exist_ok=True)
        self.env = {
            **environment.environ(), "PULUMI_BACKEND_URL": f"file://{self.folder}/state",
            "PULUMI_CONFIG_PASSPHRASE": "test",
        }  # fmt: skip
        settings = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())
        settings["plugins"]["providers"][0]["path"] = str(ROOT / ".venv" / "bin")
        settings["runtime"] = "python"
        (self.folder / "Pulumi.yaml").write_text(yaml.safe_dump(settings))
        (self.folder / "__main__.py").write_text(PROGRAM)
        (self.folder / ".models").symlink_to(ROOT / ".models")
        self.pulumi("stack", "init", self.name)
        cloud, runtime = self.target
        self.config = {"cloud": cloud, "runtime": runtime, "machine": {"root": str(self.root)}, **config}
        self.use(recipe)
        return self

    # --- config ---

    def use(self, recipe: str) -> str:
        """Point the stack at a recipe's lock, as `recipe pin` would; the lock's digest."""
        folders = recipe_folders(self.folder)
        model, _, name = recipe.partition("/")
        path = next(p for f in folders for p in locks_of(f / model / f"{name}.yaml"))
        lock, digest = read_lock(path)
        self.config |= {"recipe": recipe, "pins": pins_of(lock, digest).as_config()}
        self.write()
        return digest

    def vary(self, base: str, name: str, changes: Mapping[str, Any]) -> str:
        """A recipe of the project's own, made from a shipped one with some fields changed, and locked; its name."""
        model, _, old = base.partition("/")
        shipped = recipe_folders(self.folder)[-1]
        recipe = yaml.safe_load((shipped / model / f"{old}.yaml").read_text())
        for key, value in changes.items():
            section, _, leaf = key.partition(".")
            recipe[section] = {**recipe.get(section, {}), leaf: value} if leaf else value
        own = self.folder / "recipes" / model
        own.mkdir(parents=True, exist_ok=True)
        (own / f"{name}.yaml").write_text(yaml.safe_dump(recipe))
        parsed, sha256 = read_recipe(own / f"{name}.yaml")
        base_lock, _ = read_lock(locks_of(shipped / model / f"{old}.yaml")[0])
        e = base_lock.engine
        for stale in (own / "locks").glob(f"{name}-*.json"):
            stale.unlink()
        write_lock(self.folder / "recipes", build_lock(
            f"{model}/{name}", parsed, sha256, e.source, e.platforms, base_lock.sources, {}, base_lock.shape, e.files,
        ))  # fmt: skip
        return f"{model}/{name}"

    def set(self, **config: Any) -> None:
        """Set top-level keys; a map is merged into what is there."""
        for key, value in config.items():
            old = self.config.get(key)
            self.config[key] = {**old, **value} if isinstance(old, dict) and isinstance(value, dict) else value
        self.write()

    def use_config(self, config: Mapping[str, Any]) -> None:
        """Put back a whole config as it was."""
        self.config = dict(config)
        self.write()

    def write(self) -> None:
        path = self.folder / f"Pulumi.{self.name}.yaml"
        kept = yaml.safe_load(path.read_text()) if path.exists() else {}
        kept["config"] = {f"sluicegate:{k}": v for k, v in self.config.items()}
        path.write_text(yaml.safe_dump(kept, sort_keys=False, width=200))

    # --- pulumi ---

    def pulumi(self, *words: str, check: bool = True, env: Mapping[str, str] | None = None) -> Result:
        done = subprocess.run(
            ["pulumi", *words, "--non-interactive"], cwd=self.folder, env={**(env or self.env)}, text=True,
            capture_output=True, timeout=DEADLINE_S, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        result = Result(done.returncode, done.stdout, done.stderr)
        assert not check or done.returncode == 0, f"pulumi {' '.join(words)}:\n{result.text}"
        return result

    def up(self, *words: str, check: bool = True) -> Result:
        return self.pulumi("up", "--yes", "--skip-preview", "--stack", self.name, *words, check=check)

    def start_up(self, *words: str) -> subprocess.Popen[str]:
        """`pulumi up` in the background, in a process group of its own."""
        return subprocess.Popen(
            ["pulumi", "up", "--yes", "--skip-preview", "--stack", self.name, *words, "--non-interactive"],
            cwd=self.folder, env=self.env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    def preview(self) -> dict[str, dict[str, Any]]:
        """`preview --json`: the step of each of our custom resources that changes, by its kind."""
        steps = json.loads(self.pulumi("preview", "--json", "--stack", self.name).out)["steps"]
        found = {}
        for step in steps:
            kind = step["urn"].split("::")[2].rpartition("$")[2]
            if kind.startswith("sluicegate:index:") and step.get("newState", step.get("oldState", {})).get("custom"):
                found.setdefault(kind.rpartition(":")[2], step)
        return found

    def ops(self) -> dict[str, str]:
        """What a preview says of each of our four resources."""
        steps = self.preview()
        return {k: steps[k]["op"] if k in steps else "same" for k in ("Volume", "Machine", "Engine", "Front")}

    def destroy(self, check: bool = True) -> Result:
        return self.pulumi("destroy", "--yes", "--skip-preview", "--stack", self.name, check=check)

    def outputs(self) -> dict[str, Any]:
        words = ("stack", "output", "--json", "--show-secrets", "--stack", self.name)
        return dict(json.loads(self.pulumi(*words).out))

    def state(self) -> str:
        """The whole state as it lies on disk, secrets encrypted."""
        return self.pulumi("stack", "export", "--stack", self.name).out

    def resource(self, kind: str) -> dict[str, Any]:
        token = f"sluicegate:index:{kind}"
        resources = json.loads(self.state())["deployment"]["resources"]
        return dict(next(r for r in resources if r["type"] == token and not r.get("delete")))

    # --- the machine ---

    @property
    def home(self) -> Path:
        return self.root / "stacks" / f"sluicegate.{self.name}"

    def processes(self) -> dict[int, str]:
        """Every process that has this stack's folder or run folder in its command line or as its working folder."""
        marks = [str(self.home)]
        note = self.home / "machine.json"
        if note.exists():
            marks.append(json.loads(note.read_text())["run"])
        return {pid: line for pid, line in _all_processes() if any(m in line for m in marks)}

    def jobs(self) -> list[Path]:
        """The folders of the host's jobs, oldest first."""
        return sorted((self.home / "jobs").glob("*"))

    def status(self) -> dict[str, Any]:
        """What the host program says of this stack."""
        run = json.loads((self.home / "machine.json").read_text())["run"]
        host = local.connect({"root": str(self.root), "run": run, "stack": self.home.name})
        return dict(host.ask("status"))

    def settled(self) -> dict[str, Any]:
        """Its status once no job runs any more."""
        until("the host's jobs have ended", lambda: not self.status()["jobs"], 120)
        return self.status()

    def engines(self) -> list[int]:
        """Pids of the engines that run for this stack."""
        return [pid for pid, line in self.processes().items() if "llama_server.py" in line and "--check" not in line]

    def engine_pid(self) -> int:
        current = self.home / "current" / "engine" / "state.json"
        return int(json.loads(current.read_text())["child"]["pid"])

    def kill(self, *marks: str) -> None:
        """SIGKILL every process of the stack that has one of the marks in its command line."""
        for pid, line in self.processes().items():
            if any(mark in line for mark in marks):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def clean(self) -> None:
        """Destroy, then end by force whatever a failed test left."""
        if self.env:
            self.pulumi("cancel", "--yes", "--stack", self.name, check=False)
            self.destroy(check=False)
        # After two ^C the CLI ends without its language host, whose folder is the project's.
        orphans = [
            pid for pid, line in _all_processes() if "pulumi-language" in line and line.endswith(str(self.folder))
        ]
        for pid in (*self.processes(), *orphans):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        shutil.rmtree(self.home, ignore_errors=True)


def _all_processes() -> Iterator[tuple[int, str]]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                yield int(folder.name), f"{line} {os.readlink(folder / 'cwd')}"
            except OSError:
                continue


def post(outputs: Mapping[str, Any], prompt: str = "hi", tokens: int = 8, key: str | None = None) -> requests.Response:
    """One completion by plain HTTP."""
    return requests.post(
        f"{outputs['url']}/v1/chat/completions", timeout=120,
        headers={"Authorization": f"Bearer {key or outputs['api_key']}"},
        json={"model": outputs["model"], "messages": [{"role": "user", "content": prompt}], "max_tokens": tokens},
    )  # fmt: skip


class Trickle:
    """One request after the other while something changes; every answer that is not whole is kept."""

    def __init__(self, outputs: Mapping[str, Any]) -> None:
        self.outputs, self.failed, self.sent = dict(outputs), list[str](), 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Trickle:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(0.05):
            self.sent += 1
            try:
                answer = post(self.outputs)
                if answer.status_code != 200 or not answer.json()["choices"]:
                    self.failed.append(f"{answer.status_code} {answer.text[:200]}")
            except (requests.RequestException, ValueError, KeyError) as e:
                self.failed.append(repr(e))


def until(what: str, true: Any, seconds: float = 60) -> None:
    """Wait for a condition; a deadline, not a measure."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not within {seconds:g} s: {what}"
        time.sleep(0.1)
