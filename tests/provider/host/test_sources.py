"""Fetching: what comes is checked, complete or absent, and never fetched twice."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import subprocess
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sluicegate.provider.host import pypi
from sluicegate.provider.host.errand import FetchError
from sluicegate.provider.host.files import read_json
from sluicegate.provider.host.jobs import Cancelled, Job
from sluicegate.provider.host.places import Places
from sluicegate.provider.host.release import cache_bytes, collect_sources
from sluicegate.provider.host.sources import fetch
from tests.provider.host.kit import Stack, kill, pids_with, until, worker

SIX_HASH = "4721f391ed90541fddacab5acf947aa0d3dc7d27b2e1e8eda2be8970586c3274"
SIX = f"pypi:six==1.17.0#sha256:{SIX_HASH}"
SIX_FILES = [
    {"path": "six.py", "bytes": 34703, "sha256": "c51c91f703d3d4b3696c923cb5fec213e05e75d9215393befac7f2fa6a3904df"}
]


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path / "root", tmp_path / "run", "tests.sources")


@pytest.fixture
def job(tmp_path: Path) -> Job:
    folder = tmp_path / "20260101T000000.000000-prepare"
    folder.mkdir()
    return Job(folder)


def get(job: Job, places: Places, ref: str, files: Any = (), base: Path | None = None) -> Path:
    return fetch(job, places, "weights", ref, {"files": list(files)}, base)


def fails(job: Job, places: Places, ref: str, files: Any = (), base: Path | None = None) -> FetchError:
    """The error; nothing of the source is left behind."""
    with pytest.raises(FetchError) as failed:
        get(job, places, ref, files, base)
    place = places.source(ref)
    assert not place.exists()
    assert not part_of(place).exists()
    return failed.value


def file_ref(path: Path, base: Path) -> str:
    return f"file:{path.relative_to(base)}#sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


@pytest.fixture
def project(tmp_path: Path) -> tuple[Path, str]:
    """A project with a file, and the reference of that file."""
    base = tmp_path / "project"
    (base / "models").mkdir(parents=True)
    (base / "models/m.gguf").write_bytes(b"GGUF of the tests")
    return base, file_ref(base / "models/m.gguf", base)


def test_a_wheel_is_fetched_by_its_hash_and_unpacked(job: Job, places: Places) -> None:
    files = get(job, places, SIX, SIX_FILES)
    assert (files / "six.py").stat().st_size == 34703
    marker = read_json(files.parent / "complete")
    assert marker
    assert marker["ref"] == SIX
    assert marker["have"]["six.py"][0] == 34703
    assert sorted(p.name for p in files.parent.iterdir()) == ["complete", "files"]


def test_a_wrong_hash_is_refused(job: Job, places: Places) -> None:
    error = fails(job, places, SIX.replace(SIX_HASH, "0" * 64))
    assert (error.kind, error.transient) == ("wrong hash", False)


def test_a_version_that_does_not_exist_is_refused(job: Job, places: Places) -> None:
    error = fails(job, places, SIX.replace("1.17.0", "0.0.99"))
    assert (error.kind, error.transient) == ("not found", False)


def test_an_index_that_does_not_answer_may_be_tried_again(
    job: Job, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [n for n in os.environ if n.lower().startswith("pip_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    error = fails(job, places, SIX)
    assert (error.kind, error.transient) == ("network", True)


@pytest.mark.parametrize(
    ("change", "kind", "said"),
    [
        ({"path": "seven.py"}, "missing file", "no file seven.py in it"),
        ({"path": "six.py/x"}, "missing file", "no file six.py/x in it"),
        ({"sha256": "0" * 64}, "wrong hash", "six.py has sha256 c51c91f7"),
        ({"bytes": 1}, "wrong hash", "six.py has 34703 bytes, the lock says 1"),
    ],
)
def test_a_listing_that_the_wheel_does_not_hold_is_refused(
    job: Job, places: Places, change: dict[str, Any], kind: str, said: str
) -> None:
    error = fails(job, places, SIX, [SIX_FILES[0] | change])
    assert error.kind == kind
    assert said in str(error)


@pytest.mark.parametrize("name", ["../out.py", "/tmp/out.py", "a/../../out.py"])
def test_a_wheel_that_would_write_outside_its_place_is_refused(tmp_path: Path, name: str) -> None:
    wheel = tmp_path / "bad.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("good.py", "")
        archive.writestr(name, "")
    with pytest.raises(FetchError, match="the wheel holds the path") as failed:
        pypi.unpack(wheel, tmp_path / "deep/files", "pypi:bad")
    assert failed.value.kind == "unsafe"
    assert not list(tmp_path.rglob("out.py"))


def test_what_is_no_wheel_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.whl").write_text("no archive")
    with pytest.raises(FetchError, match="no wheel"):
        pypi.unpack(tmp_path / "bad.whl", tmp_path / "files", "pypi:bad")


def test_a_file_of_the_project_is_copied(job: Job, places: Places, project: tuple[Path, str]) -> None:
    base, ref = project
    files = get(job, places, ref, base=base)
    assert (files / "m.gguf").read_bytes() == b"GGUF of the tests"
    assert not (files / "m.gguf").is_symlink()


def test_a_missing_file_of_the_project_is_refused(job: Job, places: Places, project: tuple[Path, str]) -> None:
    base, ref = project
    (base / "models/m.gguf").unlink()
    assert fails(job, places, ref, base=base).kind == "missing file"


def test_a_file_of_the_project_with_other_bytes_is_refused(job: Job, places: Places, project: tuple[Path, str]) -> None:
    base, ref = project
    (base / "models/m.gguf").write_bytes(b"other bytes")
    assert fails(job, places, ref, base=base).kind == "wrong hash"


@pytest.mark.parametrize(
    "ref",
    [
        f"file:../project/models/m.gguf#sha256:{'0' * 64}", f"file:/etc/passwd#sha256:{'0' * 64}",
        "file:models/m.gguf", "file:models/m.gguf#sha256:0", f"file:#sha256:{'0' * 64}",
        "pypi:six", "pypi:six==1.17.0", f"pypi:six>=1#sha256:{'0' * 64}", f"pypi:--pre==1 x#sha256:{'0' * 64}",
    ],
)  # fmt: skip
def test_a_reference_that_is_not_exact_or_leads_outside_is_refused(
    job: Job, places: Places, project: tuple[Path, str], ref: str
) -> None:
    assert fails(job, places, ref, base=project[0]).kind == "bad reference"


def test_a_kind_of_source_that_this_runtime_has_not_is_refused(job: Job, places: Places) -> None:
    error = fails(job, places, f"hf:owner/model@{'0' * 40}")
    assert error.kind == "unsupported"
    assert "pypi, file" in str(error)


def test_a_folder_without_its_marker_is_fetched_again(job: Job, places: Places, project: tuple[Path, str]) -> None:
    base, ref = project
    half = places.source(ref)
    for folder in (half / "files", half.with_name(half.name + ".part") / "files"):
        folder.mkdir(parents=True)
        (folder / "m.gguf").write_text("hal")
        (folder / "rest").write_text("of an earlier try")
    files = get(job, places, ref, base=base)
    assert [(p.name, p.read_bytes()) for p in files.iterdir()] == [("m.gguf", b"GGUF of the tests")]


def test_a_file_that_was_cut_short_since_is_fetched_again(job: Job, places: Places, project: tuple[Path, str]) -> None:
    base, ref = project
    listing = [{"path": "m.gguf", "bytes": 17}]
    files = get(job, places, ref, listing, base)
    (files / "m.gguf").write_text("cut")
    assert (get(job, places, ref, listing, base) / "m.gguf").read_bytes() == b"GGUF of the tests"


def test_a_file_that_was_altered_or_taken_since_is_fetched_again_listed_or_not(
    job: Job, places: Places, project: tuple[Path, str]
) -> None:
    base, ref = project
    files = get(job, places, ref, base=base)
    with (files / "m.gguf").open("r+b") as f:
        f.write(b"XXXX")
    assert (get(job, places, ref, base=base) / "m.gguf").read_bytes() == b"GGUF of the tests"
    (files / "m.gguf").unlink()
    assert (get(job, places, ref, base=base) / "m.gguf").read_bytes() == b"GGUF of the tests"
    (files / "more").touch()
    assert not (get(job, places, ref, base=base) / "more").exists()


def test_a_listing_that_does_not_fit_leaves_what_others_use_in_place(
    job: Job, places: Places, project: tuple[Path, str]
) -> None:
    base, ref = project
    files = get(job, places, ref, base=base)
    with pytest.raises(FetchError):
        get(job, places, ref, [{"path": "m.gguf", "bytes": 1}], base)
    assert (files / "m.gguf").read_bytes() == b"GGUF of the tests"


def test_what_is_complete_needs_no_network_and_no_project(
    job: Job, places: Places, project: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    base, ref = project
    files = get(job, places, ref, base=base)
    (base / "models/m.gguf").unlink()
    monkeypatch.setattr(subprocess, "Popen", None)
    assert get(job, places, ref) == files
    assert not (job.folder / "events.jsonl").read_text().count("fetching") > 1


def test_two_who_want_the_same_fetch_it_once(job: Job, places: Places, project: tuple[Path, str]) -> None:
    base, ref = project
    threads = [threading.Thread(target=get, args=(job, places, ref, (), base)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (job.folder / "events.jsonl").read_text().count("fetching") == 1


def test_giving_up_while_another_fetches_ends_the_wait(job: Job, places: Places, project: tuple[Path, str]) -> None:
    base, ref = project
    place = places.source(ref)
    (job.folder / "revert").touch()
    with pytest.raises(Cancelled):
        get(job, places, ref, base=base)
    assert not place.exists()


@pytest.fixture
def endless(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, Path]]:
    """A `prepare` job whose fetch never ends, once pip runs: the job's folder and the source's place.

    Its index takes the connection and does not answer.
    """
    with socket.create_server(("127.0.0.1", 0)) as index:
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{index.getsockname()[1]}/simple")
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        spec = stack.engine()
        ref = f"pypi:sluicegate-tests==1.0#sha256:{hashlib.sha256(stack.name.encode()).hexdigest()}"
        spec["lock"]["engine"]["source"] = ref
        job, place = stack.start("prepare", spec), stack.places.source(ref)
        until(lambda: pids_with(f"{place.name}.part"), "pip's start")
        yield job, place
        shutil.rmtree(part_of(place), ignore_errors=True)


def part_of(place: Path) -> Path:
    return place.with_name(place.name + ".part")


def test_giving_up_while_fetching_leaves_nothing_and_no_process(stack: Stack, endless: tuple[Path, Path]) -> None:
    job, place = endless
    stack.ask("revert", job=job.name)
    assert stack.wait(job)["cause"]["kind"] == "cancelled"
    assert not part_of(place).exists()
    assert not place.exists()
    assert not pids_with(part_of(place).name)


def test_pip_ends_with_the_job_that_started_it(endless: tuple[Path, Path]) -> None:
    job, place = endless
    kill(worker(job))
    until(lambda: not pids_with(part_of(place).name), "pip's end")


def test_only_what_no_stack_needs_or_fetches_is_collected(job: Job, places: Places, project: tuple[Path, str]) -> None:
    base, ref = project
    kept = get(job, places, ref, base=base).parent
    (base / "other").write_bytes(b"other")
    gone = get(job, places, file_ref(base / "other", base), base=base).parent
    release = places.root / "stacks/s/releases/0123"
    release.mkdir(parents=True)
    lock = {"engine": {"source": ref}, "sources": {}}
    (release / "complete").write_text(json.dumps({"lock": lock}))
    assert collect_sources(places.root) == [gone.name]
    assert kept.is_dir()
    assert not gone.exists()
    assert cache_bytes(places.root) > len(b"GGUF of the tests")
    # While it is being fetched no release names it yet: what `prepare` wants is written down first.
    release.parent.parent.joinpath("wanted.json").write_text(json.dumps({"lock": lock}))
    (release / "complete").unlink()
    assert collect_sources(places.root) == []
