"""Makes `bank` and the modules of conformance/ importable by the tests of this folder."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "conformance")]
