"""Makes `naive` and `grown` importable from tests/core (pytest runs with importlib mode)."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "core"))
