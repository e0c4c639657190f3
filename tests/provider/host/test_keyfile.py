"""The key's file and its overlap, by calls that the front's supervisor and job make."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluicegate.provider.host.files import locked, read_json, write_json
from sluicegate.provider.host.keyfile import retire_key, write_key


def keys(folder: Path) -> tuple[str, str]:
    return (folder / "key").read_text(), (folder / "key.previous").read_text()


def test_a_first_key_opens_by_both_files_so_that_neither_is_ever_empty(tmp_path: Path) -> None:
    write_key(tmp_path, "one", 60)
    assert keys(tmp_path) == ("one", "one")
    assert all((tmp_path / name).stat().st_mode & 0o777 == 0o600 for name in ("key", "key.previous"))


def test_a_rotation_keeps_the_old_key_until_its_time_has_passed(tmp_path: Path) -> None:
    write_key(tmp_path, "one", 60)
    write_key(tmp_path, "two", 60)
    assert keys(tmp_path) == ("two", "one")
    retire_key(tmp_path)
    assert keys(tmp_path) == ("two", "one")
    write_json(tmp_path / "key.until", {"until": 0})
    retire_key(tmp_path)
    assert keys(tmp_path) == ("two", "two")
    assert not (tmp_path / "key.until").exists()


def test_the_same_key_again_does_not_end_the_overlap(tmp_path: Path) -> None:
    write_key(tmp_path, "one", 60)
    write_key(tmp_path, "two", 60)
    until = read_json(tmp_path / "key.until")
    write_key(tmp_path, "two", 60)
    assert keys(tmp_path) == ("two", "one")
    assert read_json(tmp_path / "key.until") == until


def test_a_rotation_without_overlap_ends_every_older_key(tmp_path: Path) -> None:
    write_key(tmp_path, "one", 60)
    write_key(tmp_path, "two", 60)
    write_key(tmp_path, "three", 0)
    assert keys(tmp_path) == ("three", "three")
    assert not (tmp_path / "key.until").exists()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"until": null}'])
def test_an_end_of_the_overlap_that_cannot_be_read_is_now(tmp_path: Path, text: str) -> None:
    write_key(tmp_path, "one", 60)
    write_key(tmp_path, "two", 60)
    (tmp_path / "key.until").write_text(text)
    retire_key(tmp_path)
    assert keys(tmp_path) == ("two", "two")


def test_an_overlap_is_not_ended_while_a_rotation_is_at_it(tmp_path: Path) -> None:
    write_key(tmp_path, "one", 60)
    write_key(tmp_path, "two", 60)
    write_json(tmp_path / "key.until", {"until": 0})
    with locked(tmp_path / "key.lock", "a rotation", 0):
        retire_key(tmp_path)
    assert keys(tmp_path) == ("two", "one")


def test_a_reboot_ends_the_overlap(tmp_path: Path) -> None:
    write_key(tmp_path, "old", 600)
    write_key(tmp_path, "new", 600)
    kept = read_json(tmp_path / "key.until")
    assert kept
    write_json(tmp_path / "key.until", kept | {"boot": "another"})
    retire_key(tmp_path)
    assert (tmp_path / "key.previous").read_text() == "new"
