"""Pulumi's own downloads: the CLI by the Automation API's installer, plugins by `pulumi plugin install`.

Whether they can be reached is asked once a run, and a network without them costs ten seconds at most.
"""

from __future__ import annotations

import functools
import os
import subprocess

from tools.console import SetupError, run_with_progress, say
from tools.paths import OFFICIAL, ROOT, VENV_PYTHON, Versions
from tools.pulumi_cli import HOST, Toolchain, printed_version

GIVES_UP_S = 9.0

# In a process of its own: a look-up of a name that nobody answers can't be given a limit within one.
_PROBE = """
import urllib.request
from pulumi.automation import _cmd
urllib.request.urlopen("https://get.pulumi.com/install.sh", timeout=8).read(1)
"""

_INSTALL = """
import sys
from semver import VersionInfo
from pulumi.automation import PulumiCommand
print(PulumiCommand.install(root=sys.argv[1], version=VersionInfo.parse(sys.argv[2])).version, flush=True)
"""


@functools.cache
def reachable() -> bool:
    """Whether Pulumi's download site answers from here."""
    try:
        answer = subprocess.run([VENV_PYTHON, "-c", _PROBE], capture_output=True, timeout=GIVES_UP_S, check=False)
    except subprocess.TimeoutExpired:
        return False
    return answer.returncode == 0


def download_cli(pinned: Versions) -> Toolchain | str:
    """The official CLI with its language hosts below `.tools/official`, or why not."""
    if not reachable():
        return "Pulumi's download site is not reachable from here"
    say(f"pulumi: downloading the official CLI {pinned.pulumi} (about a minute on a common line)")
    command = [str(VENV_PYTHON), "-c", _INSTALL, str(OFFICIAL), pinned.pulumi]
    # A home of its own, so that the installer finds no shell profile of the user's to change.
    env = {**os.environ, "HOME": str(OFFICIAL), "PULUMI_SKIP_UPDATE_CHECK": "true"}
    try:
        run_with_progress("downloading pulumi", command, cwd=ROOT, env=env)
    except SetupError as error:
        return str(error)
    pulumi, host = OFFICIAL / "bin" / "pulumi", OFFICIAL / "bin" / HOST
    version = printed_version(str(pulumi))
    if not version or not host.exists():
        return f"the download left no working {pulumi} with a {HOST} beside it"
    return Toolchain(
        pulumi=str(pulumi),
        pulumi_version=version,
        language_python=str(host),
        language_python_version=version,
        how="download",
    )
