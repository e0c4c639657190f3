"""What Engine says: progress, notes of a preview, and the text of a failure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .resource import Run, Values
from .values import known

MAX_LOG_LINES = 4
MAX_TEXT = 300  # of a cause or a log line


def short(digest: str | None) -> str:
    return digest.removeprefix("sha256:")[:12] if digest else "nothing"


def one_line(text: str) -> str:
    """What a program said, as part of one line: every run of blanks, line ends and control characters is a space."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return flat if len(flat) <= MAX_TEXT else flat[: MAX_TEXT - 1] + "…"


@dataclass
class Teller:
    """Turns a job's event lines into the status column and, at milestones, a line that stays."""

    run: Run

    def __call__(self, event: Values) -> None:
        phase, kind, text = event["phase"], event["event"], event["text"]
        if kind == "progress":
            done, total = event["bytes"] or 0, event["total"]
            amount = f" {done / 1e6:.0f}" + (f" of {total / 1e6:.0f} MB" if total else " MB") if done >= 1e6 else ""
            self.run.show(f"{phase}{amount}{' ' + text if text else ''}")
        elif kind == "note":
            self.run.say(f"{phase}: {text}")
        elif kind == "fail":
            self.run.show(f"{phase} failed: {text}")
        elif kind == "end" and text and not text.startswith("0.0"):
            self.run.say(f"{phase}: done in {text}" if text[0].isdigit() else f"{phase}: {text}")

    def summary(self, done: Values) -> str:
        phases = ", ".join(f"{name} {s:.1f} s" for name, s in done["phases"].items() if s >= 0.05)
        return f"{len(done['gate'])} checks passed" + (f"; {phases}" if phases else "")


def preview_notes(old: Values, new: Values) -> Iterator[str]:
    """What the change costs and whether the answers may change; from Create and Update previews only."""
    if not known(new["host"]):
        yield "the machine moves: the new one is gated before the old one goes"
        return
    if old["pins"] == new["pins"] and old["argv"] == new["argv"] and old["env"] == new["env"]:
        yield "what runs is gated again; only what is dead is started"
        return
    yield f"one engine restart; requests are held for up to {new['holdS']} s meanwhile"
    before, after = old["pins"], new["pins"]
    moved = [name for name in ("engine", "weights", "tokenizer", "drafter", "draftTokens")
             if before.get(name) != after.get(name)]  # fmt: skip
    if {"weights", "tokenizer"} & set(moved):
        yield "the answers may change: " + ", ".join(n for n in moved if n in ("weights", "tokenizer")) + " moved"
    elif moved:
        yield f"same model; only speed should change ({', '.join(moved)} moved): checked by ladder, not proven"


def failure_text(run: Run, new: Values, done: Values, after: Values) -> str:
    """First a sentence of its own, then a fact a line, at most 12."""
    cause = done["cause"] or {"kind": "unknown", "text": "the job ended without an answer"}
    serving = after["serving"]
    end = f"{short(serving)} serves" if serving else "nothing serves"
    if after["result"] == "unknown":
        end = "what serves cannot be told from here"
    why = one_line(cause["text"]).rstrip(".")
    lines = [f"{new['recipe']} ({short(new['pins']['lock'])}) does not serve: {why}; {end} now."]
    if gave_up := run.gave_up():
        lines.append(f"asked to give up: {gave_up}")
    pins = new["pins"]
    lines.append(f"started: engine {pins['engine']}")
    lines.append(f"weights: {pins['weights']}" + (f", drafter: {pins['drafter']}" if pins.get("drafter") else ""))
    passed = [c["check"] for c in done["gate"] if c["ok"]]
    phases = ", ".join(f"{name} {s:.1f} s" for name, s in done["phases"].items())
    lines.append(f"got to: {', '.join(passed) or 'no check passed'}" + (f" ({phases})" if phases else ""))
    if cause["kind"] not in ("gate", "unknown"):
        lines.append(f"cause: {cause['kind']}")
    lines += [f"log: {one_line(line)}" for line in done["log_tail"][-MAX_LOG_LINES:]]
    lines.append(f"now: {end}" + (" as before" if serving else ""))
    if price := new.get("hourlyPrice"):
        lines.append(f"costs meanwhile: {price:g} an hour")
    stack = run.stack
    if cause["kind"] == "failed before":
        again = f"pulumi config set --path endpoint.retry {cause['retry']} --stack {stack}"
        lines.append(f"next: mend and pin again; to try this lock once more: {again}")
    elif cause["kind"] == "command line":
        lines.append(f"next: correct the recipe, then `sluicegate recipe pin {new['recipe']} --stack {stack}`")
    elif cause.get("mend"):
        lines.append(f"next: {one_line(cause['mend'])}")
    elif after["result"] == "unknown":
        lines.append(f"next: `sluicegate status --stack {stack}`, then `pulumi up --stack {stack}`")
    elif serving:
        lines.append("next: put the old pins back (0 operations), or mend and pin again")
    else:
        lines.append(f"next: `sluicegate logs --stack {stack}`, mend, then `pulumi up --stack {stack}`")
    return "\n".join(lines)
