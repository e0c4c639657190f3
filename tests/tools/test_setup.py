"""Stamps, the environment file, and that a set-up with nothing to do does nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools import console, environment, make_f16, official, pulumi_plugins, python_env, stamps
from tools.paths import ENV_FILE, ROOT, VENV


def test_a_stamp_holds_only_for_the_same_bytes_with_the_results_there(tmp_path: Path) -> None:
    source, result, stamp = tmp_path / "source", tmp_path / "result", tmp_path / "stamps" / "step"
    source.write_text("1")
    result.touch()
    wanted = stamps.fingerprint([source], ["fact"])
    assert not stamps.holds(stamp, wanted, [result])
    stamps.write(stamp, wanted)
    assert stamps.holds(stamp, stamps.fingerprint([source], ["fact"]), [result])
    assert not stamps.holds(stamp, stamps.fingerprint([source], ["other"]), [result])
    source.write_text("2")
    assert not stamps.holds(stamp, stamps.fingerprint([source], ["fact"]), [result])
    source.write_text("1")
    result.unlink()
    assert not stamps.holds(stamp, wanted, [result])


def test_a_missing_file_differs_from_an_empty_one(tmp_path: Path) -> None:
    absent = stamps.fingerprint([tmp_path / "a"])
    (tmp_path / "a").touch()
    assert stamps.fingerprint([tmp_path / "a"]) != absent


def test_a_second_set_up_says_and_changes_nothing() -> None:
    assert python_env.is_ready(), "run make setup first"
    before = {path: path.stat().st_mtime_ns for path in (ENV_FILE, VENV / "bin" / "pytest", python_env.STAMP)}
    command = [sys.executable, "-m", "tools.setup", "--quiet"]
    # The PATH of make, without what the tests' own environment has put before it.
    folders = [folder for folder in os.environ["PATH"].split(os.pathsep) if not folder.startswith(str(ROOT))]
    env = {**os.environ, "PATH": os.pathsep.join(folders)}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert {path: path.stat().st_mtime_ns for path in before} == before


VALUES = {
    "PATH_PREFIX": "/checkout/.venv/bin:/checkout/.tools/bin",
    "PULUMI_HOME": "/checkout/.tools/pulumi-home",
    "PULUMI_BACKEND_URL": "file:///checkout/.state",
    "PULUMI_CONFIG_PASSPHRASE": "dev",
}


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ({"PATH": "/bin"}, {**VALUES, "PATH": "/checkout/.venv/bin:/checkout/.tools/bin:/bin"}),
        # Laid over itself it stays the same.
        (
            {"PATH": "/checkout/.venv/bin:/checkout/.tools/bin:/bin"},
            {**VALUES, "PATH": "/checkout/.venv/bin:/checkout/.tools/bin:/bin"},
        ),
        # A user's own backend and passphrase win.
        (
            {"PATH": "/bin", "PULUMI_BACKEND_URL": "s3://team", "PULUMI_CONFIG_PASSPHRASE": ""},
            {"PULUMI_HOME": VALUES["PULUMI_HOME"], "PATH": "/checkout/.venv/bin:/checkout/.tools/bin:/bin"},
        ),
        (
            {"PATH": "/bin", "PULUMI_CONFIG_PASSPHRASE_FILE": "/run/pass"},
            {
                "PULUMI_HOME": VALUES["PULUMI_HOME"],
                "PULUMI_BACKEND_URL": VALUES["PULUMI_BACKEND_URL"],
                "PATH": "/checkout/.venv/bin:/checkout/.tools/bin:/bin",
            },
        ),
    ],
)
def test_the_environment_is_laid_over_the_users_own(base: dict[str, str], expected: dict[str, str]) -> None:
    expected = {key: value for key, value in expected.items() if key != "PATH_PREFIX"}
    assert environment.additions(VALUES, base) == expected | {environment.FROM: str(ROOT)}


def test_what_another_checkout_exported_is_no_users_choice(tmp_path: Path) -> None:
    other = VALUES | {"PULUMI_BACKEND_URL": "file:///other/.state"}
    environment.write(other, tmp_path / ".tools" / "env")
    shell = {"PATH": "/bin", environment.FROM: str(tmp_path), **other}
    assert environment.additions(VALUES, shell)["PULUMI_BACKEND_URL"] == VALUES["PULUMI_BACKEND_URL"]
    shell["PULUMI_BACKEND_URL"] = "s3://team"  # set after that by the user
    assert "PULUMI_BACKEND_URL" not in environment.additions(VALUES, shell)


def test_the_environment_file_is_read_back_and_rewritten_only_when_it_differs(tmp_path: Path) -> None:
    path = tmp_path / "tools" / "env"
    values = environment.lines([Path("/t/bin"), Path("/t/bin")], acquire_plugins=False)
    environment.write(values, path)
    assert environment.read(path) == values
    assert values["PATH_PREFIX"] == f"{VENV / 'bin'}:/t/bin"
    assert values["PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"] == "true"
    written = path.stat().st_mtime_ns
    environment.write(values, path)
    assert path.stat().st_mtime_ns == written
    environment.write(environment.lines([Path("/t/bin")], acquire_plugins=True), path)
    assert "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION" not in environment.read(path)


def test_without_an_environment_file_the_mend_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="run make setup"):
        environment.read(tmp_path / "env")


def test_the_run_script_works_from_any_folder(tmp_path: Path) -> None:
    done = subprocess.run(
        [ROOT / "tools" / "run", "sh", "-c", "command -v python3; pwd; exit 7"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 7
    assert done.stdout.split() == [str(VENV / "bin" / "python3"), str(tmp_path)]


@pytest.mark.parametrize(
    ("pip_config", "env", "told"),
    [
        ("", {}, {}),
        (
            "global.index-url='https://mirror.example/simple'\n",
            {},
            {"UV_DEFAULT_INDEX": "https://mirror.example/simple"},
        ),
        (":env:.index-url='https://mirror.example'\n", {"UV_INDEX_URL": "https://own.example"}, {}),
        ("global.cert='/etc/ca.pem'\nglobal.timeout='60'\n", {}, {"SSL_CERT_FILE": "/etc/ca.pem"}),
        ("global.cert='/etc/ca.pem'\n", {"SSL_CERT_FILE": "/own.pem"}, {}),
    ],
)
def test_uv_is_told_what_only_pip_is_set_to(pip_config: str, env: dict[str, str], told: dict[str, str]) -> None:
    assert python_env.uv_settings(pip_config, env) == told


def test_an_interrupt_is_left_to_the_command_that_runs() -> None:
    code = (
        "import os, signal, subprocess\n"
        "from tools.stack import patience\n"
        "with patience():\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    child = subprocess.run(['sh', '-c', 'kill -INT $$; echo not reached'], capture_output=True, check=False)\n"
        "print(child.returncode, child.stdout)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "-2 b''"


def test_two_set_ups_at_once_take_turns() -> None:
    script = (
        "from tools import setup; lock = open('.tools/lock', 'w'); setup.wait_for(lock); print('mine', flush=True); {}"
    )
    first = subprocess.Popen(
        [sys.executable, "-c", script.format("input()")],
        cwd=ROOT,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert first.stdout is not None
    assert first.stdout.readline() == "mine\n"
    second = subprocess.Popen(
        [sys.executable, "-c", script.format("pass")], cwd=ROOT, text=True, stdout=subprocess.PIPE
    )
    assert second.stdout is not None
    assert "waiting for it" in second.stdout.readline()
    first.communicate("\n")
    assert second.communicate()[0] == "mine\n"


def test_a_long_step_says_how_long_it_has_run(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["sh", "-c", "echo one; sleep 0.4; echo two"]
    console.run_with_progress("building", command, cwd=ROOT, env=os.environ, every_s=0.1)
    said = capsys.readouterr().out.splitlines()
    assert said
    assert all(line.startswith("  building: ") and " s, 1 steps done, at one" in line for line in said)


def test_a_long_step_that_fails_shows_its_last_lines() -> None:
    with pytest.raises(console.SetupError, match=r"(?s)building failed \(exit 4\).*why it failed"):
        console.run_with_progress("building", ["sh", "-c", "echo why it failed; exit 4"], cwd=ROOT, env=os.environ)


def test_downloads_are_given_up_when_the_site_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    silent = tmp_path / "python"
    silent.write_text("#!/bin/sh\nexec sleep 60\n")
    silent.chmod(0o755)
    monkeypatch.setattr(official, "VENV_PYTHON", silent)
    monkeypatch.setattr(official, "GIVES_UP_S", 0.2)
    official.reachable.cache_clear()
    try:
        assert official.reachable() is False
    finally:
        official.reachable.cache_clear()


def test_a_plugin_has_the_version_of_its_sdk(tmp_path: Path) -> None:
    (tmp_path / "pulumi_random").mkdir()
    (tmp_path / "pulumi_random" / "pulumi-plugin.json").write_text('{"name": "random", "version": "4.21.4"}')
    assert pulumi_plugins.sdk_version("random", tmp_path) == "4.21.4"
    with pytest.raises(FileNotFoundError, match="pulumi-command is not installed"):
        pulumi_plugins.sdk_version("command", tmp_path)


def test_the_made_model_is_the_one_in_the_lock() -> None:
    digest = make_f16.recorded()
    assert digest is not None, "run make setup first"
    locks = list((ROOT / "recipes" / "smollm2-135m" / "locks").glob("f16-*.json"))
    assert locks
    assert all(digest in lock.read_text() for lock in locks)
