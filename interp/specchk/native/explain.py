"""From packed states to traces and explanations.

A path is found backwards: in each level the smallest state with the next one as a successor.  The reference
stepper then takes it forwards (`search.replay`), and the reference evaluator finds why the property fails,
with the span and the values; a path or a failure that they do not confirm is a bug of this engine and raises
`ReplayFailed`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from specchk.ir.program import Program
from specchk.meaning.deadlock import End, Ends
from specchk.meaning.explain import Blame
from specchk.meaning.properties import Functions, NoAnswer, answer
from specchk.meaning.undefined import Faulty
from specchk.meaning.values import State
from specchk.native.machine.frames import DEADLOCK, RecordKind, old_records, records_of
from specchk.native.machine.layout import StateLayout
from specchk.native.store import NotedState
from specchk.search.findings import Findings
from specchk.search.replay import ReplayFailed, rebuild, step_to
from specchk.search.symmetry import Symmetry
from specchk.search.verdict import Trace, Violation

Levels = Sequence[Any]  # each as the engine names a level


class Explainer:
    """Explains the findings of a search.

    `predecessor(target, level)`: the smallest state of a level that has the target as a successor, or None.
    """

    def __init__(
        self, program: Program, layout: StateLayout,
        predecessor: Callable[[Sequence[int], Any], tuple[int, ...] | None], symmetry: Symmetry | None,
        functions: Functions | None = None,
    ) -> None:  # fmt: skip
        self.program = program
        self.layout = layout
        self.predecessor = predecessor
        self.symmetry = symmetry
        functions = functions or Functions.of(program)
        self.stepper, self.properties = functions.stepper, functions.properties
        self.ends = Ends(program, self.stepper, self.properties)
        # Once: a search for hundreds of witnesses needs them in each level again.
        self.records = records_of(program)

    def confirm(self, sample: Iterable[Sequence[int]], is_kept: Callable[[Sequence[State]], bool]) -> None:
        """Check some expanded states of a search without violations against the reference semantics.

        `is_kept` returns whether the search has kept some states.  So compiled code that is wrong about many
        states is found before its answer is used; `ReplayFailed` if it is wrong about one of these.
        """
        properties = self.properties
        for words in sample:
            state = self.layout.unpack(tuple(words))
            try:
                successors = self.stepper.successors(state)
            except Faulty as fault:
                name = self.program.actions[fault.action].name
                raise ReplayFailed(f"`{name}` is undefined where the search found nothing wrong") from None
            wrong = [*properties.failed(properties.environment(state), properties.invariants)]
            if properties.steps:
                for _, _, after in successors:
                    wrong += properties.failed(properties.environment(state, after), properties.steps)
            if wrong:
                raise ReplayFailed(f"`{wrong[0][0].name}` fails where the search found nothing wrong")
            if not is_kept([after for _, _, after in successors]):
                raise ReplayFailed("a step leads to a state that the search did not keep")

    def smallest_deadlock(self, findings: Findings, resting: Iterable[tuple[int, ...]]) -> NotedState | None:
        """The smallest deadlock among packed states without steps; undecided ones are added to `findings`.

        Where the spec lists a `nat upto`, compiled code cannot distinguish a deadlock from the end of a
        horizon (`meaning.deadlock`).  It notes one state of a level without steps; then all states of that
        level are checked.
        """
        best: tuple[int, ...] | None = None
        for state in resting:
            # Trying open numbers takes long, and only the smallest is reported: a larger one need not be
            # tried.
            if best is None or state < best:
                end = self.ends.without_steps(self.layout.unpack(state))
                findings.note_end(end)
                best = state if end is End.DEADLOCK else best
        return None if best is None else NotedState(DEADLOCK, best, best)

    def trace(self, state: Sequence[int], levels: Levels) -> Trace:
        """A shortest trace to a state whose predecessors are in the last of the levels."""
        # Backwards, by expanding each level again: only a search with a finding pays for a trace.
        path = [tuple(state)]
        for level in reversed(levels):
            before = self.predecessor(path[-1], level)
            if before is None:
                raise ReplayFailed("a state of the trace has no predecessor")
            path.append(before)
        return rebuild(self.program, self.stepper, [self._known(s) for s in reversed(path)], self.symmetry)

    def note(self, findings: Findings, noted: NotedState, levels: Levels) -> None:
        """Add a finding, as a witness or violation with its trace."""
        record = self.records[noted.record]
        if record.kind == "reached":
            findings.reached[record.name] = self._witness(record.name, noted.state, levels)
        else:
            findings.found[record.kind, record.name] = self._violation(record, noted, levels)

    def _witness(self, name: str, state: Sequence[int], levels: Levels) -> Trace:
        """A shortest trace to a state that satisfies the witness of this name."""
        trace = self.trace(state, levels)
        env = self.properties.environment(trace.last)
        if not any(answer(prop, test, env) for prop, test in self.properties.witnesses if prop.name == name):
            raise ReplayFailed(f"`{name}` is not true where the search found it to be")
        return trace

    def _known(self, words: tuple[int, ...]) -> State:
        """The reference engine's representative of a packed state."""
        state = self.layout.unpack(words)
        # "Least" is by packed words in the kernel and by values here, so the same class has two
        # representatives.
        return state if self.symmetry is None else self.symmetry.canonical(state)

    def _violation(self, record: RecordKind, noted: NotedState, levels: Levels) -> Violation:
        of_level = noted.record < old_records(self.program)  # of a state that was expanded
        # A step ends outside the levels, so its trace is that of its state and one more step.
        is_step = any(prop.name == record.name for prop in self.program.step_invariants)
        if record.kind in ("step invariant", "refinement") or (record.kind == "undefined" and is_step):
            return self._step(record, noted, levels)
        # States that were expanded are in the last level, new ones come after it.
        trace = self.trace(noted.state, levels[:-1] if of_level else levels)
        if record.kind == "deadlock":
            if not self.ends.is_deadlock(trace.last):
                raise ReplayFailed("the state that the search found to be a deadlock is not one")
            return Violation("deadlock", "deadlock", trace)
        if record.kind == "undefined" and (unclear := self._no_answer(record, trace.states[-1])) is not None:
            return Violation("undefined", record.name, trace, unclear)
        if of_level:
            return Violation("undefined", record.name, trace, self._fault(record, trace.states[-1]))
        return Violation(record.kind, record.name, trace, self._blame(record, trace.states[-1]))

    def _fault(self, record: RecordKind, state: State) -> Blame:
        try:
            self.stepper.successors(state)
        except Faulty as fault:
            if self.program.actions[fault.action].name == record.name:
                return Blame.of_fault(self.program, fault)
        raise ReplayFailed(f"`{record.name}` is not undefined where the search found it so")

    def _blame(self, record: RecordKind, state: State) -> Blame:
        env = self.properties.environment(state)
        for prop, kind, blame in self.properties.failed(env, self.properties.invariants):
            if (kind, prop.name) == (record.kind, record.name):
                return blame
        raise ReplayFailed(f"`{record.name}` does not fail where the search found it to")

    def _no_answer(self, record: RecordKind, state: State) -> Blame | None:
        """The reason why a constraint, witness or `deadlock ok` is undefined; None for other properties."""
        env = self.properties.environment(state)
        try:
            for prop, test in self.properties.witnesses:
                if prop.name == record.name:
                    answer(prop, test, env)
            if any(prop.name == record.name for prop in self.program.constraints):
                self.properties.inside(env)
            if record.name == "deadlock":
                self.properties.may_deadlock(env)
        except NoAnswer as unclear:
            return unclear.blame
        return None

    def _step(self, record: RecordKind, noted: NotedState, levels: Levels) -> Violation:
        base = self.trace(noted.state, levels[:-1])
        last, after = base.states[-1], self.layout.unpack(noted.after)
        # With symmetry the packed successor is one of several renamings, so several real steps may lead to
        # its class.
        for step in step_to(self.program, self.stepper, last, after, self.symmetry):
            env = self.properties.environment(last, step.state)
            for prop, kind, blame in self.properties.failed(env, self.properties.steps):
                if (kind, prop.name) == (record.kind, record.name):
                    return Violation(kind, record.name, Trace(base.initial, (*base.steps, step)), blame)
        raise ReplayFailed(f"`{record.name}` does not fail in the step where the search found it to")
