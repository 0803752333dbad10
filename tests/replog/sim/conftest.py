"""Makes `planted` and `planting` importable by the tests of this folder (pytest runs with importlib mode)."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
