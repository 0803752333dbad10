"""Steps between states in the table, by their numbers, with the fair conditions that they meet.

A worker has a block (`Lane`).  The steps of a state are pairs: the number of the state after + 1, or 0 for a
step that changes nothing or leaves the states, and the conditions.

    follow(lane, state)                       the steps of one state
    survey(lane, first, end)                  the steps of states by number, for the conditions they enable
    leading(lane, list, first, end, target)   the smallest listed state with a step to a state
"""

from __future__ import annotations

from specchk.codegen import ir
from specchk.ir.program import Program
from specchk.native.kernel.component_kernel import load32, words32
from specchk.native.kernel.labels import CUT, FALSE, emit_truth
from specchk.native.kernel.table_kernel import Parts, TableKernel
from specchk.native.machine.asm import I32, I64, PTR, Asm, Val
from specchk.native.machine.frames import INDEX_BITS, Lane, Owing, SharedWord, Thread
from specchk.native.machine.layout import StateLayout, mask

NO_PREDICATE = mask(32)


class LaneFunction(Asm):
    """Builds a function of a lane and some numbers, with the blocks to which the lane points."""

    def __init__(self, function: ir.Function) -> None:
        super().__init__(function)
        self.lane, *rest = function.args
        # Python gives all arguments as pointers.
        self.numbers = [self.b.ptrtoint(arg, I64) if arg.type == PTR else arg for arg in rest]
        # Read once, although few functions need all: the blocks never move, and LLVM drops unused loads.
        self.control, self.thread, self.region, self.pairs = (
            self.pointer(self.lane, word) for word in (Lane.CONTROL, Lane.THREAD, Lane.REGION, Lane.TARGETS)
        )
        self.hashes = self.pointer(self.thread, Thread.HASHES)

    def words32(self, word: Owing) -> ir.Value:
        """An array of 4-byte words of the region."""
        return words32(self, self.region, word)

    def listed(self, address: ir.Value) -> ir.Value:
        """An array of 4-byte words by its address as a number."""
        return self.b.inttoptr(address, I32.as_pointer())

    def add_bits(self, cell: ir.Value, bits: Val) -> None:
        """Add bits to those in a cell."""
        self.b.store(self.bor(self.b.load(cell), bits), cell)


class NumberedSteps(TableKernel):
    """Builds the functions for steps; `resolve` leaves the steps of a state in the lane."""

    def __init__(
        self, module: ir.IRModule, program: Program, layout: StateLayout, parts: Parts, *, compact: bool
    ) -> None:
        super().__init__(module, program, layout, parts, compact=compact)
        self.truth = emit_truth(module, program, layout)
        self.smallest = self._emit_smallest()
        self.find = self._emit_find()
        self.expand = self._emit_expand()
        self.resolve = self._emit_resolve()
        self.is_bad = self._emit_is_bad()

    def emit(self) -> None:
        """Emit the functions that Python calls."""
        self._emit_leading()
        self._emit_follow()
        self._emit_survey()
        for shared in (False, True):
            self.emit_rehash(shared=shared)

    def internal(self, name: str, numbers: int, result: ir.Type = I64) -> LaneFunction:
        """A function of a lane and some numbers."""
        return LaneFunction.of(self.module, name, [PTR, *[I64] * numbers], result)

    def entry(self, name: str, numbers: int) -> LaneFunction:
        """A function for Python, of a lane and some numbers."""
        return LaneFunction.of(self.module, name, [PTR] * (1 + numbers), ir.VoidType(), internal=False)

    def state(self, asm: LaneFunction, number: Val) -> ir.Value:
        """The address of a state."""
        return self.state_at(asm, asm.pointer(asm.control, SharedWord.STATES), number)

    def waiting(self, asm: LaneFunction, at: Val) -> ir.Value:
        """The address of a waiting successor, after this many others."""
        return asm.at(asm.pointer(asm.thread, Thread.PENDING), asm.mul(at, self.words + 1))

    def note(self, asm: LaneFunction, word: Lane, number: Val) -> None:
        """Note a state; the smallest of several is kept."""
        asm.b.call(self.smallest, [asm.lane, asm.val(word), asm.val(number)])

    def _emit_smallest(self) -> ir.Function:
        """Emit `smallest(lane, word, number)`: keep the smallest state, as its number + 1."""
        asm = self.internal("smallest", 2, ir.VoidType())
        word, number = asm.numbers
        noted = asm.load(asm.lane, word)
        new, known = self.state(asm, number), self.state(asm, asm.sub(noted, 1))
        # By its words and not by its number, since numbers depend on how workers shared the search.
        pairs = ((asm.load(new, index), asm.load(known, index)) for index in range(self.words))
        is_first = asm.cmp("==", noted, 0)
        asm.when_less(pairs, lambda: asm.store(asm.add(number, 1), asm.lane, word), is_first)
        asm.end()
        return asm.function

    def _emit_find(self) -> ir.Function:
        """Emit `find(control, state, hash) -> number + 1`: 0 if the state is not in the table."""
        asm = Asm.of(self.module, "find", [PTR, PTR, I64], I64)
        control, state, hashed = asm.function.args
        (table, bits), states = self.table(asm, control), asm.pointer(control, SharedWord.STATES)
        words = self.load_state(asm, state)
        at, slot = asm.cell(I64, asm.band(hashed, bits)), asm.cell(I64)
        probe, out = asm.block("probe"), asm.block("out")
        asm.fall_into(probe)
        asm.b.store(asm.load(table, asm.b.load(at)), slot)
        asm.leave_if(asm.cmp("==", asm.b.load(slot), 0), out)
        self.next_slot(asm, at, bits)
        self.leave_if_same(asm, asm.b.load(slot), hashed, states, words, out)
        asm.goto(probe)
        asm.enter(out)
        asm.b.ret(asm.band(asm.b.load(slot), mask(INDEX_BITS)))
        asm.finish()
        return asm.function

    def _emit_expand(self) -> ir.Function:
        """Emit `expand(lane, number, at) -> count`: the successors of a state, `at` of them already waiting.

        `TAKEN` and `CUT` of the lane are what `resolve` begins with.
        """
        asm = self.internal("expand", 2)
        number, at = asm.numbers
        cuts = asm.at(asm.thread, Thread.CUTS)
        asm.store(0, cuts, CUT)
        count = self.successors(asm, asm.thread, self.state(asm, number), self.waiting(asm, at))
        faulty = asm.cmp("<", count, 0)
        # A state with an undefined step has no steps, and owes everything, within a horizon and beyond
        # (`FairSteps.outgoing`): as if all had been taken, since what is cut off may be overlooked.
        every = asm.load(asm.region, Owing.ALL)
        asm.store(asm.select(faulty, every, 0), asm.lane, Lane.TAKEN)
        asm.store(asm.select(faulty, 0, asm.load(cuts, CUT)), asm.lane, Lane.CUT)
        steps = asm.select(faulty, 0, count)
        table, bits = self.table(asm, asm.control)

        def prepare(index: ir.Value) -> None:
            place = asm.add(at, index)
            asm.store(self.near(asm, table, bits, self.waiting(asm, place)), asm.hashes, place)

        asm.loop(0, asm.sub(steps, 1), prepare)
        asm.b.ret(steps)
        asm.finish()
        return asm.function

    def _emit_resolve(self) -> ir.Function:
        """Emit `resolve(lane, number, at, count, taken, cut)`: a state's steps as (number, conditions)."""
        asm = self.internal("resolve", 5, ir.VoidType())
        number, at, count, taken_, cut_ = asm.numbers
        words = self.load_state(asm, self.state(asm, number))
        taken, cut = asm.cell(I64, taken_), asm.cell(I64, cut_)

        def step(index: ir.Value) -> None:
            place = asm.add(at, index)
            after = self.waiting(asm, place)
            conditions, pair = asm.load(after, self.words), asm.mul(index, 2)
            asm.store(0, asm.pairs, pair)
            asm.store(conditions, asm.pairs, asm.add(pair, 1))

            def moves() -> None:
                inside: Val = True
                # The table has states outside of constraints, too.
                if self.parts.constrained:
                    inside = asm.b.call(self.parts.check, [after, asm.thread])
                wanted = [asm.control, after, asm.load(asm.hashes, place)]
                target = asm.pick(I64, inside, lambda: asm.b.call(self.find, wanted), lambda: 0)
                asm.store(target, asm.pairs, pair)
                known = asm.cmp("!=", target, 0)
                asm.when(asm.both(inside, asm.negate(known)), lambda: asm.bump(asm.lane, Lane.LOST))
                # A step that leaves the states is not taken: it is cut off, and owed.
                asm.when(
                    asm.cmp("!=", target, 0),
                    lambda: asm.add_bits(taken, conditions),
                    lambda: asm.add_bits(cut, conditions),
                )

            asm.when(asm.cmp("!=", self.difference(asm, after, words), 0), moves)

        asm.loop(0, asm.sub(count, 1), step)
        met, owed = asm.b.load(taken), asm.b.load(cut)
        asm.store(met, asm.lane, Lane.TAKEN)
        asm.store(owed, asm.lane, Lane.CUT)
        asm.store(count, asm.lane, Lane.COUNT)
        asm.add_bits(asm.at(asm.lane, Lane.EVER), asm.bor(met, owed))
        asm.add_bits(asm.at(asm.lane, Lane.EVER_CUT), asm.band(owed, asm.xor(met, mask(64))))
        asm.end()
        return asm.function

    def steps(self, asm: LaneFunction, number: ir.Value) -> ir.Value:
        """The steps of one state, as resolved by `resolve`, and their number."""
        count = asm.b.call(self.expand, [asm.lane, number, asm.val(0)])
        before = [asm.load(asm.lane, word) for word in (Lane.TAKEN, Lane.CUT)]
        asm.b.call(self.resolve, [asm.lane, number, asm.val(0), count, *before])
        return count

    def enabled(self, asm: LaneFunction) -> Val:
        """The conditions enabled in the state whose steps were resolved last."""
        only_taken = asm.cmp("!=", asm.load(asm.region, Owing.TAKEN_ONLY), 0)
        cut = asm.select(only_taken, 0, asm.load(asm.lane, Lane.CUT))
        return asm.bor(asm.load(asm.lane, Lane.TAKEN), cut)

    def answer(self, asm: LaneFunction, which: ir.Value, number: Val, if_none: int) -> Val:
        """The truth of a predicate in a state, as returned by `truth`; `if_none` if there is no predicate."""

        def evaluated() -> Val:
            return asm.b.call(self.truth, [self.state(asm, number), asm.thread, which])

        return asm.pick(I64, asm.cmp("==", which, NO_PREDICATE), lambda: if_none, evaluated)

    def _emit_is_bad(self) -> ir.Function:
        """Emit `is_bad(lane, number)`: whether a loop or rest in the state is a counterexample, as 1 or 0."""
        asm = self.internal("is_bad", 1)

        def lacks_goal() -> Val:
            goal = self.answer(asm, asm.load(asm.region, Owing.GOAL), asm.numbers[0], FALSE)
            return asm.resize(asm.cmp("==", goal, FALSE), I64)

        # If a goal ends the obligation, no state of the region has it.
        ends = asm.cmp("==", asm.load(asm.region, Owing.ENDLESS), 0)
        asm.b.ret(asm.val(asm.pick(I64, ends, lambda: 1, lacks_goal)))
        asm.finish()
        return asm.function

    def _emit_leading(self) -> None:
        asm = self.entry("leading", 4)
        list_, first, end, target = asm.numbers
        listed = asm.listed(list_)

        def visit(index: ir.Value) -> None:
            number = load32(asm, listed, index)

            def step(index: ir.Value) -> None:
                same = asm.cmp("==", asm.load(asm.pairs, asm.mul(index, 2)), asm.add(target, 1))
                asm.when(same, lambda: self.note(asm, Lane.BEST, number))

            asm.loop(0, asm.sub(self.steps(asm, number), 1), step)

        asm.loop(first, asm.sub(end, 1), visit)
        asm.end()

    def _emit_follow(self) -> None:
        asm = self.entry("follow", 1)
        self.steps(asm, asm.numbers[0])
        asm.end()

    def _emit_survey(self) -> None:
        asm = self.entry("survey", 2)
        first, end = asm.numbers

        def visit(number: ir.Value) -> None:
            self.steps(asm, number)

        asm.loop(first, asm.sub(end, 1), visit)
        asm.end()
