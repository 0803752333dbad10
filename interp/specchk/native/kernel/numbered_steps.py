"""Steps between states that are in the table, by their numbers, with the fair conditions that they meet.

A worker has a block (`Lane`).  The steps of a state are pairs: the number of the state after + 1, 0 of a step
that changes nothing or leaves the states, and the conditions.

    follow(lane, state)                       the steps of one state
    survey(lane, first, end)                  the steps of states by number, for the conditions they enable
    leading(lane, list, first, end, target)   the smallest listed state with a step to a state
"""

from __future__ import annotations

from llvmlite import ir

from specchk.ir.program import Program
from specchk.native.kernel.component_kernel import load32
from specchk.native.kernel.labels import CUT, FALSE, emit_truth
from specchk.native.kernel.table_kernel import Parts, TableKernel
from specchk.native.machine.asm import I32, I64, PTR, Asm, Val
from specchk.native.machine.frames import INDEX_BITS, Lane, Owing, SharedWord, Thread
from specchk.native.machine.layout import StateLayout, mask

NO_PREDICATE = mask(32)


class NumberedSteps(TableKernel):
    """Builds the functions of steps; `resolve` leaves those of a state in the lane."""

    def __init__(
        self, module: ir.Module, words: int, parts: Parts, *, compact: bool, program: Program,
        layout: StateLayout,
    ) -> None:  # fmt: skip
        super().__init__(module, words, parts, compact=compact)
        self.truth = emit_truth(module, program, layout)
        self.note = self._emit_note()
        self.find = self._emit_find()
        self.expand = self._emit_expand()
        self.resolve = self._emit_resolve()
        self.is_bad = self._emit_is_bad()

    def emit(self) -> None:
        """The functions that Python calls."""
        self._emit_leading()
        self._emit_follow()
        self._emit_survey()
        self.emit_rehash()

    def internal(self, name: str, numbers: int, result: ir.Type = I64) -> tuple[Asm, list[ir.Value]]:
        """A function of a lane and some numbers."""
        asm = Asm.of(self.module, name, [PTR, *[I64] * numbers], result)
        return asm, list(asm.function.args)

    def entry(self, name: str, numbers: int) -> tuple[Asm, list[ir.Value]]:
        """A function that Python calls, of a lane and some numbers."""
        asm = self.function(name, 1 + numbers, ir.VoidType())
        lane, *rest = asm.function.args
        return asm, [lane, *(asm.b.ptrtoint(value, I64) for value in rest)]

    def state(self, asm: Asm, lane: ir.Value, number: Val) -> ir.Value:
        """The address of a state."""
        control = self.pointer(asm, lane, Lane.CONTROL)
        return self.state_at(asm, self.pointer(asm, control, SharedWord.STATES), number)

    def _emit_note(self) -> ir.Function:
        """`note(lane, word, number)`: keep the smallest state, by its number + 1."""
        asm, (lane, word, number) = self.internal("note_smallest", 2, ir.VoidType())
        held = asm.load(lane, word)
        keep, done = asm.block("keep"), asm.block("done")
        asm.leave_if(asm.cmp("==", held, 0), keep)
        new, old = self.state(asm, lane, number), self.state(asm, lane, asm.sub(held, 1))
        for index in range(self.words):
            mine, other = asm.load(new, index), asm.load(old, index)
            asm.leave_if(asm.below(mine, other), keep)
            asm.leave_if(asm.below(other, mine), done)
        asm.goto(done)
        asm.enter(keep)
        asm.store(asm.add(number, 1), lane, word)
        asm.goto(done)
        asm.enter(done)
        asm.end()
        return asm.function

    def _emit_find(self) -> ir.Function:
        """`find(control, state, hash) -> number + 1`, 0 where the table does not have the state."""
        asm = Asm.of(self.module, "find", [PTR, PTR, I64], I64)
        control, state, hashed = asm.function.args
        table, bits = self.pointer(asm, control, SharedWord.TABLE), asm.load(control, int(SharedWord.MASK))
        states, words = self.pointer(asm, control, SharedWord.STATES), self.load_state(asm, state)
        at = asm.cell(I64, asm.band(hashed, bits))
        probe, same, out = asm.block("probe"), asm.block("same"), asm.block("out")
        slot = asm.cell(I64)
        asm.goto(probe)
        asm.enter(probe)
        asm.b.store(asm.load(table, asm.b.load(at)), slot)
        asm.leave_if(asm.cmp("==", asm.b.load(slot), 0), out)
        asm.b.store(asm.band(asm.add(asm.b.load(at), 1), bits), at)
        self._compare(asm, asm.b.load(slot), hashed, states, words, same)
        asm.goto(probe)
        asm.enter(same)
        asm.b.store(asm.band(asm.b.load(slot), mask(INDEX_BITS)), slot)
        asm.goto(out)
        asm.enter(out)
        asm.b.ret(asm.b.load(slot))
        asm.finish()
        return asm.function

    def _emit_expand(self) -> ir.Function:
        """`expand(lane, number, at) -> count`: the successors of a state, `at` of them waiting before.

        `TAKEN` and `CUT` of the lane are what `resolve` begins with.
        """
        asm, (lane, number, at) = self.internal("expand", 2)
        control, thread = self.pointer(asm, lane, Lane.CONTROL), self.pointer(asm, lane, Lane.THREAD)
        cuts = asm.b.gep(thread, [asm.val(int(Thread.CUTS))])
        counts = asm.b.gep(thread, [asm.val(int(Thread.COUNTS))])
        out, hashes = self.waiting(asm, thread, at), self.pointer(asm, thread, Thread.HASHES)
        asm.store(0, cuts, CUT)
        count = asm.b.call(self.parts.successors, [self.state(asm, lane, number), out, counts, cuts])
        faulty = asm.cmp("<", count, 0)
        # A state with an undefined step has none, and owes everything, within a horizon and beyond
        # (`FairSteps.outgoing`): as if all had been taken, since what is cut off may be overlooked.
        every = asm.load(self.pointer(asm, lane, Lane.REGION), int(Owing.ALL))
        asm.store(asm.select(faulty, every, 0), lane, int(Lane.TAKEN))
        asm.store(asm.select(faulty, 0, asm.load(cuts, CUT)), lane, int(Lane.CUT))
        found = asm.select(faulty, 0, count)
        table, bits = self.pointer(asm, control, SharedWord.TABLE), asm.load(control, int(SharedWord.MASK))

        def prepare(index: ir.Value) -> None:
            place = asm.add(at, index)
            hashed = self.hash(asm, self.load_state(asm, self.waiting(asm, thread, place)))
            asm.store(hashed, hashes, place)
            self.prefetch(asm, asm.b.gep(table, [asm.band(hashed, bits)]))

        asm.loop(0, asm.sub(found, 1), prepare)
        asm.b.ret(found)
        asm.finish()
        return asm.function

    def waiting(self, asm: Asm, thread: ir.Value, at: Val) -> ir.Value:
        """The address of a successor that waits, behind so many others."""
        waiting = self.pointer(asm, thread, Thread.PENDING)
        return asm.b.gep(waiting, [asm.val(asm.mul(at, self.words + 1))])

    def _emit_resolve(self) -> ir.Function:
        """`resolve(lane, number, at, count, taken, cut)`: a state's steps, as pairs (number, conditions)."""
        asm, (lane, number, at, count, taken_, cut_) = self.internal("resolve", 5, ir.VoidType())
        control, thread = self.pointer(asm, lane, Lane.CONTROL), self.pointer(asm, lane, Lane.THREAD)
        words = self.load_state(asm, self.state(asm, lane, number))
        pairs, hashes = self.pointer(asm, lane, Lane.TARGETS), self.pointer(asm, thread, Thread.HASHES)
        taken, cut = asm.cell(I64, taken_), asm.cell(I64, cut_)

        def step(index: ir.Value) -> None:
            place = asm.add(at, index)
            after = self.waiting(asm, thread, place)
            conditions, pair = asm.load(after, self.words), asm.mul(index, 2)
            asm.store(0, pairs, pair)
            asm.store(conditions, pairs, asm.add(pair, 1))
            difference: Val = 0
            for index_, word in enumerate(words):
                difference = asm.bor(difference, asm.xor(asm.load(after, index_), word))

            def moves() -> None:
                inside: Val = True
                # The table has states outside of constraints, too.
                if self.parts.constrained:
                    inside = asm.b.call(self.parts.check, [after, thread])
                found = asm.pick(
                    I64, inside, lambda: asm.b.call(self.find, [control, after, asm.load(hashes, place)]),
                    lambda: 0,
                )  # fmt: skip
                asm.store(found, pairs, pair)
                known = asm.cmp("!=", found, 0)
                asm.when(asm.both(inside, asm.negate(known)), lambda: asm.bump(lane, int(Lane.LOST)))
                asm.when(
                    known, lambda: self.add(asm, taken, conditions), lambda: self.add(asm, cut, conditions)
                )

            asm.when(asm.cmp("!=", difference, 0), moves)

        asm.loop(0, asm.sub(count, 1), step)
        met, owed = asm.b.load(taken), asm.b.load(cut)
        asm.store(met, lane, int(Lane.TAKEN))
        asm.store(owed, lane, int(Lane.CUT))
        asm.store(count, lane, int(Lane.COUNT))
        asm.store(asm.bor(asm.load(lane, int(Lane.EVER)), asm.bor(met, owed)), lane, int(Lane.EVER))
        only_cut = asm.band(owed, asm.xor(met, mask(64)))
        asm.store(asm.bor(asm.load(lane, int(Lane.EVER_CUT)), only_cut), lane, int(Lane.EVER_CUT))
        asm.end()
        return asm.function

    def add(self, asm: Asm, cell: ir.Value, conditions: Val) -> None:
        """Add conditions to those in a cell."""
        asm.b.store(asm.bor(asm.b.load(cell), conditions), cell)

    def steps(self, asm: Asm, lane: ir.Value, number: ir.Value) -> ir.Value:
        """The steps of one state, as `resolve` gives them; how many."""
        count = asm.b.call(self.expand, [lane, number, asm.val(0)])
        before = [asm.load(lane, int(word)) for word in (Lane.TAKEN, Lane.CUT)]
        asm.b.call(self.resolve, [lane, number, asm.val(0), count, *before])
        return count

    def enabled(self, asm: Asm, lane: ir.Value) -> Val:
        """The conditions enabled in the state whose steps were resolved last."""
        only = asm.load(self.pointer(asm, lane, Lane.REGION), int(Owing.TAKEN_ONLY))
        cut = asm.select(asm.cmp("!=", only, 0), 0, asm.load(lane, int(Lane.CUT)))
        return asm.bor(asm.load(lane, int(Lane.TAKEN)), cut)

    def answer(self, asm: Asm, lane: ir.Value, which: ir.Value, number: Val) -> ir.Value:
        """Whether a predicate is true in a state, as `truth` gives it."""
        thread = self.pointer(asm, lane, Lane.THREAD)
        return asm.b.call(self.truth, [self.state(asm, lane, number), thread, which])

    def _emit_is_bad(self) -> ir.Function:
        """`is_bad(lane, number)`: whether a state makes a loop or a rest a counterexample, as 1 or 0."""
        asm, (lane, number) = self.internal("is_bad", 1)
        region = self.pointer(asm, lane, Lane.REGION)
        goal = asm.load(region, int(Owing.GOAL))
        always = asm.either(
            asm.cmp("==", asm.load(region, int(Owing.ENDLESS)), 0), asm.cmp("==", goal, NO_PREDICATE)
        )
        found = asm.pick(
            I64, always, lambda: 1,
            lambda: asm.b.zext(asm.cmp("==", self.answer(asm, lane, goal, number), FALSE), I64),
        )  # fmt: skip
        asm.b.ret(asm.val(found))
        asm.finish()
        return asm.function

    def _emit_leading(self) -> None:
        asm, (lane, list_, first, end, target) = self.entry("leading", 4)
        listed, pairs = asm.b.inttoptr(list_, I32.as_pointer()), self.pointer(asm, lane, Lane.TARGETS)

        def visit(index: ir.Value) -> None:
            number = load32(asm, listed, index)
            count = self.steps(asm, lane, number)

            def step(step_: ir.Value) -> None:
                same = asm.cmp("==", asm.load(pairs, asm.mul(step_, 2)), asm.add(target, 1))
                asm.when(same, lambda: asm.b.call(self.note, [lane, asm.val(int(Lane.BEST)), number]))

            asm.loop(0, asm.sub(count, 1), step)

        asm.loop(first, asm.sub(end, 1), visit)
        asm.end()

    def _emit_follow(self) -> None:
        asm, (lane, number) = self.entry("follow", 1)
        self.steps(asm, lane, number)
        asm.end()

    def _emit_survey(self) -> None:
        asm, (lane, first, end) = self.entry("survey", 2)
        asm.loop(first, asm.sub(end, 1), lambda number: self.steps(asm, lane, number))
        asm.end()
