"""Lemmas that complete a proof by induction, found among candidates.

1. Candidates (`templates`) that fail in a state of the enumerated model are dropped.
2. Of the others those stay that are inductive together: as long as a step leads from a state that
   satisfies all of them to one that does not, those that fail there are dropped (Houdini: Flanagan and
   Leino, 2001).  What stays holds in every reachable state, whatever the offsets are.
3. Of these, the ones that the proof uses: those in the solver's reasons for the invariants, those in the
   reasons for these, and so on; then each that is not missed is left out.

A lemma is believed by nobody: `prove` is run on the model with the lemmas as invariants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import z3

from specchk.ir.program import Program, Property
from specchk.meaning.properties import NoAnswer, Properties, answer
from specchk.meaning.step import Stepper
from specchk.search.budget import Budget, Meter
from specchk.search.engine import Options, Search, explore
from specchk.search.proof import Suggestion
from specchk.search.reference import ReferenceEngine
from specchk.symbolic.induction.encode.bools import Truth, conj, disj, negation
from specchk.symbolic.induction.encode.program import System
from specchk.symbolic.induction.encode.steps import arguments, instance
from specchk.symbolic.induction.prove import representatives
from specchk.symbolic.induction.templates import candidates

QUERY_MS = 5_000  # a candidate that takes longer is dropped
MAX_STATES, MAX_SECONDS = 20_000, 5.0  # of the enumerated model, in which candidates are tried
UNDEFINED = "(undefined)"  # as a goal: that an action has a meaning; no property has this name
SAMPLE = 4_000  # of its states, evenly taken: a candidate that fails in none of them is rarely false


def suggest(program: Program, property_of: Callable[[str, str], Property], budget: Budget) -> Suggestion:
    """Lemmas for the invariants of a program; `property_of` makes a named invariant of a text.

    Ends early, with fewer or no lemmas, where the budget does.  Raises `Unencodable` as `prove` does.
    """
    meter = Meter(budget)
    texts = {f"suggested_{number}": text for number, text in enumerate(candidates(program), 1)}
    tried = [property_of(name, text) for name, text in texts.items()]
    held, states = _held(program, tried)
    lemmas = _Lemmas(program, held, meter)
    lemmas.make_inductive()
    chosen = lemmas.needed()
    named = {prop.name: f"suggested_{number}" for number, prop in enumerate(chosen, 1)}
    return Suggestion(
        tuple([(replace(prop, name=named[prop.name]), texts[prop.name]) for prop in chosen]),
        tried=len(tried), states=states, held=len(held), inductive=len(lemmas.active),
    )  # fmt: skip


def _held(program: Program, tried: Sequence[Property]) -> tuple[list[Property], int]:
    """The candidates that hold in the enumerated states, and the number of these states."""
    bare = replace(program, invariants=(), step_invariants=(), witnesses=())
    options = Options(Budget(MAX_STATES, MAX_SECONDS), symmetry=False, keep_going=True)
    engine = ReferenceEngine(Search(bare, options))
    explore(engine)
    found = list(engine.parents)
    sample = found[:: max(1, len(found) // SAMPLE)]
    properties = Properties(replace(bare, invariants=tuple(tried)), Stepper(bare))
    left = properties.invariants
    for state in sample:
        env = properties.environment(state)
        left = [(prop, test) for prop, test in left if _is_true(prop, test, env)]
    return [prop for prop, _ in left], len(sample)


def _is_true(prop: Property, test: Callable[[list[Any]], Any], env: list[Any]) -> bool:
    try:
        return answer(prop, test, env)
    except NoAnswer:
        return False


@dataclass(slots=True)
class _Step:
    """A way through an instance of an action, or its lack of meaning: its condition and its goals.

    `goals` are by name: the invariants of the program, its step invariants, and all candidates.
    """

    when: list[Truth]
    goals: dict[str, Truth]


@dataclass(slots=True)
class _Lemmas:
    """Candidates as hypotheses that can be switched off; `active` are those that are not."""

    program: Program
    held: Sequence[Property]
    meter: Meter
    active: dict[str, Property] = field(init=False)
    solver: Any = field(init=False, default_factory=z3.Solver)
    switches: dict[str, Any] = field(init=False, default_factory=dict)
    steps: list[_Step] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.active = {prop.name: prop for prop in self.held}
        system = System(self.program)
        before = system.state(0)
        facts = system.constrained(before)
        for prop in (*self.program.invariants, *self.held):
            self.switches[prop.name] = z3.Bool(prop.name)
            self.solver.add(z3.Implies(self.switches[prop.name], conj(system.holds(prop, before))))
        self._begin(system, before)
        full = replace(self.program, invariants=(*self.program.invariants, *self.held))
        for index, position in representatives(full)[0]:
            given = arguments(self.program, self.program.actions[index], "t.")[position]
            found = instance(self.program, index, given, before, "t.")
            faults = [fault.when for fault in found.faults]
            if disj(faults) is not False:
                self.steps.append(_Step([disj(faults)], {UNDEFINED: False}))
            for outcome in found.outcomes:
                goals = {p.name: conj(system.holds(p, outcome.after)) for p in full.invariants}
                goals |= {p.name: conj(system.holds(p, before, outcome.after)) for p in full.step_invariants}
                self.steps.append(_Step([outcome.guard, *map(negation, faults)], goals))
        self.solver.add([fact for fact in (*facts, *system.fresh.facts) if fact is not True])
        self.solver.set("timeout", QUERY_MS)

    def _begin(self, system: System, state: Any) -> None:
        """Drop candidates that an initial state does not satisfy, whatever the offsets are."""
        solver = z3.Solver()
        solver.add([fact for fact in (*system.initial(state), *system.fresh.facts) if fact is not True])
        for prop in self.held:
            if solver.check(negation(conj(system.holds(prop, state)))) != z3.unsat:
                del self.active[prop.name]

    def make_inductive(self) -> None:
        """Drop candidates until those that are left are inductive together with the invariants."""
        is_done = False
        while not is_done:
            is_done = True
            for step in self.steps:
                while dropped := self._broken_by(step):
                    is_done = False
                    for name in dropped:
                        del self.active[name]

    def _broken_by(self, step: _Step) -> list[str]:
        """The candidates that a step breaks, out of some state that satisfies all; none if it keeps them."""
        goals = {name: goal for name, goal in step.goals.items() if name in self.active}
        wrong = disj([negation(goal) for goal in goals.values()])
        if wrong is False:
            return []
        if self.meter.exceeded(0) is not None:
            return list(self.active)  # what was not shown to be inductive is no lemma
        with self._checked(step, wrong, self.active) as answer:
            if answer == z3.unsat:
                return []
            if answer == z3.unknown:
                return list(goals)
            model = self.solver.model()
            return [
                name for name, goal in goals.items()
                if goal is False or (goal is not True and not z3.is_true(model.eval(goal, True)))
            ]  # fmt: skip

    def needed(self) -> list[Property]:
        """The lemmas that the proof of the invariants uses, in the order of the candidates."""
        goals = [prop.name for prop in (*self.program.invariants, *self.program.step_invariants)]
        reasons = {goal: self._reasons(goal, self.active) for goal in (*goals, UNDEFINED)}
        proved = [goal for goal, reason in reasons.items() if reason is not None]
        used = set[str]().union(*[reason for reason in reasons.values() if reason is not None])
        todo = list(used)
        while todo:
            more = (self._reasons(todo.pop(), self.active) or set()) - used
            used |= more
            todo += more
        # A solver's reason is a reason, not a smallest one.
        for name in [name for name in self.active if name in used]:
            fewer = used - {name}
            if self.meter.exceeded(0) is None and self._suffices(fewer, proved):
                used = fewer
        return [prop for name, prop in self.active.items() if name in used]

    def _suffices(self, lemmas: set[str], proved: Iterable[str]) -> bool:
        return all(self._reasons(goal, lemmas) is not None for goal in (*lemmas, *proved))

    def _reasons(self, goal: str, lemmas: Iterable[str]) -> set[str] | None:
        """The lemmas that the proof of a goal uses, for all steps; None where there is no proof."""
        used = set[str]()
        for step in self.steps:
            if goal in step.goals:
                with self._checked(step, negation(step.goals[goal]), lemmas) as answer:
                    if answer != z3.unsat:
                        return None
                    used |= {str(switch) for switch in self.solver.unsat_core()} & set(lemmas)
        return used

    @contextmanager
    def _checked(self, step: _Step, wrong: Truth, lemmas: Iterable[str]) -> Iterator[Any]:
        """Check for a state that satisfies all invariants and lemmas, and has this step."""
        wanted = [*[prop.name for prop in self.program.invariants], *lemmas]
        self.solver.push()
        try:
            self.solver.add(*step.when, wrong)
            yield self.solver.check([self.switches[name] for name in wanted])
        finally:
            self.solver.pop()
