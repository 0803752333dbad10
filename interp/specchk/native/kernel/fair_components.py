"""Fair components of a region, as instructions; `search.liveness.components` has the theory.

judge(lane, first, end)     judges components by their states and the steps that stay in them
survive(lane, first, end)   the states of components that are to be decomposed again wait
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from specchk.native.kernel.component_kernel import load32, queue, store32, words32
from specchk.native.kernel.numbered_steps import NumberedSteps
from specchk.native.machine.asm import I8, I64, Asm
from specchk.native.machine.frames import Lane, Owing, SharedWord
from specchk.native.machine.layout import mask

UNFAIR, FAIR, AGAIN = range(3)


class FairComponents:
    """Builds the functions that visit components."""

    def __init__(self, steps: NumberedSteps) -> None:
        self.steps = steps

    def emit(self) -> None:
        """Everything."""
        self.judged = self._emit_judged()
        self._emit_each("judge", self._judge)
        self._emit_each("survive", self._survive)

    def _emit_each(
        self, name: str, one: Callable[[Asm, ir.Value, ir.Value, ir.Value, ir.Value], None]
    ) -> None:
        """A function that visits components; `one` builds that of `(lane, judgement, from, to)`."""
        asm, (lane, first, end) = self.steps.entry(name, 2)
        region = self.steps.pointer(asm, lane, Lane.REGION)
        bounds = words32(asm, region, Owing.BOUNDS)
        judgements = asm.b.inttoptr(asm.load(region, int(Owing.JUDGEMENTS)), I8.as_pointer())

        def visit(index: ir.Value) -> None:
            begin, behind = load32(asm, bounds, index), load32(asm, bounds, asm.add(index, 1))
            one(asm, lane, asm.b.gep(judgements, [index]), begin, behind)

        asm.loop(first, asm.sub(end, 1), visit)
        asm.end()

    def _emit_judged(self) -> ir.Function:
        """`judged(lane, from, to)`: of the component of these members; what it misses is in the lane."""
        asm, (lane, begin, behind) = self.steps.internal("judged", 2)
        region = self.steps.pointer(asm, lane, Lane.REGION)
        members, component = words32(asm, region, Owing.MEMBERS), words32(asm, region, Owing.INDEX)
        pairs = self.steps.pointer(asm, lane, Lane.TARGETS)
        always, ever, taken, bad = (asm.cell(I64, start) for start in (mask(64), 0, 0, 0))
        own = load32(asm, component, load32(asm, members, begin))

        def visit(at: ir.Value) -> None:
            number = load32(asm, members, at)
            count = self.steps.steps(asm, lane, number)
            enabled = self.steps.enabled(asm, lane)
            asm.b.store(asm.band(asm.b.load(always), enabled), always)
            self.steps.add(asm, ever, enabled)
            self.steps.add(asm, bad, asm.b.call(self.steps.is_bad, [lane, number]))

            def step(index: ir.Value) -> None:
                found, conditions = (asm.load(pairs, asm.add(asm.mul(index, 2), word)) for word in range(2))

                def inner() -> None:
                    stays = asm.cmp("==", load32(asm, component, asm.sub(found, 1)), own)
                    asm.when(stays, lambda: self.steps.add(asm, taken, conditions))

                asm.when(asm.cmp("!=", found, 0), inner)

            asm.loop(0, asm.sub(count, 1), step)

        self._each_member(asm, lane, begin, behind, visit)
        untaken = asm.xor(asm.b.load(taken), asm.val(mask(64)))
        weak, strong = asm.load(region, int(Owing.WEAK)), asm.load(region, int(Owing.STRONG))
        unmet = asm.band(asm.band(asm.b.load(always), weak), untaken)
        missed = asm.band(asm.band(asm.b.load(ever), strong), untaken)
        fine = asm.both(asm.cmp("==", unmet, 0), asm.cmp("!=", asm.b.load(bad), 0))
        asm.store(missed, lane, int(Lane.MISSED))
        asm.b.ret(asm.select(fine, asm.select(asm.cmp("==", missed, 0), FAIR, AGAIN), UNFAIR))
        asm.finish()
        return asm.function

    def _each_member(
        self, asm: Asm, lane: ir.Value, begin: ir.Value, behind: ir.Value, visit: Callable[[ir.Value], None]
    ) -> None:
        """Visit the members of a component until STOP is set: all states may be in one."""
        control = self.steps.pointer(asm, lane, Lane.CONTROL)
        stop = asm.b.gep(control, [asm.val(int(SharedWord.STOP))])

        def unless_stopped(at: ir.Value) -> None:
            runs = asm.cmp("==", asm.b.load_atomic(stop, "monotonic", 8), 0)
            asm.when(runs, lambda: visit(at))

        asm.loop(begin, asm.sub(behind, 1), unless_stopped)

    def _judge(
        self, asm: Asm, lane: ir.Value, judgement: ir.Value, begin: ir.Value, behind: ir.Value
    ) -> None:
        asm.b.store(asm.b.trunc(asm.b.call(self.judged, [lane, begin, behind]), I8), judgement)

    def _survive(
        self, asm: Asm, lane: ir.Value, judgement: ir.Value, begin: ir.Value, behind: ir.Value
    ) -> None:
        """The states of a component that enable none of the strong conditions it misses, not visited."""
        region = self.steps.pointer(asm, lane, Lane.REGION)
        members, component = words32(asm, region, Owing.MEMBERS), words32(asm, region, Owing.INDEX)

        def stay(number: ir.Value) -> None:
            store32(asm, 0, component, number)
            queue(asm, lane, number)

        def again() -> None:
            # Once more, for what it misses: few components are decomposed again.
            asm.b.call(self.judged, [lane, begin, behind])
            missed = asm.load(lane, int(Lane.MISSED))

            def visit(at: ir.Value) -> None:
                number = load32(asm, members, at)
                self.steps.steps(asm, lane, number)
                idle = asm.cmp("==", asm.band(self.steps.enabled(asm, lane), missed), 0)
                asm.when(idle, lambda: stay(number))

            self._each_member(asm, lane, begin, behind, visit)

        asm.when(asm.cmp("==", asm.b.zext(asm.b.load(judgement), I64), AGAIN), again)
