"""Exhaustive search of the reference engine: the meaning of a spec, state by state.

For each state its parent is stored; traces are rebuilt by taking real steps from an initial
state, so each is replayed before it is reported, under symmetry too.

A state outside a `constraint` is checked, but neither counted nor expanded (as in TLC).
"""

from __future__ import annotations

from typing import ClassVar

from specchk.ir.program import Program, Property
from specchk.meaning.deadlock import End, Ends
from specchk.meaning.explain import Blame
from specchk.meaning.properties import Functions, NoAnswer, answer
from specchk.meaning.undefined import Faulty
from specchk.meaning.values import State
from specchk.search.engine import Engine, OnProgress, Options, Search, Totals, explore
from specchk.search.replay import rebuild, step_to
from specchk.search.verdict import Outcome, Trace, Violation


def search(program: Program, options: Options = Options(), on_progress: OnProgress | None = None) -> Outcome:
    """Explore a program and answer all of its properties."""
    return explore(ReferenceEngine(Search(program, options, on_progress)))


class ReferenceEngine(Engine[list[State]]):
    """Keeps states in a dictionary, each with its parent, and those outside a constraint in a set."""

    name: ClassVar[str] = "reference"

    def __init__(self, search: Search) -> None:
        self.search, self.program = search, search.program
        self.findings, self.symmetry = search.findings, search.symmetry
        # The slots that are compared; none if all are.
        slots = range(len(self.program.variables)) if self.program.ignored else ()
        self.kept_slots = [slot for slot in slots if slot not in self.program.ignored]
        functions = Functions.of(self.program)
        self.stepper, self.properties = functions.stepper, functions.properties
        self.ends = Ends(self.program, self.stepper, self.properties)
        self.parents: dict[State, State | None] = {}
        self.outside: set[State] = set()
        self.first: dict[object, State] = {}  # by the variables not ignored
        self.skipped = self.generated = 0
        self.expanded = 0  # so many of the states, the first ones

    def begin(self) -> list[State]:
        """The initial states, one of each symmetry class."""
        frontier: list[State] = []
        for state in self.search.initial_states():
            self.generated += 1
            known = state if self.symmetry is None else self.symmetry.canonical(state)
            if self._is_new(known):
                self._meet(known, None, frontier)
        return frontier

    def size(self, frontier: list[State]) -> int:
        """The number of states in a frontier."""
        return len(frontier)

    def expand(self, frontier: list[State]) -> list[State]:
        """The states of the next level, in the order in which they are found."""
        following: list[State] = []
        try:
            for index, state in enumerate(frontier):
                not_expanded = len(frontier) - index + len(following)
                if self.search.look(len(self.parents), self.generated, not_expanded):
                    break
                self._expand(state, following)
                self.expanded += 1
        except MemoryError:
            self.parents.clear()  # the report needs memory, too
            raise
        return following

    def totals(self) -> Totals:
        """The counts at the end."""
        return Totals(
            # The dictionary is empty where memory ran out; the levels before are still known.
            len(self.parents) or sum(self.search.levels), self.generated, tuple(self.stepper.counts),
            self.stepper.horizon_cuts, outside=bool(self.outside), skipped=self.skipped,
        )  # fmt: skip

    def _expand(self, state: State, next_frontier: list[State]) -> None:
        cuts = self.stepper.horizon_cuts
        try:
            successors = self.stepper.successors(state)
        except Faulty as fault:
            self._faulty(state, fault)
            return
        # A step above a horizon exists in the real system, though it is not taken here: then the state is no
        # deadlock.
        if not successors and self.stepper.horizon_cuts == cuts:
            self._deadlock(state)
        self.generated += len(successors)
        # On successors as they are, before they are made canonical: a renamed state is no step's end, and a
        # step invariant compares the two.
        if self.properties.steps:
            self._check_steps(state, [after for _, _, after in successors])
        symmetry = self.symmetry
        for _, _, after in successors:
            known = after if symmetry is None else symmetry.canonical(after)
            if self._is_new(known):
                self._meet(known, state, next_frontier)

    def _is_new(self, state: State) -> bool:
        """Whether neither the state nor one that differs only in ignored variables was seen before."""
        if not self.kept_slots:
            return state not in self.parents and state not in self.outside
        first = self.first.setdefault(tuple([state[slot] for slot in self.kept_slots]), state)
        self.skipped += first != state
        return first is state

    def _meet(self, state: State, parent: State | None, frontier: list[State]) -> None:
        """Add a state that has not been seen before, as its representative."""
        env = self.properties.environment(state)
        if self._inside(state, parent, env):
            self.parents[state] = parent
            frontier.append(state)
            self._check_witnesses(state, env)
        else:
            self.outside.add(state)
        for prop, kind, blame in self.properties.failed(env, self.properties.invariants, self.findings.found):
            trace = self._trace(parent, state)
            shown = self._blame_at(trace.last, prop, blame)
            self.findings.note(Violation(kind, prop.name, trace, shown))

    def _blame_at(self, state: State, prop: Property, blame: Blame) -> Blame:
        """The blame in a state of the trace (under symmetry, a renamed state), without counting coverage."""
        among = [(p, test) for p, test in self.properties.invariants if p is prop]
        with self.stepper.uncounted():
            again = self.properties.failed(self.properties.environment(state), among)
            return next((blamed for _, _, blamed in again), blame)

    def _inside(self, state: State, parent: State | None, env: list[object]) -> bool:
        try:
            return self.properties.inside(env)
        except NoAnswer as unclear:
            self._unclear(unclear, parent, state)
            return False

    def _unclear(self, unclear: NoAnswer, parent: State | None, state: State) -> None:
        self._violated("undefined", unclear.name, parent, state, unclear.blame)

    def _violated(
        self, kind: str, name: str, parent: State | None, state: State, blame: Blame | None = None
    ) -> None:
        """Keep a violation in a state, with its trace; only the first of each kind and name."""
        if not self.findings.has(kind, name):
            self.findings.note(Violation(kind, name, self._trace(parent, state), blame))

    def _check_witnesses(self, state: State, env: list[object]) -> None:
        """Evaluate all witnesses: an undefined one is a violation even after it was reached."""
        for prop, test in self.properties.witnesses:
            try:
                if answer(prop, test, env) and prop.name not in self.findings.reached:
                    self.findings.reached[prop.name] = self._trace(self.parents[state], state)
            except NoAnswer as unclear:
                self._unclear(unclear, self.parents[state], state)

    def _check_steps(self, state: State, successors: list[State]) -> None:
        for after in successors:
            env = self.properties.environment(state, after)
            for prop, kind, blame in self.properties.failed(env, self.properties.steps, self.findings.found):
                trace, shown = self._step_trace(state, after, prop.name, blame)
                self.findings.note(Violation(kind, prop.name, trace, shown))

    def _step_trace(self, state: State, after: State, name: str, blame: Blame) -> tuple[Trace, Blame]:
        """A trace that ends in the failing step; under symmetry, in a renamed step that also fails."""
        base = rebuild(self.program, self.stepper, self._path(state), self.symmetry)
        last = base.last
        with self.stepper.uncounted():
            # The trace ends in a renaming of the state, so the step is known by its class only; of several
            # steps into the class some may keep the invariant.
            for step in step_to(self.program, self.stepper, last, after, self.symmetry):
                env = self.properties.environment(last, step.state)
                for prop, _, found in self.properties.failed(env, self.properties.steps):
                    if prop.name == name:
                        return Trace(base.initial, (*base.steps, step)), found
        return base, blame

    def _faulty(self, state: State, fault: Faulty) -> None:
        name = self.program.actions[fault.action].name
        if self.findings.has("undefined", name):
            return
        trace = self._trace(self.parents[state], state)
        shown = self._fault_at(trace.last) or fault
        self.findings.note(Violation("undefined", name, trace, Blame.of_fault(self.program, shown)))

    def _fault_at(self, state: State) -> Faulty | None:
        """The fault in a state of the trace (under symmetry, a renamed state), without counting coverage."""
        try:
            with self.stepper.uncounted():
                self.stepper.successors(state)
        except Faulty as fault:
            return fault
        return None

    def _deadlock(self, state: State) -> None:
        if self.findings.has("deadlock", "deadlock"):
            return
        try:
            end = self.ends.without_steps(state)
        except NoAnswer as unclear:
            self._unclear(unclear, self.parents[state], state)
            return
        self.findings.note_end(end)
        if end is End.DEADLOCK:
            self._violated("deadlock", "deadlock", self.parents[state], state)

    def _path(self, state: State) -> list[State]:
        path = [state]
        while (parent := self.parents.get(path[-1])) is not None:
            path.append(parent)
        return path[::-1]

    def _trace(self, parent: State | None, state: State) -> Trace:
        path = [*self._path(parent), state] if parent is not None else [state]
        return rebuild(self.program, self.stepper, path, self.symmetry)
