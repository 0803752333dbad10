"""Makes the random specs of tests/core importable here (pytest runs with importlib mode)."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "core"))
