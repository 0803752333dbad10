"""Counterexamples that are easy to read, instead of those found first."""

from __future__ import annotations

from msgspec.structs import replace

from specchk.compile.instantiate import Instance
from specchk.explore.optimal import MAX_STATES, optimal
from specchk.explore.view import Viewer
from specchk.explore.walk import Walker, with_only
from specchk.search.verdict import Outcome, Trace, Violated, Violation, violations_of


def clearest(instance: Instance, witness: str, first: Trace, max_states: int) -> Trace:
    """The shortest trace to a witness with the fewest switches between lanes, in place of the first trace."""
    program = with_only(instance.program, witness)
    if program is None:
        return first
    never = Violation("invariant", witness, first)
    return optimal(program, never, Viewer(instance).sort, 1, max_states).traces[0]


def clearer(instance: Instance, outcome: Outcome, wanted: int = 1, max_states: int = MAX_STATES) -> Outcome:
    """The outcome with the best counterexamples instead of those found first.

    For each violation the `wanted` best, among paths through at most `max_states` states.
    """
    # An undefined `init` has no trace, and leaves no initial state from which a walker could follow one.
    if not any(violation.trace for violation in violations_of(outcome.verdict)):
        return outcome
    walker, sort = Walker(instance), Viewer(instance).sort
    violations: list[Violation] = []
    notes: list[str] = []
    for violation in violations_of(outcome.verdict):
        # Of looping behaviours the first one found is kept: their ends are decided by more than a state.
        if violation.trace is None or violation.trace.loop is not None:
            violations.append(violation)
            continue
        best = optimal(instance.program, violation, sort, wanted, max_states)
        for trace in best.traces:
            # Checked again, since the reason names values of the trace that was found first.
            judged = walker.violation(trace, violation.name)
            violations.append(judged if judged is not None else replace(violation, trace=trace))
        if best.note:
            notes.append(f"{violation.name}: {best.note}")
    return replace(outcome, verdict=Violated(tuple(violations)), warnings=(*outcome.warnings, *notes))
