"""Fair components of a region, as instructions; see `search.liveness.components` for the theory.

judge(lane, first, end)     checks components by their states and the steps that stay in them
survive(lane, first, end)   the states of components that are to be decomposed again wait
"""

from __future__ import annotations

from collections.abc import Callable

from specchk.codegen import ir
from specchk.native.kernel.component_kernel import load32, queue, store32
from specchk.native.kernel.numbered_steps import LaneFunction, NumberedSteps
from specchk.native.machine.asm import I8, I64
from specchk.native.machine.frames import Lane, Owing, SharedWord
from specchk.native.machine.layout import mask

UNFAIR, FAIR, AGAIN = range(3)


class FairComponents:
    """Builds the functions that check components."""

    def __init__(self, steps: NumberedSteps) -> None:
        self.steps = steps

    def emit(self) -> None:
        """Emit all functions."""
        judged = self._emit_judged()
        for name, visit in (("judge", self._judge), ("survive", self._survive)):
            asm = self.steps.entry(name, 2)
            first, end = asm.numbers
            asm.loop(first, asm.sub(end, 1), lambda index, asm=asm, visit=visit: visit(asm, judged, index))  # type: ignore[misc]
            asm.end()

    def _emit_judged(self) -> ir.Function:
        """Emit `judged(lane, from, to)`: check the component of these members; its lacks go to the lane."""
        asm = self.steps.internal("judged", 2)
        begin, behind = asm.numbers
        members, component = asm.words32(Owing.MEMBERS), asm.words32(Owing.INDEX)
        always, ever, taken, bad = (asm.cell(I64, start) for start in (mask(64), 0, 0, 0))
        own = load32(asm, component, load32(asm, members, begin))

        def visit(at: ir.Value) -> None:
            number = load32(asm, members, at)
            count = self.steps.steps(asm, number)
            enabled = self.steps.enabled(asm)
            asm.b.store(asm.band(asm.b.load(always), enabled), always)
            asm.add_bits(ever, enabled)
            asm.add_bits(bad, asm.b.call(self.steps.is_bad, [asm.lane, number]))

            def step(index: ir.Value) -> None:
                named, conditions = (
                    asm.load(asm.pairs, asm.add(asm.mul(index, 2), word)) for word in range(2)
                )

                def inner() -> None:
                    stays = asm.cmp("==", load32(asm, component, asm.sub(named, 1)), own)
                    asm.when(stays, lambda: asm.add_bits(taken, conditions))

                asm.when(asm.cmp("!=", named, 0), inner)

            asm.loop(0, asm.sub(count, 1), step)

        self._each_member(asm, begin, behind, visit)
        untaken = asm.xor(asm.b.load(taken), asm.val(mask(64)))
        weak, strong = asm.load(asm.region, Owing.WEAK), asm.load(asm.region, Owing.STRONG)
        unmet = asm.band(asm.band(asm.b.load(always), weak), untaken)
        missed = asm.band(asm.band(asm.b.load(ever), strong), untaken)
        fine = asm.both(asm.cmp("==", unmet, 0), asm.cmp("!=", asm.b.load(bad), 0))
        asm.store(missed, asm.lane, Lane.MISSED)
        asm.b.ret(asm.select(fine, asm.select(asm.cmp("==", missed, 0), FAIR, AGAIN), UNFAIR))
        asm.finish()
        return asm.function

    def _each_member(
        self, asm: LaneFunction, begin: ir.Value, behind: ir.Value, visit: Callable[[ir.Value], None]
    ) -> None:
        """Visit the members of a component until STOP is set, since it may contain all states."""
        stop = asm.at(asm.control, SharedWord.STOP)

        def unless_stopped(at: ir.Value) -> None:
            runs = asm.cmp("==", asm.b.load_atomic(stop, "monotonic", 8), 0)
            asm.when(runs, lambda: visit(at))

        asm.loop(begin, asm.sub(behind, 1), unless_stopped)

    def _members(self, asm: LaneFunction, index: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
        """The address of a component's result, and the beginning and end of its members."""
        judgements = asm.b.inttoptr(asm.load(asm.region, Owing.JUDGEMENTS), I8.as_pointer())
        bounds = asm.words32(Owing.BOUNDS)
        return asm.at(judgements, index), load32(asm, bounds, index), load32(asm, bounds, asm.add(index, 1))

    def _judge(self, asm: LaneFunction, judged: ir.Function, index: ir.Value) -> None:
        judgement, *members = self._members(asm, index)
        asm.b.store(asm.b.trunc(asm.b.call(judged, [asm.lane, *members]), I8), judgement)

    def _survive(self, asm: LaneFunction, judged: ir.Function, index: ir.Value) -> None:
        """Postpone, as unvisited, states that enable none of the strong conditions the component misses."""
        judgement, begin, behind = self._members(asm, index)
        members, component = asm.words32(Owing.MEMBERS), asm.words32(Owing.INDEX)

        def stay(number: ir.Value) -> None:
            store32(asm, 0, component, number)
            queue(asm, asm.lane, number)

        def again() -> None:
            # Again, for the conditions that it misses: few components are decomposed again.
            asm.b.call(judged, [asm.lane, begin, behind])
            missed = asm.load(asm.lane, Lane.MISSED)

            def visit(at: ir.Value) -> None:
                number = load32(asm, members, at)
                self.steps.steps(asm, number)
                idle = asm.cmp("==", asm.band(self.steps.enabled(asm), missed), 0)
                asm.when(idle, lambda: stay(number))

            self._each_member(asm, begin, behind, visit)

        asm.when(asm.cmp("==", asm.b.zext(asm.b.load(judgement), I64), AGAIN), again)
