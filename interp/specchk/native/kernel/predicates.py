"""Properties as instructions: the checks of every new state and of every step.

`check(state, thread)` evaluates constraints, witnesses and invariants of a new state and answers
whether it is inside the constraints; `check_step(state, after, thread)` the step invariants;
`may_end(state, thread)` whether `deadlock ok` covers it.  What fails is noted in the thread's records, of
several states the smallest, so that what is reported does not depend on who came first.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from specchk.ir.program import Program, Property
from specchk.native.machine.asm import I1, I64, PTR, Asm, Val
from specchk.native.machine.frames import FAULTS, RecordKind, Thread, record_words, records_of
from specchk.native.machine.layout import StateLayout
from specchk.native.values.expressions import ExpressionEmitter
from specchk.native.values.totality import ExpressionFacts

RECORD = "note"


def emit_note(module: ir.Module, words: int) -> ir.Function:
    """`note(thread, record, state, after)`: keep the smallest (state, after) of a record."""
    asm = Asm.of(module, RECORD, [PTR, I64, PTR, PTR], ir.VoidType())
    # Few states break anything: kept out of line, noting takes no room in the loop that checks them.
    asm.function.attributes.add("noinline")
    asm.function.attributes.add("cold")
    thread, record, state, after = asm.function.args
    records = asm.b.inttoptr(asm.load(thread, int(Thread.RECORDS)), PTR)
    entry = asm.b.gep(records, [asm.b.mul(record, asm.val(record_words(words)))])
    keep, done = asm.block("keep"), asm.block("done")
    asm.leave_if(asm.cmp("==", asm.load(entry, 0), 0), keep)
    for base, first in ((state, 1), (after, 1 + words)):
        for index in range(words):
            new, old = asm.load(base, index), asm.load(entry, first + index)
            # Word by word from the first, without sign: the order of the tuples as which Python reads them.
            asm.leave_if(asm.below(new, old), keep)
            asm.leave_if(asm.below(old, new), done)
    asm.goto(done)
    asm.enter(keep)
    asm.store(1, entry, 0)
    for base, first in ((state, 1), (after, 1 + words)):
        for index in range(words):
            asm.store(asm.load(base, index), entry, first + index)
    asm.goto(done)
    asm.enter(done)
    asm.end()
    return asm.function


class Predicates(ExpressionEmitter):
    """Emits the functions that check properties."""

    def __init__(
        self, asm: Asm, program: Program, layout: StateLayout, facts: ExpressionFacts, thread: ir.Value
    ) -> None:
        counts = asm.b.gep(thread, [asm.val(int(Thread.COUNTS))])
        super().__init__(asm, layout, facts, counts)
        asm.overflow = asm.b.gep(thread, [asm.val(int(Thread.OVERFLOW))])
        self.program = program
        self.thread = thread
        self.records = records_of(program)
        asm.goto(first := asm.block("properties"))
        asm.enter(self.undefined)
        asm.b.unreachable()
        asm.enter(first)

    def load(self, state: ir.Value) -> list[Val]:
        """The words of a state."""
        return [self.asm.load(state, index) for index in range(self.layout.words)]

    def truth(self, prop: Property, state: ir.Value, if_undefined: Val) -> Val:
        """Whether a property holds; where it is undefined that is noted."""
        answer, done = self.asm.cell(I1, if_undefined), self.asm.block("known")
        self.undefined = self.beyond = self.asm.block("undefined")
        # A predicate stores nothing, so a value above a horizon can only be undefined here.
        self.asm.b.store(self.asm.val(self.value(prop.body), I1), answer)
        self.asm.goto(done)
        self.asm.enter(self.undefined)
        self._note(RecordKind("undefined", prop.name), state, state)
        self.asm.goto(done)
        self.asm.enter(done)
        return self.asm.b.load(answer)

    def ask(self, prop: Property, state: ir.Value, after: ir.Value, *, note_if: bool) -> None:
        """Note the state where the property is `note_if`, and where it is undefined."""
        kind = "reached" if prop.kind == "reachable" else prop.kind
        asm, done = self.asm, self.asm.block("asked")
        self.undefined = self.beyond = asm.block("undefined")
        value = self.value(prop.body)
        asm.when(
            value if note_if else asm.negate(value),
            lambda: self._note(RecordKind(kind, prop.name), state, after),
        )
        asm.goto(done)
        asm.enter(self.undefined)
        self._note(RecordKind("undefined", prop.name), state, after)
        asm.goto(done)
        asm.enter(done)

    def _note(self, record: RecordKind, state: ir.Value, after: ir.Value) -> None:
        note_fault(self.asm, self.thread, self._position(record), state, after)

    def _position(self, record: RecordKind) -> int:
        first = FAULTS + len(self.program.actions)  # before these are the records of deadlocks and actions
        return first + self.records[first:].index(record)


def note_fault(asm: Asm, thread: ir.Value, record: Val, state: ir.Value, after: ir.Value) -> None:
    """Call `note`."""
    asm.b.call(asm.function.module.globals[RECORD], [thread, asm.val(record), state, after])


def emit_check(
    module: ir.Module, program: Program, layout: StateLayout, facts: ExpressionFacts
) -> ir.Function:
    """`check(state, thread) -> i1`: all checks of a new state."""
    asm = Asm.of(module, "check", [PTR, PTR], I1)
    state, thread = asm.function.args
    ask = Predicates(asm, program, layout, facts, thread)
    ask.before = ask.after = ask.load(state)
    inside: Val = True
    # In order and only up to the first false one, as the reference engine does: a later one may be
    # undefined there.
    for constraint in program.constraints:
        before = inside
        inside = asm.pick(I1, before, lambda c=constraint: ask.truth(c, state, False), lambda: False)  # type: ignore[misc]
    # A state outside of the constraints can be a violation, but is not counted as reached.
    asm.when(inside, lambda: ask_each(ask, program.witnesses, state, note_if=True))
    ask_each(ask, program.invariants, state, note_if=False)
    asm.b.ret(asm.val(inside, I1))
    asm.finish()
    return asm.function


def ask_each(ask: Predicates, props: Sequence[Property], state: ir.Value, *, note_if: bool) -> None:
    """Check some properties of a state."""
    for prop in props:
        ask.ask(prop, state, state, note_if=note_if)


def emit_check_step(
    module: ir.Module, program: Program, layout: StateLayout, facts: ExpressionFacts
) -> ir.Function:
    """`check_step(state, after, thread)`: check the step invariants of a step."""
    asm = Asm.of(module, "check_step", [PTR, PTR, PTR], ir.VoidType())
    state, after, thread = asm.function.args
    ask = Predicates(asm, program, layout, facts, thread)
    ask.before, ask.after = ask.load(state), ask.load(after)
    for prop in program.step_invariants:
        ask.ask(prop, state, after, note_if=False)
    asm.end()
    return asm.function


def emit_may_end(
    module: ir.Module, program: Program, layout: StateLayout, facts: ExpressionFacts
) -> ir.Function:
    """`may_end(state, thread) -> i1`: whether a state without steps is fine."""
    asm = Asm.of(module, "may_end", [PTR, PTR], I1)
    state, thread = asm.function.args
    ask = Predicates(asm, program, layout, facts, thread)
    ask.before = ask.after = ask.load(state)
    # Where `deadlock ok` is undefined that is noted; a deadlock beside it would be a second report of one
    # fault.
    fine: Val = False if program.deadlock_ok is None else ask.truth(program.deadlock_ok, state, True)
    asm.b.ret(asm.val(fine, I1))
    asm.finish()
    return asm.function
