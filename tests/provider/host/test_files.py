"""Small file habits: half files, locks between processes."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from sluicegate.provider.host.files import (
    Busy,
    files_in,
    link_atomic,
    locked,
    read_json,
    tail,
    write_atomic,
    write_json,
)


@pytest.mark.parametrize("data", [b"", b"{", b"[1]", b"3", b"null", b"\xff\xfe"])
def test_what_is_no_json_object_reads_as_absent(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "f").write_bytes(data)
    assert read_json(tmp_path / "f") is None
    assert read_json(tmp_path / "absent") is None
    assert read_json(tmp_path / "f/below") is None


def test_a_write_that_fails_leaves_the_old_file_and_no_part(tmp_path: Path) -> None:
    write_json(tmp_path / "f", {"a": 1})
    with pytest.raises(UnicodeEncodeError):
        write_atomic(tmp_path / "f", "\ud800")
    assert read_json(tmp_path / "f") == {"a": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["f"]
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o600


def test_a_link_is_moved_in_one_step(tmp_path: Path) -> None:
    link_atomic("a", tmp_path / "link")
    link_atomic("b", tmp_path / "link")
    assert (tmp_path / "link").readlink() == Path("b")


def test_the_tail_of_a_file_is_its_last_lines(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("".join(f"{n}\n" for n in range(1000)))
    assert tail(tmp_path / "f", 2) == ["998", "999"]
    assert tail(tmp_path / "f", 100, limit=8) == ["998", "999"]
    assert tail(tmp_path / "absent", 2) == []


def test_files_are_listed_while_others_come_and_go(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("kept")
    (tmp_path / "link").symlink_to("nowhere")
    over = threading.Event()

    def come_and_go() -> None:
        while not over.is_set():
            (tmp_path / "a/b/c").mkdir(parents=True)
            (tmp_path / "a/b/c/f").touch()
            shutil.rmtree(tmp_path / "a")

    other = threading.Thread(target=come_and_go)
    other.start()
    try:
        for _ in range(2000):
            found = {path.name: stat.st_size for path, stat in files_in(tmp_path)}
            assert found.pop("f", 0) == 0
            assert found == {"kept": 4}
    finally:
        over.set()
        other.join()


def test_a_lock_keeps_others_out_and_names_its_holder(tmp_path: Path) -> None:
    path = tmp_path / "deep/lock"
    with locked(path, "the first", 0), pytest.raises(Busy, match="is held by the first"), locked(path, "another", 0):
        pass
    with locked(path, "the second", 0):
        assert (read_json(path) or {})["owner"] == "the second"


def test_a_lock_ends_with_the_process_that_held_it(tmp_path: Path) -> None:
    code = (
        "import sys, time, pathlib; from sluicegate.provider.host.files import locked\n"
        "with locked(pathlib.Path(sys.argv[1]), 'it', 0): print('held', flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-P", "-c", code, tmp_path / "l"], stdout=subprocess.PIPE) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(Busy), locked(tmp_path / "l", "me", 0):
            pass
        holder.kill()
        holder.wait()
        with locked(tmp_path / "l", "me", 30):
            pass


def test_a_lock_whose_file_was_removed_keeps_nobody_out_and_is_never_taken(tmp_path: Path) -> None:
    """The holder removes the file; who waited on it must not think it holds what others find under that name."""
    path, first = tmp_path / "lock", ExitStack()
    first.enter_context(locked(path, "the first", 0))

    def removed_and_let_go() -> None:
        path.unlink(missing_ok=True)
        first.close()

    with locked(path, "the second", 30, removed_and_let_go):
        assert (read_json(path) or {})["owner"] == "the second"
        with pytest.raises(Busy), locked(path, "the third", 0):
            pass


def test_who_waits_for_a_lock_may_give_up(tmp_path: Path) -> None:
    class GaveUp(Exception):
        pass

    def waiting() -> None:
        raise GaveUp

    path = tmp_path / "lock"
    with locked(path, "the first", 0), pytest.raises(GaveUp), locked(path, "the second", 600, waiting):
        pass
