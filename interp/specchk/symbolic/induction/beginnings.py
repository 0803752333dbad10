"""Initial states of a proof: whether they are defined, and whether there are any.

An undefined `init` is a violation, and without initial states there is nothing to prove.  The reference
enumerates the first initial values; the solver decides `init` for the others and for open offsets.
"""

from __future__ import annotations

import z3

from specchk.ir.program import Program
from specchk.ir.types import has_horizon
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.explain import Blame
from specchk.meaning.initial import initial_states
from specchk.meaning.undefined import Undefined
from specchk.meaning.values import State
from specchk.search.findings import NOTHING_TO_CHECK, outside_of
from specchk.search.refined import with_abstract_step, wrong_beginnings
from specchk.search.replay import ReplayFailed, has_first_states
from specchk.search.verdict import Inconclusive, Violated, Violation
from specchk.symbolic.induction.encode.program import System
from specchk.symbolic.induction.encode.scope import Unencodable
from specchk.symbolic.induction.models import path_of, solver_of
from specchk.symbolic.replay import ReplayPath, raised_to


def bad_beginnings(program: Program, query_seconds: float) -> Violated | Inconclusive | None:
    """The verdict if an initial state is undefined or violates a refinement, or if the solver gave up.

    Raises `Unencodable` if a refinement begins with open offsets.
    """
    undefined = _undefined(program, query_seconds)
    if isinstance(undefined, Inconclusive):
        return undefined
    if undefined is not None:
        return Violated((Violation("undefined", "init", None, Blame.of(undefined)),))
    if not program.refinements:
        return None
    for variable, start in zip(program.variables, program.starts, strict=True):
        if start.value is None and has_horizon(variable.type):
            raise Unencodable(variable.span, f"`{variable.name}` begins with any offset")
    violations = wrong_beginnings(program, initial_states(program))
    wrong = tuple([with_abstract_step(program, violation) for violation in violations])
    return Violated(wrong) if wrong else None


def _undefined(program: Program, query_seconds: float) -> Undefined | Inconclusive | None:
    """An undefined initial value, or a state in which `init` is undefined, enumerated or not."""
    try:
        if has_first_states(program):
            initial_states(program)
    except Undefined as undefined:
        return undefined
    return _undefined_init(program, query_seconds)


def unmet(program: Program, query_seconds: float) -> str | None:
    """The reason why nothing about the initial states is proved: one is undefined, or there is none."""
    undefined = _undefined(program, query_seconds)
    if isinstance(undefined, Inconclusive):
        return undefined.reason
    if undefined is not None:
        return f"`init` is undefined: {undefined.reason}, at {undefined.span.where}"
    nothing = no_beginning(program, query_seconds)
    return None if nothing is None else nothing.reason


def no_beginning(program: Program, query_seconds: float) -> Inconclusive | None:
    """The reason why there is nothing to prove: no initial state, or none within the constraints.

    None if there is one, or if the solver gave up.
    """
    system = System(program)
    state = system.beginning()
    facts = [*system.initial(state), *system.fresh.facts]
    if _is_impossible(facts, query_seconds):
        return NOTHING_TO_CHECK
    inside = system.constrained(state)
    return outside_of(program) if inside and _is_impossible([*facts, *inside], query_seconds) else None


def _is_impossible(facts: list[bool | z3.BoolRef], query_seconds: float) -> bool:
    return any(fact is False for fact in facts) or bool(solver_of(query_seconds, facts).check() == z3.unsat)


def _undefined_init(program: Program, query_seconds: float) -> Undefined | Inconclusive | None:
    system = System(program)
    state = system.beginning()
    unclear = system.unclear_initial(state)
    if unclear is False:
        return None
    solver = solver_of(query_seconds, (unclear, *system.fresh.facts))
    answer = solver.check()
    if answer == z3.unsat:
        return None
    if answer == z3.unknown:
        return Inconclusive(f"the solver gave up on `init`: {solver.reason_unknown()}", budget=False)
    return _undefined_at(program, path_of(solver.model(), program, [state], []))


def _undefined_at(program: Program, path: ReplayPath) -> Undefined:
    """The undefined part of `init` in the state that the solver found."""
    raised = raised_to(program, path.most, choosing=False)
    state: State = path.states[0]
    for init in raised.inits:
        evaluator = Evaluator(len(state), horizons=False)
        holds = evaluator.compile(init.body)
        try:
            if not holds([*state, *[0] * (evaluator.first_local - len(state) + init.locals + 1)]):
                break
        except Undefined as undefined:
            return undefined
    raise ReplayFailed("`init` is defined where the solver found it not to be")
