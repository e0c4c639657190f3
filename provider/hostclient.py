"""Asking the host program: one verb, one answer; a job is started, followed, and asked to give up."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .resource import FailedError, Run, UnreachableError, Values

POLL_S = 0.1  # how soon a ^C is passed on
ASK_S = 300  # a verb answers in seconds; what takes longer is a job
AGAIN_S = 5  # between two attempts to pass a ^C on

# What a result lacks when its job was killed before it could say it.
NO_ANSWER: Values = {"serving": None, "phases": {}, "gate": [], "cause": None, "log_tail": []}


class HostError(FailedError):
    """The host program answered that it could not; `kind` is the class of the fault there."""

    def __init__(self, text: str, kind: str) -> None:
        super().__init__(text)
        self.kind = kind


@dataclass(frozen=True)
class Host:
    """A machine that can be asked: `command` runs the host program there, `places` says which stack's folders."""

    command: list[str]
    places: Values

    def ask(self, verb: str, spec: Values | None = None, limit_s: float = ASK_S) -> Any:
        """The verb's answer. Raises HostError, or UnreachableError when the program did not answer at all."""
        body = json.dumps({"places": self.places} | (spec or {}))
        try:
            done = subprocess.run(
                [*self.command, verb], input=body, capture_output=True, encoding="utf-8", errors="replace",
                check=False, start_new_session=True, timeout=limit_s,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise UnreachableError(f"the host program did not answer `{verb}` within {limit_s:g} s") from None
        except OSError as e:
            raise UnreachableError(f"the host program does not start: {e.strerror}: {self.command[0]}") from None
        try:
            answer = json.loads(done.stdout)
        except ValueError:
            said = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
            raise UnreachableError(f"the host program did not answer `{verb}`: {said[0]}") from None
        if isinstance(answer, dict) and "error" in answer:
            raise HostError(answer["error"], answer["kind"])
        return answer

    def run_job(self, run: Run, verb: str, spec: Values, tell: Callable[[Values], None]) -> Values:
        """Start a job and follow it to its result."""
        if why := run.gave_up():
            # A job that is asked to give up once it runs may have stopped what serves by then.
            raise FailedError(f"{why} before `{verb}` was started; nothing was touched.")
        return self.follow(run, self.ask(verb, spec)["job"], tell)

    def follow(self, run: Run, job: str, tell: Callable[[Values], None]) -> Values:
        """Every event line to `tell`, the result line returned. Giving up asks the job to revert and waits for it."""
        folder = f"{self.places['root']}/stacks/{self.places['stack']}/jobs/{job}"
        follower = subprocess.Popen(
            [*self.command, "follow", folder, "0"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, encoding="utf-8", errors="replace", start_new_session=True,
        )  # fmt: skip
        lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=_pump, args=(follower, lines), daemon=True).start()
        asked, next_ask = False, 0.0
        try:
            while True:
                if not asked and time.monotonic() >= next_ask and run.gave_up():
                    asked, next_ask = self._revert(job), time.monotonic() + AGAIN_S
                try:
                    line = lines.get(timeout=POLL_S)
                except queue.Empty:
                    continue
                if line is None:
                    break
                event = json.loads(line)
                if "result" in event:
                    return {**NO_ANSWER, **event}
                tell(event)
        finally:
            follower.kill()
            follower.wait()
        raise UnreachableError(f"lost sight of job {job}; it goes on by itself: `sluicegate status` says what serves")

    def _revert(self, job: str) -> bool:
        """Whether the job could be told; when not, it is still followed: what it does is the answer."""
        try:
            self.ask("revert", {"job": job}, 30)
        except FailedError:
            return False
        return True


def _pump(follower: subprocess.Popen[str], lines: queue.Queue[str | None]) -> None:
    assert follower.stdout is not None
    for line in follower.stdout:
        lines.put(line)
    lines.put(None)
