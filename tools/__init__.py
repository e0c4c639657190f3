"""The pinned toolchain and what `make` runs. Set-up itself needs nothing but the standard library."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036  # make runs this with whatever python3 is on PATH: say it, not a traceback
    sys.exit(
        "set-up needs Python 3.11 or newer, and %s is %d.%d: install one and run make PYTHON=python3.11 (or newer)"  # noqa: UP031  # parsed by the old one
        % (sys.executable, *sys.version_info[:2])
    )
