"""Makes the helpers of this folder importable by its tests (pytest runs with importlib mode)."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
# The tracing of recordings is in the folder of bindings.
sys.path[:0] = [str(HERE), str(HERE.parents[2] / "conformance")]
