"""Makes `store_support` and the fuzzer in `bench` importable (pytest runs with importlib mode)."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[2] / "bench")]
