"""One source on its way: what is to be fetched, whom to tell, and how it can fail."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .jobs import Job


class FetchError(Exception):
    """A source cannot be had; `transient` says whether another try may help."""

    def __init__(self, kind: str, text: str, transient: bool = False) -> None:
        super().__init__(text)
        self.kind, self.transient = kind, transient


@dataclass(frozen=True)
class Errand:
    """One source to be fetched into `place`, and whom to tell."""

    job: Job
    phase: str
    ref: str
    place: Path
    base: Path | None
    total: int | None  # bytes to come, where the lock knows

    def progress(self, done: int) -> None:
        # What is copied or unpacked on the way counts more than once: never say more than there is.
        self.job.emit(self.phase, "progress", done=min(done, self.total or done), total=self.total)
