"""`sluicegate unlock`: what it finds, asks, clears and foretells, with a `pulumi` that answers as it is told."""

from __future__ import annotations

import json
import socket
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from sluicegate.cli import unlock
from sluicegate.cli.runs import Lock, Process
from sluicegate.cli.unlock import next_up, to_do
from sluicegate.provider.host import machine
from tests.cli.fake_pulumi import Fake
from tests.cli.recorded import CLAIM, CUT, HEALTHY, LOCK, NOTHING, OTHER, pending, state, truth

ENDED, GOES_ON = Lock("root@vm, pid 7", "T", alive=False), Lock("root@vm, pid 7", "T", alive=True)
ELSEWHERE = Lock("root@ci, pid 7", "T")
RUN = Process(9, "pulumi up --stack dev")
CREATE = [pending("creating")]
PINS: dict[str, Any] = {"recipe": "m/q4", "pins": {"lock": LOCK}}

TO_DO: list[tuple[dict[str, Any], list[str]]] = [
    ({}, []),
    ({"operations": [pending("updating")]}, []),
    ({"locks": [ENDED]}, ["clear Pulumi's lock"]),
    ({"locks": None}, ["clear Pulumi's lock, if there is one (this backend does not tell)"]),
    ({"locks": [ENDED], "operations": CREATE}, ["clear Pulumi's lock", "forget that serve-0-engine was being created"]),
    ({"operations": [*CREATE, pending("creating", "b")]}, ["forget that serve-0-engine, b were being created"]),
]


@pytest.mark.parametrize(("known", "found"), TO_DO)
def test_only_a_lock_and_creates_that_were_cut_are_to_be_cleared(known: dict[str, Any], found: list[str]) -> None:
    assert list(to_do(truth(**known))) == found


AT_WORK: list[tuple[dict[str, Any], str | None]] = [
    ({"locks": [ENDED]}, None),
    ({"locks": [ENDED], "there": HEALTHY | {"jobs": ["j-activate"]}}, None),
    ({"locks": [GOES_ON]}, "pulumi (root@vm, pid 7)"),
    ({"locks": [ENDED], "runs": [RUN]}, None),
    ({"locks": [ENDED], "runs": [RUN], "there": HEALTHY | {"jobs": ["j-prepare"]}}, "`pulumi up --stack dev` (pid 9)"),
    ({"locks": [ENDED], "runs": [RUN], "there": None, "unknown": "no route"}, "`pulumi up --stack dev` (pid 9)"),
    ({"locks": [ELSEWHERE]}, None),
    ({"locks": [ELSEWHERE], "runs": [RUN]}, "`pulumi up --stack dev` (pid 9)"),
    ({"locks": None, "runs": [RUN]}, "`pulumi up --stack dev` (pid 9)"),
]


@pytest.mark.parametrize(("known", "who"), AT_WORK)
def test_somebody_is_deploying_only_where_a_live_run_is_seen_with_its_work(
    known: dict[str, Any], who: str | None
) -> None:
    assert truth(**known).at_work == who


LOST = {"Machine": None, "Engine": None, "Front": None}
NEXT: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["keeps aaaaaaaaaaaa (m/q4), which serves: no restart"]),
    ({"config": {}}, ["moves from aaaaaaaaaaaa to what the pins say: one engine restart"]),
    ({"there": HEALTHY | {"serving": OTHER}}, ["moves from bbbbbbbbbbbb to aaaaaaaaaaaa (m/q4): one engine restart"]),
    ({"there": CUT}, ["keeps aaaaaaaaaaaa (m/q4), which serves: no restart", "opens the front"]),
    (
        {"there": HEALTHY | {"front": {"healthy": True, "token": "x"}}},
        ["keeps aaaaaaaaaaaa (m/q4), which serves: no restart", "mends the front"],
    ),
    ({"there": NOTHING}, ["starts aaaaaaaaaaaa (m/q4): nothing serves now", "opens the front"]),
    (
        {"there": NOTHING | {"jobs": ["j-activate"]}},
        [
            "follows j-activate to its end first, which may change what is said here",
            "starts aaaaaaaaaaaa (m/q4): nothing serves now",
            "opens the front",
        ],
    ),
    (
        {"there": NOTHING | {"machine": CLAIM | {"phase": "creating"}}, "kinds": LOST},
        [
            "adopts the machine's claim (phase creating), with all that runs under it",
            "starts aaaaaaaaaaaa (m/q4): nothing serves now",
            "opens the front",
        ],
    ),
    (
        {"there": HEALTHY | {"machine": CLAIM | {"next": {"at": "T"}}}},
        [
            "adopts the claim that waits on the machine, where the config still asks for another machine",
            "keeps aaaaaaaaaaaa (m/q4), which serves: no restart",
        ],
    ),
    (
        {"there": HEALTHY | {"machine": CLAIM | {"stack_id": "x"}}},
        ["refuses: the place on the machine is another stack's; set sluicegate:machine.root to a folder of its own"],
    ),
    ({"there": None}, ["claims the machine, and starts there what does not run"]),
    ({"there": HEALTHY | {"machine": None}}, ["claims the machine, and starts there what does not run"]),
    ({"there": None, "unknown": "x"}, ["asks the machine again, and changes nothing unless it answers"]),
]


@pytest.mark.parametrize(("known", "lines"), NEXT)
def test_what_the_next_up_will_do_is_told(known: dict[str, Any], lines: list[str]) -> None:
    assert list(next_up(truth(**{"config": PINS, **known}))) == lines


class Left:
    """A project whose run was killed while its engine was being made; its machine is a real, empty claim."""

    def __init__(self, fake: Fake) -> None:
        self.fake, root = fake, fake.folder / "root"
        fake.env["PULUMI_BACKEND_URL"] = f"file://{fake.folder}/state?no_tmp_dir=true"
        made = machine.claim({"root": str(root), "stack": "p.dev", "stack_id": "id", "token": "t"})
        host = {"cloud": "local", "root": made["root"], "run": made["run"], "stack": "p.dev"}
        kinds = {"Machine": {"host": host, "token": "t"}, "Engine": None, "Front": None}
        self.run_folder = Path(made["run"])
        fake.answer(
            export=json.dumps(state(CREATE, **kinds)), refreshed=json.dumps(state(**kinds)),
            config=json.dumps({
                "sluicegate:cloud": {"value": "local"}, "sluicegate:recipe": {"value": "m/q4"},
                "sluicegate:machine": {"value": "…", "objectValue": {"root": str(root)}},
                "sluicegate:pins": {"value": "…", "objectValue": {"lock": LOCK}},
            }),
        )  # fmt: skip

    def lock(self, host: str = "elsewhere", pid: int = 7) -> Path:
        path = self.fake.folder / "state" / ".pulumi" / "locks" / "organization" / "p" / "dev" / "l.json"
        path.parent.mkdir(parents=True)
        said = {"pid": pid, "username": "me", "hostname": host, "timestamp": "2026-11-30T16:00:00.123Z"}
        path.write_text(json.dumps(said))
        return path


@pytest.fixture
def left(fake: Fake) -> Any:
    made = Left(fake)
    yield made
    made.run_folder.rmdir()


def test_without_somebody_to_ask_it_says_what_it_found_and_the_command(left: Left) -> None:
    lock = left.lock()
    done = left.fake.run("unlock")
    assert done.returncode == 1
    assert "held since 2026-11-30T16:00:00Z by me@elsewhere, pid 7, which cannot be looked at from here" in done.stdout
    assert "pending  creating serve-0-engine" in done.stdout
    assert done.stderr == "error: nobody is there to be asked: run `sluicegate unlock --yes --stack dev`\n"
    assert lock.exists()
    assert not [line for line in left.fake.asked() if " cancel " in line or " refresh " in line]


def test_it_clears_the_lock_and_the_create_and_a_second_run_finds_nothing(left: Left) -> None:
    left.lock()
    done = left.fake.run("unlock", "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(
        "done\nnext: pulumi up --refresh --stack dev\n  starts aaaaaaaaaaaa (m/q4): nothing serves now\n"
        "  opens the front\n"
    )
    asked = [line.split(" ", 1)[1] for line in left.fake.asked()]
    assert "cancel --yes --stack dev --non-interactive" in asked
    assert (
        "refresh --yes --skip-preview --clear-pending-creates --target urn:stack --stack dev --non-interactive" in asked
    )
    assert not [line for line in asked if line.startswith(("state", "destroy"))]
    left.fake.answer(asked="")
    again = left.fake.run("unlock")
    assert again.returncode == 0
    assert "nothing to unlock\n" in again.stdout
    assert not [line for line in left.fake.asked() if " cancel " in line or " refresh " in line]


def test_what_pulumi_does_not_clear_is_said_with_a_command(left: Left) -> None:
    (left.fake.folder / "refreshed").unlink()
    done = left.fake.run("unlock", "--yes")
    assert done.returncode == 1
    assert done.stderr == (
        "error: left over: forget that serve-0-engine was being created: run `sluicegate status --stack dev`\n"
    )


def test_a_claim_that_the_state_has_lost_is_found_where_the_config_puts_it(left: Left) -> None:
    left.fake.answer(
        export=json.dumps(state([pending("creating", "serve-0-gpu")], Machine=None, Engine=None, Front=None))
    )
    done = left.fake.run("status")
    assert "claim    of a run that the state does not know, creating since" in done.stdout
    assert done.returncode == 1
    left.fake.answer(refreshed=json.dumps(state(**LOST)))
    done = left.fake.run("unlock", "--yes")
    assert "adopts the machine's claim (phase creating), with all that runs under it" in done.stdout
    assert done.returncode == 0


def test_a_stack_with_nothing_in_it_has_nothing_to_unlock_but_a_lock(left: Left) -> None:
    left.fake.answer(export="{}", config="{}")
    assert left.fake.run("status").stderr.startswith("error: stack dev has nothing deployed: run `pulumi up")
    lock = left.lock()
    assert "no change can be made, the lock is Pulumi's" in left.fake.run("status").stdout
    done = left.fake.run("unlock", "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("  claims the machine, and starts there what does not run\n")
    assert not lock.exists()
    done = left.fake.run("unlock")
    assert done.returncode == 0
    assert "nothing to unlock\n" in done.stdout


def test_a_run_that_goes_on_is_named_and_only_force_takes_its_lock(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[tuple[str, ...]] = []
    found = [truth(locks=[GOES_ON], config=PINS)]
    monkeypatch.setattr(unlock, "look", lambda *_, **__: found[-1])

    def pulumi(_project: Path, *words: str) -> str:
        asked.append(words)
        found.append(truth(config=PINS))
        return ""

    monkeypatch.setattr(unlock, "pulumi", pulumi)
    with pytest.raises(unlock.CliError, match=r"pulumi \(root@vm, pid 7\) is changing this stack: wait for it") as e:
        unlock.run(Namespace(stack=None, yes=True, force=False))
    assert "sluicegate unlock --force --stack dev" in str(e.value)
    assert asked == []
    assert unlock.run(Namespace(stack=None, yes=True, force=True)) == 0
    assert asked == [("cancel", "--yes", "--stack", "dev")]
    assert "keeps aaaaaaaaaaaa (m/q4), which serves: no restart" in capsys.readouterr().out


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("YES ", 0), ("", 1), ("n", 1), (EOFError, 1)])
def test_on_a_terminal_it_asks_and_only_a_yes_goes_on(
    answer: Any, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [truth(locks=[ENDED])]
    monkeypatch.setattr(unlock, "look", lambda *_, **__: found[-1])
    monkeypatch.setattr(unlock, "pulumi", lambda *_: found.append(truth()))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)

    def said(_prompt: str) -> str:
        if answer is EOFError:
            raise EOFError
        return str(answer)

    monkeypatch.setattr("builtins.input", said)
    assert unlock.run(Namespace(stack=None, yes=False, force=False)) == code
    assert ("left as it was" in capsys.readouterr().out) is bool(code)
    assert len(found) == 2 - code


def test_a_healthy_stack_is_left_alone_without_a_question(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(unlock, "look", lambda *_, **__: truth(config=PINS))
    assert unlock.run(Namespace(stack=None, yes=False, force=False)) == 0
    assert capsys.readouterr().out.endswith("nothing to unlock\n")


def test_this_hosts_lock_whose_run_is_gone_is_said_to_have_ended(left: Left) -> None:
    left.lock(socket.gethostname(), pid=2**22 + 1)  # above every pid
    assert "which has ended" in left.fake.run("status").stdout
