"""What stands between a command of this room and the shell: output, termination, errors as one line, exit codes."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from .table import clean

PATIENCE_S = 2.0


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


def _once() -> Callable[[int, Any], None]:
    """A signal handler that interrupts, and lets the signals of the next moment by: they are impatience, and could
    break the keeping of what the first one left.
    """
    last = float("-inf")

    def handler(_number: int, _frame: Any) -> None:
        nonlocal last
        if time.monotonic() - last > PATIENCE_S:
            last = time.monotonic()
            raise KeyboardInterrupt

    return handler


def guarded(command: Callable[..., int], *args: Any) -> int:
    """Run a command. A bad option or an unwritable file is one line on stderr and 2; an interrupt that came before
    anything was measured is 130. Termination (SIGTERM) acts as ^C does, so that what was measured is kept.
    """
    asked = [number for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) is not signal.SIG_IGN]
    handler = _once()
    before = [(number, signal.signal(number, handler)) for number in asked]
    try:
        return command(*args)
    except ValueError as error:
        tell(f"sluicegate: {error}")
    except OSError as error:
        tell(f"sluicegate: {error.filename or 'standard output'}: {error.strerror or error}")
    except KeyboardInterrupt:
        return 130
    finally:
        for number, earlier in before:
            signal.signal(number, earlier or signal.SIG_DFL)
    return 2
