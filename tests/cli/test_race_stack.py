"""Which stack `race` and `load` measure when no endpoint is named."""

from __future__ import annotations

import json

from tests.cli.fake_pulumi import OUTPUT, Fake
from tests.cli.odd_server import DONE, END, answering, event

FEW = {"race": ("--rounds", "1", "--max-tokens", "4"), "load": ("--levels", "1", "--requests", "1")}


def test_with_no_endpoint_named_it_is_the_selected_stack_else_dev_and_that_is_said(fake: Fake) -> None:
    answer = event("a") + event("b") + END + event(usage={"completion_tokens": 2}) + DONE
    with answering(200, answer, Content_Type="text/event-stream") as (url, seen):
        fake.answer(output=json.dumps({"url": url, "model": "m", "api_key": "k" * 20}))
        for command, words in FEW.items():
            done = fake.run(command, *words)
            assert done.returncode == 0, done.stderr
            assert "no endpoint named: measuring stack dev\n" in done.stderr
        fake.answer(selected="trial\n")
        done = fake.run("race", *FEW["race"], "--overwrite")
    assert done.returncode == 0, done.stderr
    assert "no endpoint named: measuring stack trial\n" in done.stderr
    assert "--stack trial " in fake.asked()[-1]
    assert seen


def test_an_endpoint_that_is_named_stays_the_only_one(fake: Fake) -> None:
    fake.answer(output=OUTPUT)
    with answering(404, "") as (url, _):
        done = fake.run("race", "--target", f"other={url}/v1,model=m", *FEW["race"])
    assert "measuring stack" not in done.stderr
    assert not (fake.folder / "asked").exists()
    assert "nothing to race" not in fake.run("race", "--openrouter", "a/b").stderr
    assert not (fake.folder / "asked").exists()


def test_where_nothing_is_up_or_no_project_is_it_says_what_to_do(fake: Fake) -> None:
    fake.answer(output="{}")
    for command in ("race", "load"):
        done = fake.run(command)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == "error: stack dev has no endpoint yet: run `pulumi up --stack dev`\n"
        done = fake.run(command, cwd=fake.folder)
        assert done.returncode == 1
        assert done.stderr.startswith("error: no endpoint named (--target NAME=URL,model=MODEL), and no Pulumi.yaml in")
