"""Random walks as instructions: list a state's successors, choose one, check it, and so on.

    draw(seed, walk, number) = mix(mix(mix(seed) + walk) + (number + 1) * GOLDEN)

A random number is a function of the seed, the number of its walk and its own number (SplitMix64 of Steele,
Lea and Flood, with a stream for each walk), so that a walk is the same whoever takes it and whenever.  A
choice among n is the upper half of the product of n and a draw (Lemire): the chances of two choices differ
by at most 2^-64.

Properties are checked in the order of `explore.simulate`, whose walks these are, with other random numbers.
"""

from __future__ import annotations

from llvmlite import ir

from specchk.ir.program import Action, Program
from specchk.native.compiler import emit_successors
from specchk.native.kernel.predicates import (
    RECORD,
    Predicates,
    ask_each,
    emit_check_step,
    emit_may_end,
)  # fmt: skip
from specchk.native.kernel.steps import Steps
from specchk.native.kernel.table_kernel import I128, Parts, TableKernel
from specchk.native.machine.asm import I1, I64, PTR, Asm, Val
from specchk.native.machine.frames import records_of
from specchk.native.machine.layout import StateLayout
from specchk.native.values.totality import ExpressionFacts
from specchk.native.walking.frames import END_BITS, REACHED_WORDS, WalkControl, WalkEnd, WalkThread

GOLDEN, _MIX_A, _MIX_B = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
SECOND = 1 << 63  # numbers of the draws for a step by an action that was drawn


class SharedOutSteps(Steps):
    """Emits `successors` with a note of where those of each action end (`WalkThread.ACTIONS`)."""

    def _action(self, index: int, action: Action) -> None:
        super()._action(index, action)
        actions = self.asm.b.inttoptr(self.asm.load(self.cuts, WalkThread.ACTIONS - WalkThread.CUTS), PTR)
        count = self.asm.b.udiv(self.asm.b.load(self.written), self.asm.val(self.stride))
        self.asm.store(count, actions, len(self.program.actions) + 1 + index)


def mix(asm: Asm, value: Val) -> ir.Value:
    """The number with its bits mixed, one to one."""
    mixed = asm.val(value)
    for shift, factor in ((30, _MIX_A), (27, _MIX_B)):
        mixed = asm.b.mul(asm.b.xor(mixed, asm.b.lshr(mixed, asm.val(shift))), asm.val(factor))
    return asm.b.xor(mixed, asm.b.lshr(mixed, asm.val(31)))


def _emit_note(module: ir.Module, program: Program) -> None:
    """`note(thread, record, state, after)`: the walk failed, or its present state is the first witness."""
    asm = Asm.of(module, RECORD, [PTR, I64, PTR, PTR], ir.VoidType())
    asm.function.attributes.add("noinline")
    asm.function.attributes.add("cold")
    thread, record, _, _ = asm.function.args
    witnesses = [at for at, one in enumerate(records_of(program)) if one.kind == "reached"]
    is_witness: Val = False
    for at in witnesses:
        is_witness = asm.either(is_witness, asm.cmp("==", record, at))

    def reached() -> None:
        at = asm.b.mul(record, asm.val(REACHED_WORDS))
        entry = asm.b.gep(asm.b.inttoptr(asm.load(thread, WalkThread.REACHED), PTR), [at])

        def keep() -> None:
            # A worker takes walks in the order of their numbers, so its first one is its smallest.
            asm.store(1, entry, 0)
            asm.store(asm.load(thread, WalkThread.WALK), entry, 1)
            asm.store(asm.load(thread, WalkThread.STEP), entry, 2)

        asm.when(asm.cmp("==", asm.load(entry, 0), 0), keep)

    asm.when(is_witness, reached, lambda: asm.store(1, thread, WalkThread.FAILED))
    asm.end()


def _emit_check(
    module: ir.Module, program: Program, layout: StateLayout, facts: ExpressionFacts
) -> ir.Function:
    """`check(state, thread) -> i1`: whether the walk may continue; invariants first, as in its meaning."""
    asm = Asm.of(module, "check", [PTR, PTR], I1)
    state, thread = asm.function.args
    ask = Predicates(asm, program, layout, facts, thread)
    ask.before = ask.after = ask.load(state)
    ask_each(ask, program.invariants, state, note_if=False)
    inside: Val = asm.cmp("==", asm.load(thread, WalkThread.FAILED), 0)
    for constraint in program.constraints:
        before = inside
        inside = asm.pick(I1, before, lambda c=constraint: ask.truth(c, state, False), lambda: False)  # type: ignore[misc]
    asm.when(inside, lambda: ask_each(ask, program.witnesses, state, note_if=True))
    asm.b.ret(asm.val(inside, I1))
    asm.finish()
    return asm.function


class WalkKernel(TableKernel):
    """Builds the functions that Python calls, in one module."""

    def __init__(self, module: ir.Module, words: int, parts: Parts, actions: int) -> None:
        super().__init__(module, words, parts, compact=True)
        self.actions = actions

    def emit(self) -> None:
        """Everything."""
        self._emit_walk(self._emit_see())
        self._emit_refill()

    def _emit_see(self) -> ir.Function:
        """`see(control, thread, hash)`: enter a state's hash into the table while the worker has a quota."""
        asm = Asm.of(self.module, "see", [PTR, PTR, I64], ir.VoidType())
        control, thread, hashed = asm.function.args
        table, bits = self.pointer(asm, control, WalkControl.TABLE), asm.load(control, WalkControl.MASK)
        at = asm.cell(I64, asm.band(hashed, bits))
        probe, empty, full, done = (asm.block(name) for name in ("probe", "empty", "full", "done"))
        new, quota = asm.load(thread, WalkThread.NEW), asm.load(thread, WalkThread.QUOTA)
        asm.leave_if(asm.negate(asm.below(new, quota)), done)
        asm.goto(probe)
        asm.enter(probe)
        place = asm.b.gep(table, [asm.b.load(at)])
        known = asm.b.load_atomic(place, "monotonic", 8)
        asm.leave_if(asm.cmp("==", known, hashed), done)
        asm.b.cbranch(asm.b.icmp_unsigned("==", known, asm.val(0)), empty, full)
        asm.enter(empty)
        # A slot that another worker filled meanwhile is read again: it may have this very state.
        _, taken = self.take(asm, place, hashed, shared=True)
        asm.leave_if(asm.negate(taken), probe)
        asm.bump(thread, WalkThread.NEW)
        asm.when(asm.cmp("==", asm.b.add(new, asm.val(1)), quota), lambda: self._stop(asm, control))
        asm.goto(done)
        asm.enter(full)
        asm.b.store(asm.band(asm.add(asm.b.load(at), 1), bits), at)
        asm.goto(probe)
        asm.enter(done)
        asm.end()
        return asm.function

    def _emit_refill(self) -> None:
        """`refill(control, hashes, count)`: enter the hashes of a smaller table."""
        asm = self.function("refill", 3, ir.VoidType())
        control, hashes, count = asm.function.args
        table, bits = self.pointer(asm, control, WalkControl.TABLE), asm.load(control, WalkControl.MASK)
        at = asm.cell(I64)

        def enter(index: ir.Value) -> None:
            hashed = asm.load(hashes, index)

            def find() -> None:
                asm.b.store(asm.band(hashed, bits), at)
                asm.while_(
                    lambda: asm.cmp("!=", asm.load(table, asm.b.load(at)), 0),
                    lambda: asm.b.store(asm.band(asm.add(asm.b.load(at), 1), bits), at),
                )
                asm.store(hashed, table, asm.b.load(at))

            asm.when(asm.cmp("!=", hashed, 0), find)

        asm.loop(0, asm.sub(asm.b.ptrtoint(count, I64), 1), enter)
        asm.end()

    def _emit_walk(self, see: ir.Function) -> None:
        """`walk(control, thread)`: take walks until the round has no more of them, or STOP is set.

        A worker that stopped in the middle of a walk continues with it.
        """
        asm = self.function("walk", 2, ir.VoidType())
        control, thread = asm.function.args
        here = self.pointer(asm, thread, WalkThread.HERE)
        begin, arrive, step, out = (asm.block(name) for name in ("begin", "arrive", "step", "out"))
        asm.leave_if(asm.cmp("!=", asm.load(thread, WalkThread.IS_WALKING), 0), step)
        asm.goto(begin)
        asm.enter(begin)
        self._begin(asm, control, thread, here, out)
        asm.goto(arrive)
        asm.enter(arrive)
        self._arrive(asm, control, thread, here, begin, see)
        self._leave_if_stopped(asm, control, thread, out)
        asm.goto(step)
        asm.enter(step)
        self._step(asm, control, thread, here, begin)
        asm.goto(arrive)
        asm.enter(out)
        asm.end()

    def _begin(
        self, asm: Asm, control: ir.Value, thread: ir.Value, here: ir.Value, out: ir.Block
    ) -> None:  # fmt: skip
        """Take the next walk and go to its initial state; leave for `out` where there is none."""
        self._leave_if_stopped(asm, control, thread, out)
        cursor = asm.b.gep(control, [asm.val(int(WalkControl.CURSOR))])
        walk = asm.b.atomic_rmw("add", cursor, asm.val(1), "monotonic")
        asm.leave_if(asm.below(asm.load(control, WalkControl.LAST), walk), out)
        stream = mix(asm, asm.b.add(mix(asm, asm.load(control, WalkControl.KEY)), walk))
        for word, value in ((WalkThread.WALK, walk), (WalkThread.STREAM, stream), (WalkThread.STEP, 0),
                            (WalkThread.IS_WALKING, 1), (WalkThread.FAILED, 0)):  # fmt: skip
            asm.store(value, thread, word)
        start = self._choice(asm, thread, asm.load(control, WalkControl.START_COUNT), 0)
        self._copy(asm, self.state_at(asm, self.pointer(asm, control, WalkControl.STARTS), start), here)

    def _choice(self, asm: Asm, thread: ir.Value, count: Val, number: Val) -> ir.Value:
        """A number below `count`, by the draw of this number in the walk."""
        weyl = asm.mul(asm.add(number, 1), GOLDEN)
        drawn = mix(asm, asm.b.add(asm.load(thread, WalkThread.STREAM), asm.val(weyl)))
        wide = asm.b.mul(asm.b.zext(drawn, I128), asm.b.zext(asm.val(count), I128))
        return asm.b.trunc(asm.b.lshr(wide, ir.Constant(I128, 64)), I64)

    def _copy(self, asm: Asm, source: ir.Value, target: ir.Value) -> None:
        for index, word in enumerate(self.load_state(asm, source)):
            asm.store(word, target, index)

    def _arrive(
        self, asm: Asm, control: ir.Value, thread: ir.Value, here: ir.Value, begin: ir.Block, see: ir.Function
    ) -> None:
        """Count and check the state in which the walk is."""
        hashed = self.hash(asm, self.load_state(asm, here))
        table, bits = self.pointer(asm, control, WalkControl.TABLE), asm.load(control, WalkControl.MASK)
        self.prefetch(asm, asm.b.gep(table, [asm.band(hashed, bits)]))
        path = asm.load(thread, WalkThread.PATH)

        def write() -> None:
            states = asm.b.inttoptr(path, PTR)
            self._copy(asm, here, self.state_at(asm, states, asm.load(thread, WalkThread.STEP)))

        asm.when(asm.cmp("!=", path, 0), write)
        inside = asm.b.call(self.parts.check, [here, thread])
        asm.b.call(see, [control, thread, hashed])
        failed = asm.cmp("!=", asm.load(thread, WalkThread.FAILED), 0)
        asm.when(failed, lambda: self._end(asm, control, thread, here, WalkEnd.FAILED, begin))
        asm.when(asm.negate(inside), lambda: self._end(asm, control, thread, here, WalkEnd.OUTSIDE, begin))

    def _end(
        self, asm: Asm, control: ir.Value, thread: ir.Value, here: ir.Value, end: WalkEnd, begin: ir.Block
    ) -> None:
        """Note the end of the walk, and go to the next one."""
        number = asm.sub(asm.load(thread, WalkThread.WALK), asm.load(control, WalkControl.FIRST))
        ends = self.pointer(asm, control, WalkControl.ENDS)
        entry = asm.b.gep(ends, [asm.val(asm.mul(number, self.words + 1))])
        steps = asm.load(thread, WalkThread.STEP)
        asm.store(asm.bor(asm.shl(steps, END_BITS), int(end)), entry, 0)
        self._copy(asm, here, asm.b.gep(entry, [asm.val(1)]))
        asm.store(asm.max(steps, asm.load(thread, WalkThread.LONGEST)), thread, WalkThread.LONGEST)
        asm.store(0, thread, WalkThread.IS_WALKING)
        asm.goto(begin)

    def _step(
        self, asm: Asm, control: ir.Value, thread: ir.Value, here: ir.Value, begin: ir.Block
    ) -> None:  # fmt: skip
        """Choose a successor, and be there; or end the walk."""
        number = asm.load(thread, WalkThread.STEP)
        over = asm.negate(asm.below(number, asm.load(control, WalkControl.DEPTH)))
        asm.when(over, lambda: self._end(asm, control, thread, here, WalkEnd.DEPTH, begin))
        out = self.pointer(asm, thread, WalkThread.SUCCESSORS)
        counts, cuts = (
            asm.b.gep(thread, [asm.val(int(word))]) for word in (WalkThread.COUNTS, WalkThread.CUTS)
        )
        before = asm.b.load(cuts)
        count = asm.b.call(self.parts.successors, [here, out, counts, cuts])
        uncut = asm.cmp("==", asm.b.load(cuts), before)
        some = asm.block("some")
        asm.leave_if(asm.cmp("<", 0, count), some)
        self._without_steps(asm, control, thread, here, count, uncut, begin)
        asm.enter(some)
        place, action = self._chosen(asm, control, thread, count, asm.add(number, 1))
        asm.bump(self.pointer(asm, thread, WalkThread.ACTIONS), action)
        after = self.state_at(asm, out, place)
        asm.store(asm.add(number, 1), thread, WalkThread.STEP)
        asm.bump(thread, WalkThread.STEPS)
        if self.parts.check_step is not None:
            asm.b.call(self.parts.check_step, [here, after, thread])
        self._copy(asm, after, here)

    def _without_steps(
        self, asm: Asm, control: ir.Value, thread: ir.Value, here: ir.Value, count: Val, uncut: Val,
        begin: ir.Block,
    ) -> None:  # fmt: skip
        def end(kind: WalkEnd) -> None:
            self._end(asm, control, thread, here, kind, begin)

        # `successors` returns a negative number where a step is undefined.
        asm.when(asm.cmp("<", count, 0), lambda: end(WalkEnd.FAILED))
        asm.when(asm.negate(uncut), lambda: end(WalkEnd.ALLOWED))
        fine = asm.b.call(self.parts.may_end, [here, thread])
        asm.when(asm.cmp("!=", asm.load(thread, WalkThread.FAILED), 0), lambda: end(WalkEnd.FAILED))
        asm.when(fine, lambda: end(WalkEnd.ALLOWED))
        end(WalkEnd.IDLE)

    def _chosen(
        self, asm: Asm, control: ir.Value, thread: ir.Value, count: ir.Value, number: Val
    ) -> tuple[Val, Val]:
        """The positions of a successor and of its action."""
        taken = self.pointer(asm, thread, WalkThread.ACTIONS)
        # Of each action, where its successors begin; behind the last, where they end.
        begins = asm.b.gep(taken, [asm.val(self.actions)])
        weights, action, left = self.pointer(asm, control, WalkControl.WEIGHTS), asm.cell(I64), asm.cell(I64)

        def weight(of: Val) -> Val:
            is_enabled = asm.cmp("<", asm.load(begins, of), asm.load(begins, asm.add(of, 1)))
            return asm.select(is_enabled, asm.load(weights, of), 0)

        def skip(size: Val) -> None:
            asm.b.store(asm.b.sub(asm.b.load(left), asm.val(size)), left)
            asm.b.store(asm.b.add(asm.b.load(action), asm.val(1)), action)

        def of_all() -> Val:
            place = self._choice(asm, thread, count, number)

            def is_behind() -> Val:
                return asm.cmp("<=", asm.load(begins, asm.add(asm.b.load(action), 1)), place)

            asm.while_(is_behind, lambda: skip(0))
            return place

        def of_an_action() -> Val:
            total = asm.cell(I64)

            def add(of: Val) -> None:
                asm.b.store(asm.b.add(asm.b.load(total), asm.val(weight(of))), total)

            asm.loop(0, self.actions - 1, add)
            asm.b.store(self._choice(asm, thread, asm.b.load(total), number), left)

            def is_behind() -> Val:
                return asm.negate(asm.below(asm.b.load(left), weight(asm.b.load(action))))

            asm.while_(is_behind, lambda: skip(weight(asm.b.load(action))))
            first = asm.load(begins, asm.b.load(action))
            size = asm.sub(asm.load(begins, asm.add(asm.b.load(action), 1)), first)
            return asm.add(first, self._choice(asm, thread, size, asm.add(number, SECOND)))

        is_even = asm.cmp("==", asm.band(asm.load(thread, WalkThread.WALK), 1), 0)
        is_uniform = asm.either(asm.cmp("==", asm.load(control, WalkControl.WEIGHTS), 0), is_even)
        return asm.pick(I64, is_uniform, of_all, of_an_action), asm.b.load(action)

    def _stop(self, asm: Asm, control: ir.Value) -> None:
        asm.b.store_atomic(asm.val(1), asm.b.gep(control, [asm.val(int(WalkControl.STOP))]), "monotonic", 8)

    def _leave_if_stopped(self, asm: Asm, control: ir.Value, thread: ir.Value, out: ir.Block) -> None:
        stop = asm.b.load_atomic(asm.b.gep(control, [asm.val(int(WalkControl.STOP))]), "monotonic", 8)
        # Where a set had no room the state is not the one that the spec has, and nothing after it counts.
        asm.leave_if(asm.cmp("!=", asm.b.or_(stop, asm.load(thread, WalkThread.OVERFLOW)), 0), out)


def build_walks(program: Program, layout: StateLayout) -> ir.Module:
    """The module of `walk` and `refill`."""
    module = ir.Module(name=program.spec)
    facts = ExpressionFacts()
    _emit_note(module, program)
    parts = Parts(
        emit_successors(module, program, layout, facts, SharedOutSteps),
        _emit_check(module, program, layout, facts),
        emit_check_step(module, program, layout, facts) if program.step_invariants else None,
        emit_may_end(module, program, layout, facts),
        None,
    )
    WalkKernel(module, layout.words, parts, len(program.actions)).emit()
    return module
