"""Runs a spec's text on the engines that check temporal properties."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from specchk.compile.instantiate import instantiate
from specchk.ir.program import Program
from specchk.lang.frontend import check
from specchk.native import engine as native
from specchk.search import reference
from specchk.search.budget import Budget
from specchk.search.engine import Options
from specchk.search.verdict import Outcome, Violated, Violation, name_of

Runs = Callable[..., Outcome]


def program_of(text: str, folder: Path, model: str | None = None) -> Program:
    file = folder / "timed.spec"
    file.write_text(text, encoding="utf-8")
    return instantiate(check(str(file)), model).program


def on_reference(program: Program, **options: object) -> Outcome:
    return reference.search(program, Options(**options))  # type: ignore[arg-type]


def alone(program: Program, **options: object) -> Outcome:
    return native.search(program, native.NativeOptions(workers=1, **options))  # type: ignore[arg-type]


def together(program: Program, **options: object) -> Outcome:
    return native.search(program, native.NativeOptions(workers=2, **options))  # type: ignore[arg-type]


ENGINES = (on_reference, alone, together)


def verdict(outcome: Outcome) -> str:
    return name_of(outcome.verdict)


def violated(outcome: Outcome) -> dict[str, Violation]:
    """The violations by name."""
    assert isinstance(outcome.verdict, Violated), outcome.verdict
    return {violation.name: violation for violation in outcome.verdict.violations}


def limited(states: int) -> Budget:
    return Budget(max_states=states)
