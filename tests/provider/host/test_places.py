"""Where things lie: no name leads out of its folder, no socket path is too long."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.provider.host.places import Places, run_folder, short
from sluicegate.provider.host.release import argv_of

DIGEST = "sha256:" + "ab" * 32


@given(st.text())
def test_no_name_of_a_stack_leads_out_of_the_folder_of_stacks(name: str) -> None:
    spec = {"places": {"root": "/data", "run": "/run/x", "stack": name}}
    try:
        home = Places.of(spec).home
    except ValueError:
        return
    assert home.parent == Path("/data/stacks")
    assert home.name == name
    assert ".." not in home.parts
    assert home.as_posix() == f"/data/stacks/{name}"


@given(st.text())
def test_no_digest_leads_out_of_the_folder_of_releases(digest: str) -> None:
    with pytest.raises(ValueError, match="no digest"):
        short(digest + "/../x")


@given(st.text(min_size=1, max_size=300).filter(lambda t: "\0" not in t and t.isprintable()))
def test_every_socket_path_fits_however_deep_the_root_is(text: str) -> None:
    root = Path("/", text)
    places = Places(root, run_folder(root, "project.stack"), "project.stack")
    for socket in (places.current_sock, places.socket(DIGEST), places.run / "front-admin.sock"):
        assert len(str(socket).encode()) <= 107


def test_two_stacks_and_two_roots_never_share_a_socket_folder() -> None:
    folders = {run_folder(Path(root), stack) for root in ("/a", "/b") for stack in ("p.a", "p.b")}
    assert len(folders) == 4


def test_a_socket_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "parent").mkdir()
    (tmp_path / "parent/run").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PermissionError):
        Places(tmp_path, tmp_path / "parent/run", "s").make_run()


@given(st.text(), st.sampled_from(["{socket}", "{cache}", "{lock}", "{weights}"]))
def test_only_known_placeholders_are_filled_in_and_only_once(text: str, name: str) -> None:
    places = Places(Path("/data/{lock}"), Path("/run"), "s")
    lock = {"argv": [name, '{"a": {}}', "{unknown}", text.replace("{", "")], "env": {"E": name}}
    lock["sources"] = {"weights": {"ref": "file:x"}, "tokenizer": {"same_as": "weights"}}
    argv, env = argv_of(places, DIGEST, lock)
    assert argv[1:] == ['{"a": {}}', "{unknown}", text.replace("{", "")]
    assert env["E"] == argv[0]
    assert argv[0] != name
