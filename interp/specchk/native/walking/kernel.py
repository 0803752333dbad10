"""Random walks as instructions: list a state's successors, choose one, check it, and repeat.

    draw(seed, walk, number) = mix(mix(mix(seed) + walk) + (number + 1) * GOLDEN)

A random number is a function of the seed, the number of its walk and its own number (SplitMix64 of Steele,
Lea and Flood, with a stream for each walk), so a walk is the same, whichever worker takes it and when.  A
choice among n is the upper half of the product of n and a draw (Lemire): the chances of two choices differ
by at most 2^-64.

Properties are checked in the order of `explore.simulate`, whose walks these are, with other random numbers.
"""

from __future__ import annotations

from specchk.codegen import ir
from specchk.ir.program import Action, Program
from specchk.native.kernel.predicates import RECORD, NewPredicates
from specchk.native.kernel.steps import Steps
from specchk.native.kernel.table_kernel import I128, TableKernel
from specchk.native.machine.asm import I64, PTR, Asm, Val
from specchk.native.machine.frames import records_of
from specchk.native.walking.frames import END_BITS, REACHED_WORDS, WalkControl, WalkEnd, WalkThread

GOLDEN, _MIX_A, _MIX_B = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
SECOND = 1 << 63  # numbers of the draws for a step by an action that was drawn


class SharedOutSteps(Steps):
    """Emits `successors`, also noting where the successors of each action end (`WalkThread.ACTIONS`)."""

    is_ordered = True  # a walk draws the number of a step

    def _action(self, index: int, action: Action) -> None:
        super()._action(index, action)
        actions = self.asm.pointer(self.cuts, WalkThread.ACTIONS - WalkThread.CUTS)
        count = self.asm.b.udiv(self.asm.b.load(self.written), self.asm.val(self.stride))
        self.asm.store(count, actions, len(self.program.actions) + 1 + index)


def mix(asm: Asm, value: Val) -> ir.Value:
    """The number with its bits mixed, bijectively."""
    mixed = asm.val(value)
    for shift, factor in ((30, _MIX_A), (27, _MIX_B)):
        mixed = asm.b.mul(asm.b.xor(mixed, asm.b.lshr(mixed, asm.val(shift))), asm.val(factor))
    return asm.b.xor(mixed, asm.b.lshr(mixed, asm.val(31)))


def emit_note_of_walk(module: ir.IRModule, program: Program) -> None:
    """Emit `note(thread, record, state, after)`: the walk failed, or reached the first witness."""
    asm = Asm.of(module, RECORD, [PTR, I64, PTR, PTR], ir.VoidType())
    asm.function.attributes.append("noinline")
    asm.function.attributes.append("cold")
    thread, record, _, _ = asm.function.args
    is_witness: Val = False
    for at, kind in enumerate(records_of(program)):
        if kind.kind == "reached":
            is_witness = asm.either(is_witness, asm.cmp("==", record, at))

    def reached() -> None:
        entry = asm.at(asm.pointer(thread, WalkThread.REACHED), asm.mul(record, REACHED_WORDS))

        def keep() -> None:
            # A worker takes walks in the order of their numbers, so its first one is its smallest.
            asm.store(1, entry, 0)
            asm.store(asm.load(thread, WalkThread.WALK), entry, 1)
            asm.store(asm.load(thread, WalkThread.STEP), entry, 2)

        asm.when(asm.cmp("==", asm.load(entry, 0), 0), keep)

    asm.when(is_witness, reached, lambda: asm.store(1, thread, WalkThread.FAILED))
    asm.end()


def emit_check_of_walk(new: NewPredicates, program: Program) -> ir.Function:
    """Emit `check(state, thread) -> i1`: whether the walk may continue; invariants are checked first."""
    predicates = new("check")
    predicates.check_each(program.invariants)
    failed = predicates.asm.load(predicates.thread, WalkThread.FAILED)
    inside = predicates.inside(predicates.asm.cmp("==", failed, 0))
    predicates.asm.when(inside, lambda: predicates.check_each(program.witnesses, note_if=True))
    return predicates.returning(inside)


class WalkKernel(TableKernel):
    """Builds the functions that Python calls, in one module."""

    def emit(self) -> None:
        """Emit all functions."""
        Walk(self, self._emit_see()).emit()
        self._emit_refill()

    def _emit_see(self) -> ir.Function:
        """Emit `see(control, thread, hash)`: enter a state's hash into the table, within the quota."""
        asm = Asm.of(self.module, "see", [PTR, PTR, I64], ir.VoidType())
        control, thread, hashed = asm.function.args
        table, bits = self.table(asm, control)
        at = asm.cell(I64, asm.band(hashed, bits))
        probe, empty, full, done = (asm.block(name) for name in ("probe", "empty", "full", "done"))
        new, quota = asm.load(thread, WalkThread.NEW), asm.load(thread, WalkThread.QUOTA)
        asm.leave_if(asm.negate(asm.below(new, quota)), done)
        asm.fall_into(probe)
        place = asm.at(table, asm.b.load(at))
        known = asm.b.load_atomic(place, "monotonic", 8)
        asm.leave_if(asm.cmp("==", known, hashed), done)
        asm.b.cbranch(asm.cmp("==", known, 0), empty, full)
        asm.enter(empty)
        # A slot that another worker filled meanwhile is read again: it may have this very state.
        _, taken = self.take(asm, place, hashed)
        asm.leave_if(asm.negate(taken), probe)
        asm.bump(thread, WalkThread.NEW)
        # At the last state of its quota a worker has all stop: only between calls can the table grow.
        asm.when(asm.cmp("==", asm.add(new, 1), quota), lambda: self.stop(asm, control))
        asm.goto(done)
        asm.enter(full)
        self.next_slot(asm, at, bits)
        asm.goto(probe)
        asm.enter(done)
        asm.end()
        return asm.function

    def _emit_refill(self) -> None:
        """Emit `refill(control, hashes, count)`: enter the hashes of a smaller table."""
        asm = self.function("refill", 3, ir.VoidType())
        control, hashes, count = asm.function.args
        table, bits = self.table(asm, control)

        def visit(index: ir.Value) -> None:
            hashed = asm.load(hashes, index)
            # In compact mode a slot is the hash alone, and has no number.
            asm.when(asm.cmp("!=", hashed, 0), lambda: self.enter(asm, table, bits, hashed, 0))

        asm.loop(0, asm.sub(asm.b.ptrtoint(count, I64), 1), visit)
        asm.end()


class Walk:
    """Emits `walk(control, thread)`: take walks until none are left in the round, or STOP is set.

    A worker that stopped in the middle of a walk continues with it.
    """

    def __init__(self, kernel: WalkKernel, see: ir.Function) -> None:
        self.kernel = kernel
        self.see = see
        self.asm = asm = kernel.function("walk", 2, ir.VoidType())
        self.control, self.thread = asm.function.args
        self.here = asm.pointer(self.thread, WalkThread.HERE)
        self.begin, self.arrive, self.step, self.out = (
            asm.block(name) for name in ("begin", "arrive", "step", "out")
        )

    def emit(self) -> None:
        """Emit the function."""
        asm = self.asm
        # A walk that is continued enters the loop at its step, and reaches the other two from there.
        asm.leave_if(asm.cmp("!=", self._word(WalkThread.IS_WALKING), 0), self.step)
        asm.fall_into(self.begin)
        self._begin()
        asm.fall_into(self.arrive)
        self._arrive()
        # Here and nowhere else within a walk: the state has been counted and checked, so the next call
        # continues with a step.
        self._leave_if_stopped()
        asm.fall_into(self.step)
        self._step()
        asm.goto(self.arrive)
        asm.enter(self.out)
        asm.end()

    def _word(self, word: WalkThread) -> ir.Value:
        return self.asm.load(self.thread, word)

    def _begin(self) -> None:
        """Take the next walk and go to its initial state; leave for `out` if there is none."""
        asm, control = self.asm, self.control
        self._leave_if_stopped()
        walk = asm.b.atomic_rmw("add", asm.at(control, WalkControl.CURSOR), asm.val(1), "monotonic")
        asm.leave_if(asm.below(asm.load(control, WalkControl.LAST), walk), self.out)
        stream = mix(asm, asm.b.add(mix(asm, asm.load(control, WalkControl.KEY)), walk))
        for word, value in ((WalkThread.WALK, walk), (WalkThread.STREAM, stream), (WalkThread.STEP, 0),
                            (WalkThread.IS_WALKING, 1), (WalkThread.FAILED, 0)):  # fmt: skip
            asm.store(value, self.thread, word)
        start = self._choice(asm.load(control, WalkControl.START_COUNT), 0)
        self._copy(self.kernel.state_at(asm, asm.pointer(control, WalkControl.STARTS), start), self.here)

    def _choice(self, count: Val, number: Val) -> ir.Value:
        """A number below `count`, from the walk's draw with this number."""
        asm = self.asm
        weyl = asm.mul(asm.add(number, 1), GOLDEN)
        drawn = mix(asm, asm.b.add(self._word(WalkThread.STREAM), asm.val(weyl)))
        # The upper half of a product instead of a remainder: no division, and no use of the low bits alone.
        wide = asm.b.mul(asm.b.zext(drawn, I128), asm.b.zext(asm.val(count), I128))
        return asm.b.trunc(asm.b.lshr(wide, ir.ConstantValue(I128, 64)), I64)

    def _copy(self, source: ir.Value, target: ir.Value) -> None:
        self.kernel.copy_state(self.asm, self.kernel.load_state(self.asm, source), target)

    def _arrive(self) -> None:
        """Count and check the walk's current state."""
        asm, kernel = self.asm, self.kernel
        # Fetched now and looked up after the check, which takes about as long as a cache miss.
        hashed = kernel.near(asm, *kernel.table(asm, self.control), self.here)
        path = self._word(WalkThread.PATH)

        def write() -> None:
            self._copy(
                self.here, kernel.state_at(asm, asm.b.inttoptr(path, PTR), self._word(WalkThread.STEP))
            )

        asm.when(asm.cmp("!=", path, 0), write)
        inside = asm.b.call(kernel.parts.check, [self.here, self.thread])
        asm.b.call(self.see, [self.control, self.thread, hashed])
        self._end_if(asm.cmp("!=", self._word(WalkThread.FAILED), 0), WalkEnd.FAILED)
        self._end_if(asm.negate(inside), WalkEnd.OUTSIDE)

    def _end_if(self, condition: Val, end: WalkEnd) -> None:
        """If a condition holds, note the end of the walk, and start the next one."""
        asm = self.asm

        def note() -> None:
            number = asm.sub(self._word(WalkThread.WALK), asm.load(self.control, WalkControl.FIRST))
            entry = asm.at(
                asm.pointer(self.control, WalkControl.ENDS), asm.mul(number, self.kernel.words + 1)
            )
            steps = self._word(WalkThread.STEP)
            asm.store(asm.bor(asm.shl(steps, END_BITS), end), entry, 0)
            self._copy(self.here, asm.at(entry, 1))
            asm.store(asm.max(steps, self._word(WalkThread.LONGEST)), self.thread, WalkThread.LONGEST)
            asm.store(0, self.thread, WalkThread.IS_WALKING)
            asm.goto(self.begin)

        asm.when(condition, note)

    def _step(self) -> None:
        """Choose a successor and move to it, or end the walk."""
        asm, kernel, thread = self.asm, self.kernel, self.thread
        number = self._word(WalkThread.STEP)
        self._end_if(asm.negate(asm.below(number, asm.load(self.control, WalkControl.DEPTH))), WalkEnd.DEPTH)
        out, cuts = asm.pointer(thread, WalkThread.SUCCESSORS), self._word(WalkThread.CUTS)
        count = kernel.successors(asm, thread, self.here, out)
        some = asm.block("some")
        asm.leave_if(asm.cmp("<", 0, count), some)
        self._without_steps(count, cuts)
        asm.enter(some)
        place, action = self._chosen(count, asm.add(number, 1))
        asm.bump(asm.pointer(thread, WalkThread.ACTIONS), action)
        after = kernel.state_at(asm, out, place)
        asm.store(asm.add(number, 1), thread, WalkThread.STEP)
        asm.bump(thread, WalkThread.STEPS)
        # The number of the step first: what the check notes is noted with it.
        if kernel.parts.check_step is not None:
            asm.b.call(kernel.parts.check_step, [self.here, after, thread])
        self._copy(after, self.here)

    def _without_steps(self, count: Val, cuts_before: ir.Value) -> None:
        asm = self.asm
        # `successors` returns a negative number where a step is undefined.
        self._end_if(asm.cmp("<", count, 0), WalkEnd.FAILED)
        self._end_if(asm.cmp("!=", self._word(WalkThread.CUTS), cuts_before), WalkEnd.ALLOWED)
        fine = asm.b.call(self.kernel.parts.may_end, [self.here, self.thread])
        self._end_if(asm.cmp("!=", self._word(WalkThread.FAILED), 0), WalkEnd.FAILED)
        self._end_if(fine, WalkEnd.ALLOWED)
        self._end_if(True, WalkEnd.IDLE)

    def _chosen(self, count: ir.Value, number: Val) -> tuple[Val, Val]:
        """The positions of a successor and of its action."""
        asm, actions = self.asm, len(self.kernel.program.actions)
        # Of each action, where its successors begin; behind the last, where they end.
        begins = asm.at(asm.pointer(self.thread, WalkThread.ACTIONS), actions)
        weights, action, left = asm.pointer(self.control, WalkControl.WEIGHTS), asm.cell(I64), asm.cell(I64)

        def weight(of: Val) -> Val:
            is_enabled = asm.cmp("<", asm.load(begins, of), asm.load(begins, asm.add(of, 1)))
            return asm.select(is_enabled, asm.load(weights, of), 0)

        def of_all() -> Val:
            place = self._choice(count, number)

            def is_behind() -> Val:
                return asm.cmp("<=", asm.load(begins, asm.add(asm.b.load(action), 1)), place)

            asm.while_(is_behind, lambda: asm.advance(action))
            return place

        def of_an_action() -> Val:
            total = asm.cell(I64)
            asm.loop(0, actions - 1, lambda of: asm.advance(total, weight(of)))
            asm.b.store(self._choice(asm.b.load(total), number), left)

            def is_behind() -> Val:
                return asm.negate(asm.below(asm.b.load(left), weight(asm.b.load(action))))

            def skip() -> None:
                asm.b.store(asm.sub(asm.b.load(left), weight(asm.b.load(action))), left)
                asm.advance(action)

            asm.while_(is_behind, skip)
            first = asm.load(begins, asm.b.load(action))
            size = asm.sub(asm.load(begins, asm.add(asm.b.load(action), 1)), first)
            return asm.add(first, self._choice(size, asm.add(number, SECOND)))

        is_even = asm.cmp("==", asm.band(self._word(WalkThread.WALK), 1), 0)
        is_uniform = asm.either(asm.cmp("==", asm.load(self.control, WalkControl.WEIGHTS), 0), is_even)
        return asm.pick(I64, is_uniform, of_all, of_an_action), asm.b.load(action)

    def _leave_if_stopped(self) -> None:
        asm = self.asm
        asm.leave_if(self.kernel.is_stopped(asm, self.control), self.out)
        # If a set had no room, the state is not the one that the spec has, and nothing after it counts.
        asm.leave_if(asm.cmp("!=", self._word(WalkThread.OVERFLOW), 0), self.out)
