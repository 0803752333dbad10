"""The variables that a report may omit: those that stay the same and are irrelevant."""

from __future__ import annotations

from collections.abc import Collection

from specchk.ir.footprint import of_property
from specchk.ir.program import Program
from specchk.search.verdict import Trace


def irrelevant(program: Program, trace: Trace, name: str) -> frozenset[str]:
    """The variables that stay the same on the whole trace, and that the property `name` does not read.

    None where no property fails: at a deadlock every variable may be the reason.
    """
    failing = [prop for prop in (*program.invariants, *program.step_invariants) if prop.name == name]
    if not failing:
        return frozenset()
    read = {program.variables[slot].name for prop in failing for slot in of_property(prop).reads}
    return unchanging(program, trace, read)


def unchanging(program: Program, trace: Trace, kept: Collection[str]) -> frozenset[str]:
    """The variables that stay the same on the whole trace, except for those `kept`."""
    return frozenset(
        variable.name
        for slot, variable in enumerate(program.variables)
        if variable.name not in kept and all(state[slot] == trace.initial[slot] for state in trace.states)
    )
