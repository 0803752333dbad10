"""Makes the random specs of other folders importable here (pytest runs with importlib mode)."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("core", "symbolic")]
