"""Makes `store_support` and the fuzzer in `bench` importable (pytest runs with importlib mode)."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.append(str(HERE.parents[2] / "bench"))  # last: it has a spark.py, as tests have a folder
