"""Properties as instructions: the checks of every new state and of every step.

`check(state, thread)` evaluates constraints, witnesses and invariants of a new state, and returns whether it
is inside the constraints; `check_step(state, after, thread)` evaluates the step invariants;
`may_end(state, thread)` returns whether `deadlock ok` covers the state.  Failures are noted in the thread's
records, the smallest of several states, so that reports do not depend on which worker was first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from specchk.codegen import ir
from specchk.ir.program import Program, Property
from specchk.native.machine.asm import I1, I64, PTR, Asm, Val
from specchk.native.machine.frames import FAULTS, RecordKind, Thread, record_words, records_of
from specchk.native.machine.layout import StateLayout
from specchk.native.values.expressions import ExpressionEmitter
from specchk.native.values.totality import ExpressionFacts

RECORD = "note"


def emit_note(module: ir.IRModule, words: int) -> ir.Function:
    """Emit `note(thread, record, state, after)`: keep the smallest (state, after) of a record."""
    asm = Asm.of(module, RECORD, [PTR, I64, PTR, PTR], ir.VoidType())
    # Few states violate anything: kept out of line, noting takes no room in the loop that checks them.
    asm.function.attributes.append("noinline")
    asm.function.attributes.append("cold")
    thread, record, state, after = asm.function.args
    records = asm.pointer(thread, Thread.RECORDS)
    entry = asm.at(records, asm.mul(record, record_words(words)))
    places = [(base, index) for base in (state, after) for index in range(words)]

    def keep() -> None:
        asm.store(1, entry, 0)
        for at, (base, index) in enumerate(places, 1):
            asm.store(asm.load(base, index), entry, at)

    pairs = ((asm.load(base, index), asm.load(entry, at)) for at, (base, index) in enumerate(places, 1))
    asm.when_less(pairs, keep, asm.cmp("==", asm.load(entry, 0), 0))
    asm.end()
    return asm.function


class Predicates(ExpressionEmitter):
    """Builds a function of a state, or of a step, that checks properties and notes failures."""

    def __init__(
        self, module: ir.IRModule, program: Program, layout: StateLayout, facts: ExpressionFacts, name: str,
        *, states: int = 1, result: ir.Type = I1,
    ) -> None:  # fmt: skip
        asm = Asm.of(module, name, [PTR] * (states + 1), result)
        *checked, self.thread = asm.function.args
        self.state, self.state_after = checked[0], checked[-1]
        super().__init__(asm, layout, facts, asm.at(self.thread, Thread.COUNTS))
        asm.overflow = asm.at(self.thread, Thread.OVERFLOW)
        self.program = program
        self.records = records_of(program)
        asm.goto(first := asm.block("properties"))
        # `ExpressionEmitter` begins with a block of faults; here, each property has its own.
        asm.enter(self.undefined)
        asm.b.unreachable()
        asm.enter(first)
        self.before = self.after = self._load(self.state)
        if states > 1:
            self.after = self._load(self.state_after)

    def _load(self, state: ir.Value) -> list[Val]:
        return [self.asm.load(state, index) for index in range(self.layout.words)]

    def truth(self, prop: Property, if_undefined: Val) -> Val:
        """Whether a property holds; notes an undefined one."""
        answer, done = self.asm.cell(I1, if_undefined), self.asm.block("known")
        self.undefined = self.asm.block("undefined")
        # A predicate stores nothing, so a value above a horizon can only be undefined here.
        self.asm.b.store(self.asm.val(self.value(prop.body), I1), answer)
        self.asm.goto(done)
        self.asm.enter(self.undefined)
        self._note(RecordKind("undefined", prop.name))
        self.asm.fall_into(done)
        return self.asm.b.load(answer)

    def inside(self, inside: Val) -> Val:
        """Whether the state is `inside` and satisfies all constraints."""
        # In order and only up to the first false one, like the reference engine: a later one may be undefined
        # there.
        for prop in self.program.constraints:
            inside = self.asm.pick(I1, inside, lambda p=prop: self.truth(p, False), lambda: False)  # type: ignore[misc]
        return inside

    def check_each(self, props: Sequence[Property], *, note_if: bool = False) -> None:
        """Note the properties whose value is `note_if`, and undefined ones."""
        for prop in props:
            self._check(prop, note_if=note_if)

    def _check(self, prop: Property, *, note_if: bool) -> None:
        kind = "reached" if prop.kind == "reachable" else prop.kind
        asm, done = self.asm, self.asm.block("checked")
        self.undefined = asm.block("undefined")
        value = self.value(prop.body)
        asm.when(value if note_if else asm.negate(value), lambda: self._note(RecordKind(kind, prop.name)))
        asm.goto(done)
        asm.enter(self.undefined)
        self._note(RecordKind("undefined", prop.name))
        asm.fall_into(done)

    def _note(self, record: RecordKind) -> None:
        note_fault(self.asm, self.thread, self._position(record), self.state, self.state_after)

    def _position(self, record: RecordKind) -> int:
        first = FAULTS + len(self.program.actions)  # records before these are those of deadlocks and actions
        return first + self.records[first:].index(record)

    def returning(self, answer: Val) -> ir.Function:
        """The finished function, returning an answer."""
        self.asm.b.ret(self.asm.val(answer, I1))
        self.asm.finish()
        return self.asm.function


# Begins a function of predicates in a fixed module, for a fixed program, with a name; and `states`, `result`.
NewPredicates = Callable[..., Predicates]


def note_fault(asm: Asm, thread: ir.Value, record: Val, state: ir.Value, after: ir.Value) -> None:
    """Call `note`."""
    asm.b.call(asm.function.module.function(RECORD), [thread, asm.val(record), state, after])


def emit_check(new: NewPredicates, program: Program) -> ir.Function:
    """Emit `check(state, thread) -> i1`: all checks of a new state."""
    predicates = new("check")
    inside = predicates.inside(True)
    # A state outside the constraints can be a violation, but does not count as reached.
    predicates.asm.when(inside, lambda: predicates.check_each(program.witnesses, note_if=True))
    predicates.check_each(program.invariants)
    return predicates.returning(inside)


def emit_check_step(new: NewPredicates, program: Program) -> ir.Function:
    """Emit `check_step(state, after, thread)`: check the step invariants of a step."""
    predicates = new("check_step", states=2, result=ir.VoidType())
    predicates.check_each(program.step_invariants)
    predicates.asm.end()
    return predicates.asm.function


def emit_may_end(new: NewPredicates, program: Program) -> ir.Function:
    """Emit `may_end(state, thread) -> i1`: whether a state without steps is allowed."""
    predicates = new("may_end")
    # An undefined `deadlock ok` is noted; a deadlock beside it would be a second report of one fault.
    fine = program.deadlock_ok
    return predicates.returning(False if fine is None else predicates.truth(fine, True))
