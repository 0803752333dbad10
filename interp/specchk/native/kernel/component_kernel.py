"""Strongly connected components of a region, as instructions that do not depend on the spec.

Pearce's form of Tarjan's algorithm (A space-efficient algorithm for finding strongly connected components,
2016), without recursion.  A state has one word of 4 bytes, its order of visit and then its component; a frame
of the walk has 8 bytes:

    state (31 bits) | whether it is a root so far (bit 31) | the next of its edges (32 bits)

Components of one state share a number, since no step of a state to itself changes it.
"""

from __future__ import annotations

from specchk.codegen import ir
from specchk.native.machine.asm import I32, I64, PTR, Asm, Val
from specchk.native.machine.frames import Lane, Owing, SharedWord
from specchk.native.machine.layout import mask

NO_EDGES = 4  # the place of a state of the region without edges; lower: not in it; others are above
LAST_EDGE, STATE_BITS = 31, 31
ALONE = mask(32)  # the component of all states that are alone in theirs


def words32(asm: Asm, block: ir.Value, word: int) -> ir.Value:
    """An array of 4-byte words whose address is in a word of a block."""
    return asm.b.inttoptr(asm.load(block, word), I32.as_pointer())


def load32(asm: Asm, base: ir.Value, index: Val) -> ir.Value:
    """A 4-byte word, as a number."""
    return asm.b.zext(asm.load(base, index), I64)


def store32(asm: Asm, value: Val, base: ir.Value, index: Val) -> None:
    """Set a 4-byte word."""
    asm.store(asm.val(asm.resize(value, I32), I32), base, index)


def queue(asm: Asm, lane: ir.Value, number: Val) -> None:
    """Append a state to those postponed by a worker."""
    store32(asm, number, words32(asm, lane, Lane.QUEUE), asm.load(lane, Lane.QUEUED))
    asm.bump(lane, Lane.QUEUED)


class ComponentWalk:
    """Emits `components(control, region, list, first, end)`: the components reachable from listed states."""

    def __init__(self, module: ir.IRModule) -> None:
        kinds = [PTR, PTR, I64, I64, I64]
        self.asm = asm = Asm.of(module, "components", kinds, ir.VoidType(), internal=False)
        self.control, self.region, list_, self.first, self.end = asm.function.args
        self.list = asm.b.inttoptr(list_, I32.as_pointer())
        self.places, self.edges, self.index, self.members, self.bounds, self.stack = (
            words32(asm, self.region, word)
            for word in (Owing.PLACES, Owing.EDGES, Owing.INDEX, Owing.MEMBERS, Owing.BOUNDS, Owing.STACK)
        )
        self.frames = asm.pointer(self.region, Owing.FRAMES)
        self.next, self.state, self.at, self.root = (asm.cell(I64) for _ in range(4))
        self.visited, self.depth, self.stacked = (asm.cell(I64) for _ in range(3))
        asm.b.store(self.first, self.next)

    def emit(self) -> None:
        """Emit the function."""
        asm = self.asm
        roots, begin, step, finish, out = (
            asm.block(name) for name in ("roots", "begin", "step", "finish", "out")
        )
        asm.fall_into(roots)
        asm.leave_if(asm.cmp("<=", self.end, asm.b.load(self.next)), out)
        self._leave_if_stopped(out)
        root = load32(asm, self.list, asm.b.load(self.next))
        asm.advance(self.next)
        asm.leave_if(asm.cmp("!=", self._order(root), 0), roots)
        asm.b.store(root, self.state)
        asm.fall_into(begin)
        self._begin()
        asm.fall_into(step)
        asm.leave_if(asm.cmp("==", asm.b.load(self.at), 0), finish)
        self._edge(begin)
        asm.goto(step)
        asm.enter(finish)
        self._finish()
        asm.leave_if(asm.cmp("==", asm.b.load(self.depth), 0), roots)
        self._return()
        # At a return and not at each edge: every state has one, and an atomic load for each edge would be
        # costly.
        self._leave_if_stopped(out)
        asm.goto(step)
        asm.enter(out)
        asm.end()

    def _leave_if_stopped(self, out: ir.Block) -> None:
        stop = self.asm.b.load_atomic(self.asm.at(self.control, SharedWord.STOP), "monotonic", 8)
        self.asm.leave_if(self.asm.cmp("!=", stop, 0), out)

    def _order(self, state: Val) -> ir.Value:
        """The visiting order of a state, or its component; 0 if it was not visited."""
        return load32(self.asm, self.index, state)

    def _begin(self) -> None:
        """Visit the current state for the first time."""
        asm, state = self.asm, self.asm.b.load(self.state)
        asm.advance(self.visited)
        store32(asm, asm.b.load(self.visited), self.index, state)
        place = load32(asm, self.places, state)
        asm.b.store(asm.select(asm.cmp("==", place, NO_EDGES), 0, place), self.at)
        asm.b.store(asm.val(1), self.root)

    def _edge(self, begin: ir.Block) -> None:
        """Take the next edge of the current state; leave for `begin` if it leads to a new one."""
        asm, at, state = self.asm, self.asm.b.load(self.at), self.asm.b.load(self.state)
        edge = load32(asm, self.edges, at)
        target = asm.band(edge, mask(STATE_BITS))
        asm.b.store(asm.select(asm.cmp("==", asm.shr(edge, LAST_EDGE), 1), 0, asm.add(at, 1)), self.at)
        order, known = self._order(target), asm.block("known")

        def descend() -> None:
            frame = asm.bor(state, asm.shl(asm.b.load(self.root), STATE_BITS))
            frame = asm.bor(frame, asm.shl(asm.b.load(self.at), 32))
            asm.store(frame, self.frames, asm.b.load(self.depth))
            asm.advance(self.depth)
            asm.b.store(target, self.state)
            asm.leave(begin)

        asm.when(asm.cmp("==", order, 0), descend, lambda: self._lower(state, order))
        asm.fall_into(known)

    def _lower(self, state: Val, order: ir.Value) -> None:
        """Note that a state from which an earlier visited state is reachable is not a root."""
        asm = self.asm

        def lower() -> None:
            store32(asm, order, self.index, state)
            asm.b.store(asm.val(0), self.root)

        # Finished components have numbers above all orders of visit, so they lower nothing.
        asm.when(asm.cmp("<", order, self._order(state)), lower)

    def _return(self) -> None:
        """Continue with the previous state."""
        asm, order = self.asm, self._order(self.asm.b.load(self.state))
        asm.advance(self.depth, -1)
        frame = asm.load(self.frames, asm.b.load(self.depth))
        state = asm.band(frame, mask(STATE_BITS))
        asm.b.store(state, self.state)
        asm.b.store(asm.band(asm.shr(frame, STATE_BITS), 1), self.root)
        asm.b.store(asm.shr(frame, 32), self.at)
        self._lower(state, order)

    def _finish(self) -> None:
        """Finish a state without further edges: it waits for its root, or is a root."""
        asm, state = self.asm, self.asm.b.load(self.state)

        def wait() -> None:
            store32(asm, state, self.stack, asm.b.load(self.stacked))
            asm.advance(self.stacked)

        asm.when(asm.cmp("==", asm.b.load(self.root), 1), lambda: self._component(state), wait)

    def _component(self, root: ir.Value) -> None:
        """Pop the states above the root from the stack: together with the root they are its component."""
        asm, count = self.asm, self.asm.load(self.region, Owing.COMPONENTS)
        own, number = self._order(root), asm.load(self.region, Owing.NEXT_ID)
        before = asm.load(self.region, Owing.MEMBER_COUNT)
        top, last = asm.block("top"), asm.block("last")
        asm.fall_into(top)
        stacked = asm.b.load(self.stacked)
        asm.leave_if(asm.cmp("==", stacked, 0), last)
        member = load32(asm, self.stack, asm.sub(stacked, 1))
        asm.leave_if(asm.cmp("<", self._order(member), own), last)
        asm.advance(self.stacked, -1)
        self._enter(member, number)
        asm.goto(top)
        asm.enter(last)

        def several() -> None:
            self._enter(root, number)
            asm.bump(self.region, Owing.COMPONENTS)
            store32(asm, asm.load(self.region, Owing.MEMBER_COUNT), self.bounds, asm.add(count, 1))
            asm.bump(self.region, Owing.NEXT_ID, -1)

        def alone() -> None:
            store32(asm, ALONE, self.index, root)
            asm.advance(self.visited, -1)

        asm.when(asm.cmp("<", before, asm.load(self.region, Owing.MEMBER_COUNT)), several, alone)

    def _enter(self, state: ir.Value, number: ir.Value) -> None:
        asm = self.asm
        store32(asm, number, self.index, state)
        store32(asm, state, self.members, asm.load(self.region, Owing.MEMBER_COUNT))
        asm.bump(self.region, Owing.MEMBER_COUNT)
        # Numbers of visits are reused, so that they stay below those of components (Pearce).
        asm.advance(self.visited, -1)
