"""Starts a stand-in: python -P launch.py random 4.21.4 [ENGINE ADDRESS]

The checkout goes last on the path, so that none of its folders hides an installed package.
"""

import sys
from importlib import import_module
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))
import_module(f"tools.plugins.{sys.argv[1]}_stand_in").main(sys.argv[2])
