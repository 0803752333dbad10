"""Models for the tests of the search on Spark, and comparisons of engines' results on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from specchk.compile.instantiate import instantiate
from specchk.ir.program import Program
from specchk.lang.frontend import check
from specchk.native import engine as native
from specchk.search.verdict import Outcome
from specchk.spark.engine import SparkOptions

SPEC = Path(__file__).resolve().parents[2] / "spec"


def program(file: str, model: str | None = None, **constants: str) -> Program:
    return instantiate(check(str(SPEC / file)), model, constants).program


def of_text(text: str, folder: Path) -> Program:
    file = folder / "small.spec"
    file.write_text(text, encoding="utf-8")
    return instantiate(check(str(file)), None).program


def natively(program: Program, options: SparkOptions) -> Outcome:
    """The native engine's result with the same options."""
    return native.search(
        program,
        native.NativeOptions(options.budget, options.symmetry, options.keep_going, options.strict, workers=2),
    )


def said(outcome: Outcome) -> dict[str, Any]:
    """Everything in an outcome, except for time and engine; witnesses in any order."""
    quiet = replace(outcome.statistics, seconds=0.0)
    return {
        "verdict": outcome.verdict,
        "statistics": quiet,
        "coverage": outcome.coverage,
        "warnings": outcome.warnings,
        "witnesses": sorted(outcome.witnesses, key=lambda pair: pair[0]),
    }
