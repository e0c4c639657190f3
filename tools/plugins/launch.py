"""Starts a stand-in: python -P launch.py random 4.21.4 [ENGINE ADDRESS]

The checkout goes last on the path, so that none of its folders hides an installed package.
"""

import importlib.util
import sys
import types
from importlib import import_module
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))


def protocol_only() -> None:
    """Let the SDK's protocol modules be imported without the SDK, which takes longer than all a stand-in does.

    The engine starts each plugin up to four times for one `up --refresh`.
    """
    spec = importlib.util.find_spec("pulumi")
    if spec is None or spec.origin is None:
        return
    folder = Path(spec.origin).parent
    for name in ("pulumi", "pulumi.runtime", "pulumi.runtime.proto"):
        package = types.ModuleType(name)
        package.__path__ = [str(folder.joinpath(*name.split(".")[1:]))]
        sys.modules[name] = package


if __name__ == "__main__":
    protocol_only()
    import_module(f"tools.plugins.{sys.argv[1]}_stand_in").main(sys.argv[2])
