"""Unexercised parts: actions that never ran, branches never taken, parts of properties never checked.

A property that holds because its antecedent never does, or of the elements of an empty set, is not evidence,
nor is a refinement under whose mapping nothing ever changes; an action that is never enabled is probably a
mistake, and a model that requires no property cannot fail.  All are warnings and, except for branches,
violations of kind `vacuous` under `--strict`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from specchk.ir.footprint import live_points
from specchk.ir.program import Point, Program, allows_any_end
from specchk.search.verdict import Violation

NOTHING_CHECKED = (
    "no property is checked, and `deadlock ok` allows every deadlock: only undefined values can be detected"
)

ONE_ORDER = "in one order of interchangeable elements; --no-symmetry tries every order"

NO_VARIABLES = "the spec has no variables: it has one state, and no step changes anything"
NO_CHANGE = "no step changes the state, so only initial states were checked"
_OMITTED = "not checked (omitted by the model): "


def never(program: Program, counts: Sequence[int]) -> list[Point]:
    """The points never reached, in source order; points decided by the constants are not counted.

    Except of a refinement: where constants are mapped to its variables, it is they that decide.
    """
    live = live_points(program) | {refinement.point for refinement in program.refinements}
    pairs = enumerate(zip(program.points, counts, strict=True))
    return [point for index, (point, count) in pairs if count == 0 and index in live]


def describe(point: Point, *, by_order: bool = False) -> str:
    """The warning for one point; `by_order`: another order of elements may reach it."""
    text = " ".join(point.span.text.split())
    text = text if len(text) <= 60 else text[:57] + "..."
    fault = {
        "action": f"action `{point.owner}` is never enabled",
        "branch": f"in `{point.owner}` the branch `{point.label}` is never taken: {text}",
        "forall": f"in `{point.owner}` no element of `{text}` is ever checked",
        "implication": f"in `{point.owner}` the antecedent `{text}` is never true",
        "refinement": f"no step is a step of `{point.owner}`, whose variables never change",
    }[point.kind]
    return f"{point.span.where}: {fault}" + (f" ({ONE_ORDER})" if by_order else "")


def complete_search_warnings(
    program: Program,
    counts: Sequence[int],
    *,
    complete: bool,
    by_order: Collection[int] = (),
    failed: Collection[str] = (),
) -> tuple[str, ...]:
    """The warnings of a run: vacuity, if the search was complete, and omissions.

    `by_order`: the points whose counts depend on the order of elements, of which symmetry tries one.
    `failed`: the properties that fail somewhere; later parts of them were not evaluated there.
    """
    left_out = ", ".join(program.left_out)
    found = [f"{_OMITTED}{left_out}"] if left_out else []
    if checks_nothing(program):
        found.append(NOTHING_CHECKED)
    if not program.variables:
        found.append(NO_VARIABLES)
    if complete:
        unsure = {program.points[index] for index in by_order}
        points = [point for point in never(program, counts) if point.owner not in failed]
        idle = {point.owner for point in points if point.kind == "action"}
        shown = [point for point in points if point.kind == "action" or point.owner not in idle]
        found += [describe(point, by_order=point in unsure) for point in shown]
    return tuple(found)


def of_one_model(program: Program, warnings: Sequence[str]) -> list[str]:
    """The warnings of a model alone, not those of points, which another model of the file may reach."""
    others = {describe(point, by_order=unsure) for point in program.points for unsure in (False, True)}
    # Nor those that the model itself states.
    return [text for text in warnings if text not in others and not text.startswith(_OMITTED)]


def checks_nothing(program: Program) -> bool:
    """Whether the program checks no property, so that only an undefined value could be reported."""
    properties = (program.invariants, program.step_invariants, program.witnesses, program.liveness)
    return not any(properties) and allows_any_end(program)


def vacuous(
    program: Program, counts: Sequence[int], by_order: Collection[int] = (), failed: Collection[str] = ()
) -> list[Violation]:
    """The warnings that fail `--strict`: all that are certain, except those for branches never taken."""
    unsure = {program.points[index] for index in by_order}
    points = [point for point in never(program, counts) if point.owner not in failed]
    shown = [point for point in points if point.kind != "branch" and point not in unsure]
    texts = [*map(describe, shown), *([NOTHING_CHECKED] if checks_nothing(program) else [])]
    return [Violation("vacuous", text, None) for text in texts]
