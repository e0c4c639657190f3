"""What stands between a command of this room and the shell: output, termination, errors as one line, exit codes."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

from .table import clean


def show(text: str) -> None:
    """Print a result. A reader that has seen enough (`| head`) ends neither the command nor its exit code.

    Raises OSError when standard output cannot be written for another reason.
    """
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else the flush at exit complains


def tell(text: str) -> None:
    """A line for the person at the terminal; nothing where standard error is closed."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(clean(text), file=sys.stderr, flush=True)


@contextlib.contextmanager
def unbroken() -> Iterator[None]:
    """What a second ^C, out of impatience, may not break: keeping what the first one left."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def guarded(command: Callable[..., int], *args: Any) -> int:
    """Run a command. A bad option or an unwritable file is one line on stderr and 2; an interrupt that came before
    anything was measured is 130. Termination (SIGTERM) acts as ^C does, so that what was measured is kept.
    """
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return command(*args)
    except ValueError as error:
        tell(f"sluicegate: {error}")
    except OSError as error:
        tell(f"sluicegate: {error.filename or 'standard output'}: {error.strerror or error}")
    except KeyboardInterrupt:
        return 130
    finally:
        signal.signal(signal.SIGTERM, before)
    return 2
