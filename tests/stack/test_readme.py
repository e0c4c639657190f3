"""The README against the program: what it shows is what is printed, what it names is there."""

from __future__ import annotations

import re
import subprocess
import tomllib

from sluicegate.cli.main import parser
from sluicegate.components import deployment
from tests.stack.harness import ROOT, Project
from tools import up

README = (ROOT / "README.md").read_text()
CHECKED = re.findall(r"<!-- checked by tests/stack/test_readme.py -->\n```console\n(.*?)```", README, re.DOTALL)


def masked(line: str) -> str:
    """A line without what differs from run to run: times, ports, numbers."""
    line = re.sub(r"\d{4}-\d\d-\d\dT[\d:]+Z", "TIME", line.rstrip())
    return re.sub(r"\d+(\.\d+)?", "N", line)


def sluicegate(p: Project, *words: str) -> list[str]:
    command = ["sluicegate", *words, "--stack", p.name]
    done = subprocess.run(command, cwd=p.folder, env=p.env, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout.replace(p.name, "dev").splitlines()


def test_the_end_of_make_up_looks_as_shown(served: Project) -> None:
    shown = CHECKED[0].splitlines()
    status = [line for line in shown if re.match(r"  (stack|engine|front|start|gated) ", line)]
    assert [masked(line) for line in sluicegate(served, "status")] == [masked(line) for line in status]
    answer = sluicegate(served, "ask", up.QUESTION)
    assert masked(answer[-1]) in [masked(line) for line in shown]
    assert up.QUESTION in shown[0]
    source = (ROOT / "tools" / "up.py").read_text()
    assert shown[-1] in source.replace("\\'", "'")
    assert "up in {since(started)}; asking: {QUESTION}" in source


def test_the_preview_shown_is_what_pulumi_prints(served: Project) -> None:
    good = dict(served.config)
    try:
        served.use("smollm2-135m/f16")
        said = [line.strip() for line in served.pulumi("preview", "--diff", "--stack", served.name).text.splitlines()]
    finally:
        served.config = good
        served.write()
    assert [line for line in CHECKED[1].splitlines() if line.strip() not in said] == []


def test_the_change_table_is_the_one_in_the_code() -> None:
    rows = [line for line in str(deployment.__doc__).splitlines() if line.startswith("|")]
    assert "\n".join(rows) in README


def test_every_room_and_every_dependency_has_its_line() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    rooms = {path.split("/")[0] for path in tracked.splitlines() if path.endswith(".py") and "/" in path}
    assert {room for room in rooms if f"| `{room}/` |" not in README} == set()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(d for extra in project["optional-dependencies"].values() for d in extra)]
    names = {re.split(r"[<>=\[ ]", d)[0] for d in wanted}
    table = README.partition("## Where each dependency is used")[2].partition("\n## ")[0]
    assert {name for name in names if name not in table} == set()


def test_every_command_named_is_there() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"make (?:-s )?([a-z]+)", README):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for line in ("status", "logs", "env", "recipe pin smollm2-135m/f16 --stack dev"):
        parser().parse_args(line.split())
