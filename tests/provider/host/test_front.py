"""The front: the real Caddy, before the stub. No test here proves TLS: a domain needs a public address."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import shutil
import socket
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from sluicegate.provider.front import CADDY
from sluicegate.provider.host.files import write_json
from sluicegate.provider.host.service import Service
from tests.provider.host.kit import DEADLINE_S, KEY, ROOT, Stack, pids_with, until


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


@dataclass
class Door:
    """A stack whose stub serves behind its front."""

    stack: Stack
    spec: dict[str, Any]
    port: int
    extra: dict[str, Any] = field(default_factory=dict)

    def ask(self, path: str, body: Any = None, auth: str | None = f"Bearer {KEY}", host: str = "") -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_S)
        headers = {"Authorization": auth} if auth is not None else {}
        if host:
            headers["Host"] = host
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection.request("POST" if body is not None else "GET", path, data, headers)
        answer = connection.getresponse()
        seen = Answer(answer.status, dict(answer.headers.items()), answer.read())
        connection.close()
        return seen

    def complete(self, prompt: str = "hello", auth: str = f"Bearer {KEY}") -> Answer:
        return self.ask("/v1/chat/completions", {"messages": [{"content": prompt}]}, auth)

    def change(self, **more: Any) -> dict[str, Any]:
        return self.stack.run("front", self.stack.front(**self.extra | more))

    @contextmanager
    def away(self) -> Iterator[None]:
        """As in a swap: no link to any engine."""
        link = self.stack.places.current_sock
        target = link.readlink()
        link.unlink()
        yield
        link.symlink_to(target)


@pytest.fixture
def open_door(new_stack: Callable[[], Stack]) -> Callable[..., Door]:
    def make(*flags: str, **more: Any) -> Door:
        stack = new_stack()
        spec = stack.serve(*flags)
        done = stack.run("front", stack.front(**more))
        assert done["result"] == "serving", done
        return Door(stack, spec, done["port"], more)

    return make


@pytest.fixture
def door(open_door: Callable[..., Door]) -> Door:
    return open_door()


def test_it_answers_only_after_a_completion_through_itself_and_says_what_was_seen(stack: Stack) -> None:
    stack.serve()
    done = stack.run("front", stack.front())
    assert done["result"] == "serving"
    assert done["url"] == f"http://127.0.0.1:{done['port']}"
    assert [(c["check"], c["ok"]) for c in done["gate"]] == [("public", True)]
    assert done["gate"][0]["seen"].startswith("8 tokens, first after ")
    assert stack.status()["front"] == {"port": done["port"], "token": "front-token", "healthy": True, "why": None}


def test_only_allowed_paths_reach_the_engine(door: Door) -> None:
    assert door.ask("/v1/models").status == 200
    for path in ("/", "/health", "/metrics", "/version", "/v2/models", "/v1", "/v1/../metrics", "/v1/%2e%2e/metrics"):
        assert door.ask(path).status == 404, path
    for path in ("/v1//../../metrics", "/v1/..%2fmetrics"):
        assert door.ask(path).status in (400, 404), path


def test_a_request_without_the_right_key_is_answered_401_in_json(door: Door) -> None:
    wrong = ["", "Bearer", "Bearer ", f"bearer {KEY}", f"BEARER {KEY}", f"Basic {KEY}", KEY, f"Bearer  {KEY}"]
    wrong += [f"Bearer {KEY}x", f"Bearer {KEY[:-1]}", f"Bearer {KEY.upper()}", "Bearer *", f"Bearer {KEY} x"]
    for auth in (None, *wrong):
        answer = door.ask("/v1/models", auth=auth)
        assert answer.status == 401, auth
        assert json.loads(answer.body)["error"]["code"] == "invalid_api_key"
        assert answer.headers["Content-Type"] == "application/json"
    assert door.ask("/v1/chat/completions", {"messages": []}, auth=None).status == 401


def test_the_key_opens_and_never_reaches_the_engine(door: Door) -> None:
    answer = door.ask("/v1/headers")
    assert answer.status == 200
    assert "Authorization" not in json.loads(answer.body)
    assert KEY.encode() not in answer.body


def test_it_listens_on_loopback_only_and_whatever_name_it_is_called_by_wants_the_key(door: Door) -> None:
    for line in Path("/proc/net/tcp").read_text().splitlines() + Path("/proc/net/tcp6").read_text().splitlines():
        local, state = line.split()[1], line.split()[3]
        if local.endswith(f":{door.port:04X}") and state == "0A":
            assert local == f"0100007F:{door.port:04X}"
    for host in ("localhost", "example.org", f"127.0.0.1:{door.port}"):
        assert door.ask("/v1/models", host=host).status == 200
        assert door.ask("/v1/models", host=host, auth=None).status == 401
        assert door.ask("/metrics", host=host).status == 404


def test_neither_key_is_in_a_command_line_an_environment_a_log_or_an_answer(open_door: Callable[..., Door]) -> None:
    key = f"secret-{uuid.uuid4().hex}"
    door = open_door(key=key, key_overlap_s=600)
    door.change(key=key + "-2")
    assert not pids_with(key)
    for pid in pids_with(door.stack.name):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the job has just ended
            assert key.encode() not in Path(f"/proc/{pid}/environ").read_bytes()
    held = [p for p in door.stack.places.home.rglob("*") if p.is_file() and key.encode() in p.read_bytes()]
    assert sorted(p.name for p in held) == ["key", "key.previous"]
    assert key not in json.dumps(door.stack.status())


def test_a_rotated_key_opens_at_once_and_the_old_one_until_the_overlap_ends(door: Door) -> None:
    pid = Service(door.stack.places.front).child()
    assert door.change(key="the-second-key-of-it", key_overlap_s=600)["result"] == "serving"
    second = "Bearer the-second-key-of-it"
    assert [door.ask("/v1/models", auth=a).status for a in (second, f"Bearer {KEY}")] == [200, 200]
    write_json(door.stack.places.front / "key.until", {"until": 0})
    until(lambda: door.ask("/v1/models").status == 401, "the end of the overlap")
    assert door.ask("/v1/models", auth=second).status == 200
    assert Service(door.stack.places.front).child() == pid


def test_a_rotation_without_overlap_ends_the_old_key_at_once(door: Door) -> None:
    assert door.change(key="the-second-key-of-it")["result"] == "serving"
    assert door.ask("/v1/models").status == 401


@pytest.mark.parametrize("change", [
    {"domain": "llm.example.invalid", "deadline_s": 2},
    {"key": "a-second-key-of-tests", "model": "another", "deadline_s": 2},
    {"paths": ["/v2/*"], "deadline_s": 2},
])  # fmt: skip
def test_a_running_front_whose_change_fails_is_put_back_as_it_was(change: dict[str, Any], door: Door) -> None:
    before = {p.name: p.read_bytes() for p in door.stack.places.front.iterdir() if p.is_file() and p.name != "log"}
    done = door.change(**change)
    assert (done["result"], done["changed"]) == ("failed", False)
    assert door.ask("/v1/models").status == 200
    assert door.ask("/v1/models", auth="Bearer a-second-key-of-tests").status == 401
    for name in ("Caddyfile", "key", "key.previous", "front.json"):
        assert (door.stack.places.front / name).read_bytes() == before[name]
    assert door.stack.status()["front"]["healthy"]


def test_a_rotation_that_is_cancelled_leaves_the_old_key(door: Door) -> None:
    with door.away():
        job = door.stack.start("front", door.stack.front(key="a-second-key-of-tests"))
        until(lambda: (door.stack.places.front / "key").read_text() == "a-second-key-of-tests", "the new key")
        door.stack.ask("revert", job=job.name)
        done = door.stack.wait(job)
    assert (done["result"], done["changed"], done["cause"]["kind"]) == ("failed", False, "cancelled")
    assert door.ask("/v1/models").status == 200
    assert door.ask("/v1/models", auth="Bearer a-second-key-of-tests").status == 401


@pytest.mark.parametrize("name", ["key", "key.previous"])
@pytest.mark.parametrize("how", ["emptied", "removed", "another's"])
def test_a_front_whose_key_files_are_not_as_they_were_written_is_not_healthy(name: str, how: str, door: Door) -> None:
    right = hashlib.sha256(KEY.encode()).hexdigest()
    assert door.stack.ask("status", key_sha256=right)["front"]["healthy"]
    path = door.stack.places.front / name
    path.unlink() if how == "removed" else path.write_text("" if how == "emptied" else "another-key-of-16")
    there = door.stack.ask("status", key_sha256=right)["front"]
    assert there["healthy"] == (name == "key.previous" and how == "another's")
    assert there["healthy"] or " key" in there["why"]
    # A rotation to the same key mends it.
    assert door.change()["result"] == "serving"
    assert door.stack.ask("status", key_sha256=right)["front"]["healthy"]
    assert door.ask("/v1/models").status == 200


@pytest.mark.parametrize("value", ["3", '{"port": "x", "url": 3, "token": []}', "{}", "[]", "\x00"])
def test_a_note_of_the_front_that_makes_no_sense_is_none(value: str, door: Door) -> None:
    (door.stack.places.front / "front.json").write_text(value)
    assert door.stack.status()["front"] is None
    assert door.change()["result"] == "serving"


def test_a_key_of_odd_characters_is_taken_word_for_word(open_door: Callable[..., Door]) -> None:
    key = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~{env.HOME}{file./etc/hostname}"
    door = open_door(key=key)
    assert door.ask("/v1/models", auth=f"Bearer {key}").status == 200
    assert door.ask("/v1/models", auth=f"Bearer {key}x").status == 401


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"paths": ["/v1/*\n\trespond 200"]}, "paths"), ({"paths": ["/v1/* {"]}, "paths"),
        ({"domain": "a.example {\n"}, "domain"), ({"key": "a-key-with-a-star-at-its-end*"}, "key"),
    ],
)  # fmt: skip
def test_what_caddy_must_not_see_is_refused_and_changes_nothing(door: Door, change: dict[str, Any], named: str) -> None:
    before = (door.stack.places.front / "Caddyfile").read_text()
    done = door.change(**change)
    assert done["result"] == "failed"
    assert done["cause"]["text"].startswith(f"{named}: ")
    assert (done["cause"]["kind"], done["cause"]["transient"], done["changed"]) == ("front", False, False)
    assert "star" not in json.dumps(done)
    assert (door.stack.places.front / "Caddyfile").read_text() == before
    assert door.ask("/v1/models").status == 200


def test_a_request_that_comes_while_the_engine_is_away_is_answered_when_it_is_back(door: Door) -> None:
    answers: list[Answer] = []
    with door.away():
        thread = threading.Thread(target=lambda: answers.append(door.complete()))
        thread.start()
        thread.join(1)
        assert not answers
    thread.join()
    assert answers[0].status == 200
    assert b"[DONE]" in answers[0].body


def test_a_request_that_was_held_for_too_long_is_answered_503_in_json(open_door: Callable[..., Door]) -> None:
    door = open_door(hold_s=1)
    with door.away():
        answer = door.complete()
    assert answer.status == 503
    assert answer.headers["Retry-After"] == "5"
    assert answer.headers["Content-Type"] == "application/json"
    assert json.loads(answer.body)["error"]["type"] == "unavailable_error"


def test_a_body_of_nine_megabytes_passes_and_one_of_seven_is_held(door: Door) -> None:
    assert door.ask("/v1/size", b"x" * 9_000_000).body == b"9000000"
    answers: list[Answer] = []
    with door.away():
        thread = threading.Thread(target=lambda: answers.append(door.ask("/v1/size", b"x" * 7_000_000)))
        thread.start()
        thread.join(0.5)
    thread.join()
    assert answers[0].body == b"7000000"


def test_the_first_chunk_arrives_before_the_last_is_made(door: Door, tmp_path: Path) -> None:
    with Stream(door, tmp_path / "go") as stream:
        assert stream.first().startswith(b"data: ")
        assert b"[DONE]" in stream.rest()


def test_a_swap_of_engines_fails_no_request(door: Door) -> None:
    seen: list[int] = []
    over = threading.Event()

    def trickle() -> None:
        while not over.is_set():
            seen.append(door.complete().status)

    threads = [threading.Thread(target=trickle) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        door.stack.serve("--tokens", "9")
        before = len(seen)
        until(lambda: len(seen) > before + 4, "answers of the new one")
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert set(seen) == {200}


def test_an_engine_that_dies_during_a_stream_cuts_it_and_the_next_request_is_answered(
    open_door: Callable[..., Door], tmp_path: Path
) -> None:
    die = tmp_path / "die"
    door = open_door("--exit-when", str(die))
    with Stream(door, tmp_path / "never") as stream:
        stream.first()
        die.touch()
        with contextlib.suppress(http.client.IncompleteRead):
            assert b"[DONE]" not in stream.answer.read()  # never let go on: only its engine's end can end it
    die.unlink()
    until(lambda: door.complete().status == 200, "an answer")


def test_health_for_a_balancer_is_the_engines_and_503_while_draining(door: Door) -> None:
    assert door.ask("/lb-health", auth=None).status == 200
    (door.stack.places.front / "draining").touch()
    assert door.ask("/lb-health", auth=None).status == 503
    assert door.ask("/v1/models").status == 200
    (door.stack.places.front / "draining").unlink()
    assert door.ask("/lb-health", auth=None).status == 200
    with door.away():
        assert door.ask("/lb-health", auth=None).status == 503


def test_changed_paths_take_over_without_cutting_an_open_stream(door: Door, tmp_path: Path) -> None:
    pid = Service(door.stack.places.front).child()
    with Stream(door, tmp_path / "go") as stream:
        stream.first()
        assert door.change(paths=["/v1/chat/completions"])["result"] == "serving"
        assert door.ask("/v1/models").status == 404
        assert b"[DONE]" in stream.rest()
    assert Service(door.stack.places.front).child() == pid


def test_paths_without_the_list_of_models_are_healthy(open_door: Callable[..., Door]) -> None:
    door = open_door(paths=["/v1/chat/completions"])
    assert door.stack.status()["front"]["healthy"]


def test_the_same_again_changes_nothing(door: Door) -> None:
    pid = Service(door.stack.places.front).child()
    log = (door.stack.places.front / "log").read_text()
    assert door.change()["port"] == door.port
    assert Service(door.stack.places.front).child() == pid
    assert (door.stack.places.front / "log").read_text() == log


def test_the_port_is_kept_when_the_front_is_started_again(door: Door) -> None:
    Service(door.stack.places.front).stop()
    assert door.stack.status()["front"]["healthy"] is False
    assert door.change()["port"] == door.port
    assert door.ask("/v1/models").status == 200


def test_caddy_that_exits_is_started_again(door: Door) -> None:
    child = Service(door.stack.places.front).child()
    assert child
    child.kill(9)
    until(lambda: door.stack.status()["front"]["healthy"], "its return")
    assert door.ask("/v1/models").status == 200


@pytest.mark.parametrize("reuse", [False, True])
def test_a_port_that_a_stranger_has_is_a_clear_error_also_where_it_could_be_shared(stack: Stack, reuse: bool) -> None:
    stack.serve()
    with socket.socket() as stranger:
        if reuse:
            stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        stranger.bind(("127.0.0.1", 0))
        stranger.listen()
        port = stranger.getsockname()[1]
        done = stack.run("front", stack.front(port=port))
    assert done["result"] == "failed"
    assert f"port {port} cannot be had (Address already in use)" in done["cause"]["text"]
    assert stack.status()["front"] is None
    assert stack.run("front", stack.front(port=port))["port"] == port


def test_a_changed_port_that_a_stranger_has_leaves_the_old_one_open(door: Door) -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        assert door.change(port=stranger.getsockname()[1])["result"] == "failed"
    assert door.ask("/v1/models").status == 200
    assert door.stack.status()["front"]["port"] == door.port
    assert door.stack.status()["front"]["healthy"]


def test_a_front_that_cannot_be_told_of_a_change_is_started_anew(door: Door) -> None:
    before = Service(door.stack.places.front).child()
    (door.stack.places.run / "front-admin.sock").unlink()
    assert door.change(paths=["/v1/*", "/tokenize"])["result"] == "serving"
    assert Service(door.stack.places.front).child() != before


def test_a_changed_port_moves_without_a_restart(door: Door) -> None:
    pid = Service(door.stack.places.front).child()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    assert door.change(port=port)["url"] == f"http://127.0.0.1:{port}"
    assert Service(door.stack.places.front).child() == pid
    with pytest.raises(ConnectionRefusedError):
        door.ask("/v1/models")


def test_without_an_engine_behind_it_it_fails_at_its_deadline_with_the_last_answer(stack: Stack) -> None:
    done = stack.run("front", stack.front(hold_s=0, deadline_s=1))
    assert done["result"] == "failed"
    assert "no completion through http://127.0.0.1:" in done["cause"]["text"]
    assert "HTTP 503" in done["cause"]["text"]
    # What was started carries the token, so that its owner can end it.
    assert stack.ask("deactivate", what="front", token="front-token") == {"done": True}
    assert not pids_with(str(stack.places.front))


def test_only_its_own_token_closes_it(door: Door) -> None:
    assert door.stack.ask("deactivate", what="front", token="another") == {"done": False}
    assert door.ask("/v1/models").status == 200
    assert door.stack.ask("deactivate", what="front", token="front-token") == {"done": True}
    assert not door.stack.places.front.exists()
    assert door.stack.ask("deactivate", what="front", token="front-token") == {"done": False}
    assert door.stack.status()["health"] == "healthy"


def test_a_data_folder_with_a_space_in_its_name_is_no_trouble(tmp_path: Path) -> None:
    root = tmp_path / "my data"
    spaced = Stack(root)
    caddy = spaced.places.source(CADDY["ref"]).name
    if (ROOT / "sources" / caddy / "complete").exists():  # else it is fetched
        shutil.copytree(ROOT / "sources" / caddy, root / "sources" / caddy)
    try:
        spaced.serve()
        done = spaced.run("front", spaced.front())
        assert done["result"] == "serving", done
    finally:
        spaced.end()


class Stream:
    """A streamed completion through the front, held after its first chunk until `go` is there."""

    def __init__(self, door: Door, go: Path) -> None:
        self.go = go
        self.connection = http.client.HTTPConnection("127.0.0.1", door.port, timeout=DEADLINE_S)
        body = json.dumps({"messages": [{"content": f"until {go}"}]})
        self.connection.request("POST", "/v1/chat/completions", body, {"Authorization": f"Bearer {KEY}"})
        self.answer = self.connection.getresponse()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.go.touch()
        self.connection.close()

    def first(self) -> bytes:
        return self.answer.readline()

    def rest(self) -> bytes:
        self.go.touch()
        try:
            return self.answer.read()
        except http.client.IncompleteRead as e:
            return e.partial
