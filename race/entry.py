"""What stands between a command of this room and the shell: termination, errors as one line, exit codes."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from typing import Any


def guarded(command: Callable[..., int], *args: Any) -> int:
    """Run a command. A bad option or an unwritable file is one line on stderr and 2; an interrupt that came before
    anything was measured is 130. Termination (SIGTERM) acts as ^C does, so that what was measured is kept.
    """
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return command(*args)
    except ValueError as error:
        print(f"sluicegate: {error}", file=sys.stderr)
    except OSError as error:
        print(f"sluicegate: {error.filename or 'file'}: {error.strerror or error}", file=sys.stderr)
    except KeyboardInterrupt:
        return 130
    finally:
        signal.signal(signal.SIGTERM, before)
    return 2
