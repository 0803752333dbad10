"""Lemmas that complete a proof by induction, found among candidates.

1. Candidates (`exclusions` of `templates`' atoms) hold in all states of the enumerated model, or in a sample
   of them.
2. Those that are inductive together remain: as long as a step leads from a state that satisfies all of
   them to one that does not, those that fail there are dropped (Houdini: Flanagan and Leino, 2001).  The
   remaining ones hold in every reachable state, whatever its offsets.
3. Of these, the ones that the proof uses are kept: those in the solver's reasons for the invariants, those in
   the reasons for these, and so on; then each one that proves redundant is removed.

Clauses of one atom come first, then those of two and of three, until every invariant is proved.
No lemma is trusted: `prove` is run on the model with the lemmas as invariants.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import z3
from msgspec import Struct
from msgspec.structs import replace

from specchk.ir.program import Program
from specchk.meaning.values import State
from specchk.search.budget import Budget, Meter
from specchk.search.engine import Options, Search, explore
from specchk.search.proof import Suggestion
from specchk.search.reference import ReferenceEngine
from specchk.symbolic.induction.encode.bools import Truth, conj, disj, negation
from specchk.symbolic.induction.encode.program import System
from specchk.symbolic.induction.encode.steps import arguments, instance
from specchk.symbolic.induction.exclusions import Exclusion, merged, minimal, rows
from specchk.symbolic.induction.models import interrupt_at_limit
from specchk.symbolic.induction.prove import representatives
from specchk.symbolic.induction.tables import AtomTable, Lowered, Truths, invariant, tables
from specchk.symbolic.induction.templates import Atom, Templates, Vocabulary, unused_names

QUERY_MS = 5_000  # a candidate that takes longer is dropped
MAX_STATES, MAX_SECONDS = 20_000, 5.0  # of the enumerated model, in which candidates are tried
MAX_ANSWERS = 400_000  # of atoms in states: of more states a sample is taken, evenly
MAX_CANDIDATES = 1_500  # of atoms in states; if there are more, states are sampled evenly
LENGTHS = (1, 2, 3)  # of clauses
UNDEFINED = "(undefined)"  # the goal that an action is defined; no property has this name
NO_NAMES = Vocabulary()


def suggest(
    program: Program, lowered: Lowered, budget: Budget, vocabulary: Vocabulary = NO_NAMES
) -> Suggestion:
    """Lemmas for the invariants of a program; `lowered` converts a text to an expression of its spec.

    Ends early, with fewer or no lemmas, when the budget is used up.  Raises `Unencodable` as `prove` does.
    """
    meter = Meter(budget)
    interrupt_at_limit(budget)
    names = unused_names(program)
    atom_tables = tables(program, Templates(program, vocabulary).atoms(), names, lowered)
    states = _states(program, MAX_ANSWERS // max(1, len(atom_tables)), meter)
    masks = {atom: table.masks(states, len(program.variables)) for atom, table in atom_tables.items()}
    sizes = {
        domain: size
        for atom, table in atom_tables.items()
        for domain, size in zip(atom.domains, table.sizes, strict=True)
    }
    lemmas = _Lemmas(program, atom_tables, sizes, meter)
    clauses, tried, needed = list[Exclusion](), 0, list[Exclusion]()
    # Longer clauses only if the shorter ones do not suffice: there are many times as many.
    for length in LENGTHS:
        more, combinations = minimal(masks, sizes, length)
        clauses, tried = [*clauses, *more][:MAX_CANDIDATES], tried + combinations
        lemmas.choose(clauses)
        lemmas.make_inductive()
        proved, needed = lemmas.needed()
        if len(proved) == len(lemmas.goals) or meter.exceeded(0) is not None:
            break
    texts = [clause.text(names) for clause in merged(needed)]
    return Suggestion(
        tuple([(invariant(f"suggested_{n}", lowered(text)), text) for n, text in enumerate(texts, 1)]),
        tried=tried, states=len(states), held=len(clauses), inductive=len(lemmas.active),
    )  # fmt: skip


def _states(program: Program, most: int, meter: Meter) -> list[State]:
    """Some states of the enumerated model, evenly spaced."""
    bare = replace(program, invariants=(), step_invariants=(), witnesses=())
    budget = meter.within(Budget(MAX_STATES, MAX_SECONDS))
    options = Options(budget, symmetry=False, keep_going=True)
    engine = ReferenceEngine(Search(bare, options))
    explore(engine)
    states = list(engine.parents)
    return states[:: max(1, -(-len(states) // max(1, most)))]


class _Step(Struct):
    """A path through an instance of an action, or its fault: its condition and its goals.

    `goals` are by name: the invariants of the program, its step invariants, and the candidates that the step
    may break; `after` has the truths of atoms after the step.
    """

    when: list[Truth]
    goals: dict[str, Truth]
    after: Truths | None = None


class _Lemmas:
    """Candidates as hypotheses that can be switched off; `active` are those switched on."""

    def __init__(
        self, program: Program, tables: Mapping[Atom, AtomTable], sizes: Mapping[str, int], meter: Meter
    ) -> None:
        self.program, self.tables, self.sizes, self.meter = program, tables, sizes, meter
        self.active: dict[str, Exclusion] = {}
        self.solver, self.start = z3.Solver(), z3.Solver()
        self.switches: dict[str, Any] = {}
        self.steps: list[_Step] = []
        system = System(self.program)
        before = system.state(0)
        facts = system.constrained(before)
        self.before = Truths(self.tables, before)
        for prop in self.program.invariants:
            self._assume(prop.name, conj(system.holds(prop, before)))
        self.start.add([fact for fact in (*system.initial(before), *system.fresh.facts) if fact is not True])
        # An instance represents its renamed copies only if no atom distinguishes them, either.
        atoms = tuple([table.true for table in self.tables.values()])
        full = replace(self.program, invariants=(*self.program.invariants, *atoms))
        for index, position in representatives(full)[0]:
            given = arguments(self.program, self.program.actions[index], "t.")[position]
            found = instance(self.program, index, given, before, "t.")
            if found.undefined is not False:
                self.steps.append(_Step([found.undefined], {UNDEFINED: False}))
            for outcome in found.outcomes:
                after = outcome.after
                goals = {p.name: conj(system.holds(p, after)) for p in self.program.invariants}
                goals |= {p.name: conj(system.holds(p, before, after)) for p in self.program.step_invariants}
                when = [outcome.guard, *map(negation, found.faults)]
                self.steps.append(_Step(when, goals, Truths(self.tables, after, self.before)))
        self.solver.add([fact for fact in (*facts, *system.fresh.facts) if fact is not True])
        self.solver.set("timeout", QUERY_MS)

    def _assume(self, name: str, truth: Truth) -> None:
        self.switches[name] = z3.Bool(name)
        self.solver.add(z3.Implies(self.switches[name], truth))

    def choose(self, clauses: Sequence[Exclusion]) -> None:
        """Activate the clauses that all initial states satisfy, for all offsets."""
        self.active = {}
        for number, clause in enumerate(clauses):
            if self.meter.exceeded(0) is not None:
                self.active = {}  # clauses not shown to be inductive are no lemmas
                return
            name = f"candidate {number}"
            truth = self._truth(clause, self.before)
            if self.start.check(negation(truth)) != z3.unsat:
                continue
            self.active[name] = clause
            if name not in self.switches:
                self._assume(name, truth)
                for step in self.steps:
                    after = step.after
                    if after is not None and any(after.may_differ(one.atom) for one in clause.literals):
                        step.goals[name] = self._truth(clause, after)

    def _truth(self, clause: Exclusion, truths: Truths) -> Truth:
        """The condition that a clause is true."""
        found = []
        for row in rows(clause.domains, self.sizes):
            together = [
                truths.at(literal.atom, [row[key] for key in literal.keys], positive=literal.positive)
                for literal in clause.literals
            ]
            found.append(disj(map(negation, together)))
        return conj(found)

    @property
    def goals(self) -> list[str]:
        """The program's properties, and the goals that its actions are defined."""
        return [*[prop.name for prop in (*self.program.invariants, *self.program.step_invariants)], UNDEFINED]

    def make_inductive(self) -> None:
        """Drop candidates until the remaining ones are inductive together with the invariants."""
        is_done = False
        while not is_done:
            is_done = True
            for step in self.steps:
                while dropped := self._broken_by(step):
                    is_done = False
                    for name in dropped:
                        del self.active[name]

    def _broken_by(self, step: _Step) -> list[str]:
        """The candidates that a step breaks from some state that satisfies all of them."""
        goals = {name: goal for name, goal in step.goals.items() if name in self.active}
        wrong = disj([negation(goal) for goal in goals.values()])
        if wrong is False:
            return []
        if self.meter.exceeded(0) is not None:
            return list(self.active)  # clauses not shown to be inductive are no lemmas
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

    def needed(self) -> tuple[list[str], list[Exclusion]]:
        """The proved goals, and the lemmas that their proofs use, in the order of the candidates."""
        reasons = {goal: self._reasons(goal, self.active) for goal in self.goals}
        proved = [goal for goal, reason in reasons.items() if reason is not None]
        used = set[str]().union(*[reason for reason in reasons.values() if reason is not None])
        todo = list(used)
        while todo:
            more = (self._reasons(todo.pop(), self.active) or set()) - used
            used |= more
            todo += more
        # A solver's reasons need not be minimal.
        for name in [name for name in self.active if name in used]:
            fewer = used - {name}
            is_over = self.meter.exceeded(0) is not None
            if not is_over and all(self._reasons(goal, fewer) is not None for goal in (*fewer, *proved)):
                used = fewer
        return proved, [clause for name, clause in self.active.items() if name in used]

    def _reasons(self, goal: str, lemmas: Iterable[str]) -> set[str] | None:
        """The lemmas that the proof of a goal uses, for all steps; None if there is no proof."""
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
        """Check whether a state satisfies all invariants and lemmas, and has this step."""
        wanted = [*[prop.name for prop in self.program.invariants], *lemmas]
        self.solver.push()
        try:
            self.solver.add(*step.when, wrong)
            yield self.solver.check([self.switches[name] for name in wanted])
        finally:
            self.solver.pop()
