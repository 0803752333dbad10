"""Ignored variables: of states that differ only in these, the search keeps the first.

Every finding is real, since every step of the search is one of the program.  The absence of findings is
established for the searched states, and for all states if the ignored variables decide nothing
(`decide_nothing`): they record what happened, and states that differ in them only have the same future.

Such models are refused by everything that needs every state, or has states in any order.

No constraint and no temporal property may depend on them. A step may lead to a state that is skipped, in
whose place another one is taken: a path of the search is a behaviour, but a loop of it need not be. And a
constraint must hold for all states that are searched as one, or for none of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

from specchk.ir.footprint import read_by
from specchk.ir.nodes import Assign, Cover, Expr, Var
from specchk.ir.program import Action, Program, nowhere
from specchk.ir.totality import is_total
from specchk.ir.types import Map, Record
from specchk.ir.walk import inside, keys_of, roots_of, statements
from specchk.lang.text.diagnostics import Diagnostic, SpecError

_SELECT = "select others (`properties ...`, --property), or declare a model of its own for this one"
_HINT = "use --engine native, or declare a model without `ignore`"


def decide_nothing(program: Program) -> bool:
    """Whether no step and no property depends on the ignored variables, as far as a syntactic check shows."""
    ignored = frozenset(program.ignored)
    properties = [*program.invariants, *program.step_invariants, *program.witnesses]
    if program.deadlock_ok is not None:
        properties.append(program.deadlock_ok)
    # A refinement reads variables in more places than its body.
    read = any(read_by(prop) & ignored for prop in properties) or program.refinements
    return not read and all(_only_recorded(action, ignored) for action in program.actions)


def _only_recorded(action: Action, ignored: Set[int]) -> bool:
    """Whether an action reads ignored variables for their own values alone, which exist without a choice."""
    return all(
        _is_stored(stmt) and not any(_reads(key, ignored) for key in keys_of(stmt))
        if isinstance(stmt, Assign) and stmt.slot in ignored
        else not any(_reads(root, ignored) for root in roots_of(stmt))
        for stmt in statements(action.body)
    )


def _is_stored(stmt: Assign) -> bool:
    # An index of a sequence, or a key of a partial map, may be missing in one of the states only; and
    # branches inside the value that only skipped states take would be reported as never taken.
    return (
        is_total(stmt.value)
        and not any(isinstance(node, Cover) for node in inside(stmt.value))
        and all(isinstance(step.container, Map | Record) for step in stmt.path)
    )


def _reads(expr: Expr, slots: Set[int]) -> bool:
    return any(isinstance(node, Var) and node.slot in slots for node in inside(expr))


def ignoring(program: Program, who: str) -> list[Diagnostic]:
    """The reason why a program with ignored variables is rejected by `who`, an engine that keeps all."""
    if not program.ignored:
        return []
    message = f"{who} all variables, and model `{program.model}` ignores {program.ignored_names}"
    return [Diagnostic("S703", message, program.ignored_at or nowhere(program), _HINT)]


def refuse_ignored(program: Program, who: str) -> None:
    """Raise that reason as a `SpecError`."""
    if reasons := ignoring(program, who):
        raise SpecError(reasons)


def check_ignored(program: Program) -> None:
    """Raise `SpecError` if the variables cannot be ignored."""
    if program.ignored:
        place = program.ignored_at or nowhere(program)
        if refused := [Diagnostic("S513", message, place, hint) for message, hint in _refused(program)]:
            raise SpecError(refused)


def _refused(program: Program) -> Iterator[tuple[str, str]]:
    if len(program.ignored) == len(program.variables):
        yield "this model ignores every variable, so that all states are one", "leave a variable"
    for prop in program.constraints:
        for slot in sorted(read_by(prop) & set(program.ignored)):
            name = program.variables[slot].name
            message = f"the constraint `{prop.name}` reads `{name}`, which this model ignores"
            yield message, f"do not ignore `{name}`"
    for claim in program.temporal:
        yield (
            f"`{claim.name}` is about behaviours, and not checked by a model that ignores variables",
            _SELECT,
        )
