"""Unexercised parts: actions that never ran, branches never taken, parts of properties never checked.

A property that holds because its antecedent never does, or of the elements of an empty set, is not evidence,
nor is a refinement under whose mapping nothing ever changes; an action that is never enabled is probably a
mistake, and a model that requires no property cannot fail.  All are warnings and, except for branches,
violations of kind `vacuous` under `--strict`.
"""

from __future__ import annotations

from collections.abc import Sequence

from specchk.ir.footprint import live_points
from specchk.ir.program import Point, Program, allows_any_end
from specchk.search.verdict import Violation

NOTHING_ASKED = (
    "no property is checked, and `deadlock ok` allows every deadlock: only undefined values can be detected"
)

NO_VARIABLES = "the spec has no variables: it has one state, and no step changes anything"


def never(program: Program, counts: Sequence[int]) -> list[Point]:
    """The points never reached, in source order; points decided by the constants are not counted.

    Except of a refinement: where constants are mapped to its variables, it is they that decide.
    """
    live = live_points(program) | {refinement.point for refinement in program.refinements}
    pairs = enumerate(zip(program.points, counts, strict=True))
    return [point for index, (point, count) in pairs if count == 0 and index in live]


def describe(point: Point) -> str:
    """The warning for one point."""
    text = " ".join(point.span.text.split())
    text = text if len(text) <= 60 else text[:57] + "..."
    match point.kind:
        case "action":
            return f"{point.span.where}: action `{point.owner}` is never enabled"
        case "branch":
            return f"{point.span.where}: in `{point.owner}` the branch `{point.label}` is never taken: {text}"
        case "forall":
            return f"{point.span.where}: in `{point.owner}` no element of `{text}` is ever checked"
        case "refinement":
            return f"{point.span.where}: no step is a step of `{point.owner}`, whose variables never change"
    return f"{point.span.where}: in `{point.owner}` the antecedent `{text}` is never true"


def complete_search_warnings(program: Program, counts: Sequence[int], *, complete: bool) -> tuple[str, ...]:
    """The warnings of a run: vacuity, if the search was complete, and omissions."""
    left_out = ", ".join(program.left_out)
    found = [f"not checked (omitted by the model): {left_out}"] if left_out else []
    if asks_nothing(program):
        found.append(NOTHING_ASKED)
    if not program.variables:
        found.append(NO_VARIABLES)
    if complete:
        idle = {point.owner for point in never(program, counts) if point.kind == "action"}
        found += [describe(p) for p in never(program, counts) if p.kind == "action" or p.owner not in idle]
    return tuple(found)


def asks_nothing(program: Program) -> bool:
    """Whether the program checks no property, so that only an undefined value could be reported."""
    if program.invariants or program.step_invariants or program.witnesses or program.liveness:
        return False
    return allows_any_end(program)


def vacuous(program: Program, counts: Sequence[int]) -> list[Violation]:
    """The warnings that fail `--strict`: all except those for branches never taken."""
    texts = [describe(point) for point in never(program, counts) if point.kind != "branch"]
    if asks_nothing(program):
        texts.append(NOTHING_ASKED)
    return [Violation("vacuous", text, None) for text in texts]
