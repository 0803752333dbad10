"""Strongly connected components of a region, as instructions that know nothing of the spec.

Pearce's form of Tarjan's algorithm (A space-efficient algorithm for finding strongly connected components,
2016), without recursion.  A state has one word of 4 bytes, its order of visit and then its component; a frame
of the walk has 8 bytes:

    state (31 bits) | whether it is a root so far (bit 31) | the next of its edges (32 bits)

Components of one state share a number, since no step of a state to itself changes it.
"""

from __future__ import annotations

from llvmlite import ir

from specchk.native.machine.asm import I32, I64, PTR, Asm, Val
from specchk.native.machine.frames import Lane, Owing, SharedWord
from specchk.native.machine.layout import mask

NO_EDGES = 4  # the place of a state of the region without edges; lower: not in it; others are above
LAST_EDGE, STATE_BITS = 31, 31
ALONE = mask(32)  # the component of all states that are one of their own


def words32(asm: Asm, block: ir.Value, word: int) -> ir.Value:
    """An array of 4-byte words whose address is in a word of a block."""
    return asm.b.inttoptr(asm.load(block, word), I32.as_pointer())


def load32(asm: Asm, base: ir.Value, index: Val) -> ir.Value:
    """A 4-byte word, as a number."""
    return asm.b.zext(asm.load(base, index), I64)


def store32(asm: Asm, value: Val, base: ir.Value, index: Val) -> None:
    """Set a 4-byte word."""
    asm.store(asm.val(asm.resize(value, I32), I32), base, index)


def queue(asm: Asm, lane: ir.Value, number: ir.Value) -> None:
    """Append a state to those that a worker lets wait."""
    store32(asm, number, words32(asm, lane, Lane.QUEUE), asm.load(lane, int(Lane.QUEUED)))
    asm.bump(lane, int(Lane.QUEUED))


class ComponentWalk:
    """Emits `components(control, region, list, first, end)`: those reachable from listed states."""

    def __init__(self, module: ir.Module) -> None:
        kinds = [PTR, PTR, I64, I64, I64]
        self.asm = asm = Asm.of(module, "components", kinds, ir.VoidType(), internal=False)
        self.control, self.region, list_, self.first, self.end = asm.function.args
        self.list = asm.b.inttoptr(list_, I32.as_pointer())
        self.places, self.edges, self.index, self.members, self.bounds, self.stack = (
            words32(asm, self.region, word)
            for word in (Owing.PLACES, Owing.EDGES, Owing.INDEX, Owing.MEMBERS, Owing.BOUNDS, Owing.STACK)
        )
        self.frames = asm.b.inttoptr(asm.load(self.region, int(Owing.FRAMES)), PTR)
        self.next, self.state, self.at, self.root = (asm.cell(I64) for _ in range(4))
        self.visited, self.depth, self.held = (asm.cell(I64) for _ in range(3))
        asm.b.store(self.first, self.next)

    def emit(self) -> None:
        """Everything."""
        asm = self.asm
        stop = asm.b.gep(self.control, [asm.val(int(SharedWord.STOP))])
        roots, begin, step, finish, out = (
            asm.block(name) for name in ("roots", "begin", "step", "finish", "out")
        )
        asm.goto(roots)
        asm.enter(roots)
        asm.leave_if(asm.cmp("<=", self.end, asm.b.load(self.next)), out)
        asm.leave_if(asm.cmp("!=", asm.b.load_atomic(stop, "monotonic", 8), 0), out)
        root = load32(asm, self.list, asm.b.load(self.next))
        asm.b.store(asm.add(asm.b.load(self.next), 1), self.next)
        asm.leave_if(asm.cmp("!=", load32(asm, self.index, root), 0), roots)
        asm.b.store(root, self.state)
        asm.goto(begin)
        asm.enter(begin)
        self._begin()
        asm.goto(step)
        asm.enter(step)
        asm.leave_if(asm.cmp("==", asm.b.load(self.at), 0), finish)
        self._edge(begin)
        asm.goto(step)
        asm.enter(finish)
        self._finish()
        asm.leave_if(asm.cmp("==", asm.b.load(self.depth), 0), roots)
        self._return()
        asm.leave_if(asm.cmp("!=", asm.b.load_atomic(stop, "monotonic", 8), 0), out)
        asm.goto(step)
        asm.enter(out)
        asm.end()

    def _of(self, state: Val) -> ir.Value:
        return load32(self.asm, self.index, state)

    def _begin(self) -> None:
        """Visit the present state for the first time."""
        asm, state = self.asm, self.asm.b.load(self.state)
        visit = asm.add(asm.b.load(self.visited), 1)
        asm.b.store(visit, self.visited)
        store32(asm, visit, self.index, state)
        place = load32(asm, self.places, state)
        asm.b.store(asm.select(asm.cmp("==", place, NO_EDGES), 0, place), self.at)
        asm.b.store(asm.val(1), self.root)

    def _edge(self, begin: ir.Block) -> None:
        """Take the next edge of the present state; leave for `begin` where it leads to a new one."""
        asm, at, state = self.asm, self.asm.b.load(self.at), self.asm.b.load(self.state)
        edge = load32(asm, self.edges, at)
        target = asm.band(edge, mask(STATE_BITS))
        asm.b.store(asm.select(asm.cmp("==", asm.shr(edge, LAST_EDGE), 1), 0, asm.add(at, 1)), self.at)
        found, new, done = self._of(target), asm.block("new"), asm.block("known")
        asm.leave_if(asm.cmp("==", found, 0), new)
        self._lower(state, found)
        asm.goto(done)
        asm.enter(new)
        frame = asm.bor(state, asm.shl(asm.b.load(self.root), STATE_BITS))
        frame = asm.bor(frame, asm.shl(asm.b.load(self.at), 32))
        asm.store(frame, self.frames, asm.b.load(self.depth))
        asm.b.store(asm.add(asm.b.load(self.depth), 1), self.depth)
        asm.b.store(target, self.state)
        asm.goto(begin)
        asm.enter(done)

    def _lower(self, state: ir.Value, found: ir.Value) -> None:
        """A state from which one that was visited before it is reached is no root."""
        asm = self.asm

        def lower() -> None:
            store32(asm, found, self.index, state)
            asm.b.store(asm.val(0), self.root)

        asm.when(asm.cmp("<", found, self._of(state)), lower)

    def _return(self) -> None:
        """Continue with the state before."""
        asm, found = self.asm, self._of(self.asm.b.load(self.state))
        asm.b.store(asm.sub(asm.b.load(self.depth), 1), self.depth)
        frame = asm.load(self.frames, asm.b.load(self.depth))
        state = asm.band(frame, mask(STATE_BITS))
        asm.b.store(state, self.state)
        asm.b.store(asm.band(asm.shr(frame, STATE_BITS), 1), self.root)
        asm.b.store(asm.shr(frame, 32), self.at)
        self._lower(state, found)

    def _finish(self) -> None:
        """All edges of the present state are done: it waits for its root, or is one."""
        asm, state = self.asm, self.asm.b.load(self.state)

        def wait() -> None:
            held = asm.b.load(self.held)
            store32(asm, state, self.stack, held)
            asm.b.store(asm.add(held, 1), self.held)

        asm.when(asm.cmp("==", asm.b.load(self.root), 1), lambda: self._component(state), wait)

    def _component(self, root: ir.Value) -> None:
        asm, count = self.asm, self.asm.load(self.region, int(Owing.COMPONENTS))
        own = self._of(root)
        number = asm.load(self.region, int(Owing.NEXT_ID))
        before = asm.load(self.region, int(Owing.MEMBER_COUNT))
        top, last = asm.block("top"), asm.block("last")
        asm.goto(top)
        asm.enter(top)
        held = asm.b.load(self.held)
        asm.leave_if(asm.cmp("==", held, 0), last)
        member = load32(asm, self.stack, asm.sub(held, 1))
        asm.leave_if(asm.cmp("<", self._of(member), own), last)
        asm.b.store(asm.sub(held, 1), self.held)
        self._enter(member, number)
        asm.goto(top)
        asm.enter(last)

        def several() -> None:
            self._enter(root, number)
            asm.bump(self.region, int(Owing.COMPONENTS))
            store32(asm, asm.load(self.region, int(Owing.MEMBER_COUNT)), self.bounds, asm.add(count, 1))
            asm.store(asm.sub(number, 1), self.region, int(Owing.NEXT_ID))

        def alone() -> None:
            store32(asm, ALONE, self.index, root)
            asm.b.store(asm.sub(asm.b.load(self.visited), 1), self.visited)

        asm.when(asm.cmp("<", before, asm.load(self.region, int(Owing.MEMBER_COUNT))), several, alone)

    def _enter(self, state: ir.Value, number: ir.Value) -> None:
        asm = self.asm
        store32(asm, number, self.index, state)
        store32(asm, state, self.members, asm.load(self.region, int(Owing.MEMBER_COUNT)))
        asm.bump(self.region, int(Owing.MEMBER_COUNT))
        asm.b.store(asm.sub(asm.b.load(self.visited), 1), self.visited)
