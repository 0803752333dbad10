"""What may kill the flaws listed here: the same members as for the curated mutants."""

from __future__ import annotations

from pathlib import Path
from runpy import run_path

CURATED = run_path(str(Path(__file__).parents[3] / "conformance" / "mutants" / "members.py"))
MEMBERS = CURATED["MEMBERS"]
SELF_CHECKS = CURATED["SELF_CHECKS"]
TARGETS = CURATED["TARGETS"]
WATCHED = CURATED["WATCHED"]
