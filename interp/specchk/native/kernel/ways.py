"""Paths through a block of statements under construction, and the points at which they join."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from specchk.codegen import ir
from specchk.ir.nodes import Block, Choice, Either, When
from specchk.native.machine.asm import I1, I64, Asm, Val


class Claim(Struct, frozen=True):
    """A place that may have been assigned: its path, and whether it was (after a join)."""

    slot: int
    path: tuple[Val, ...]
    made: Val


class BlockPath(Struct, frozen=True):
    """One path through a block: the words of the state after it, and the code that follows.

    `is_faulty`, `is_cut`: whether an assignment so far is undefined, or above a horizon.  `points` are the
    coverage points of the branches that were taken, each with whether it was (after a join).
    """

    words: tuple[Val, ...]
    claims: tuple[Claim, ...]
    next: ir.Block
    is_faulty: Val = False
    is_cut: Val = False
    points: tuple[tuple[int, Val], ...] = ()


Then = Callable[[BlockPath], None]


class Join:
    """The join of the paths through a straight `when`, or of the ends of an assignment.

    The code after it is built once.
    """

    def __init__(self, asm: Asm, then: Then) -> None:
        self.asm = asm
        self.then = then
        self.block = asm.block("join")
        self.ways: list[tuple[BlockPath, ir.Block]] = []

    def arrive(self, path: BlockPath) -> None:
        """Add a path that arrives here."""
        # The block where the code of this path ended, not where it began: conditions inside it have opened
        # others, and a phi names the blocks that jump to it.
        self.ways.append((path, self.asm.b.block))
        self.asm.goto(self.block)

    def emit(self) -> None:
        """Emit the code that follows."""
        asm = self.asm
        if not self.ways:
            # A false guard on every path: nothing arrives, but the code built after the block needs a
            # terminator.
            asm.enter(self.block)
            asm.b.unreachable()
            return
        asm.enter(self.block)
        words = tuple(
            self._merged([path.words[i] for path, _ in self.ways]) for i in range(len(self.ways[0][0].words))
        )
        is_faulty = self._merged([path.is_faulty for path, _ in self.ways], I1)
        is_cut = self._merged([path.is_cut for path, _ in self.ways], I1)
        # All paths continue to the same `next`: a straight `when` has no choice inside that would make a new
        # one.
        next_ = self.ways[0][0].next
        self.then(BlockPath(words, self._claims(), next_, is_faulty, is_cut, self._points()))

    def _merged(self, values: Sequence[Val], kind: ir.IntType = I64) -> Val:
        first = values[0]
        # No phi where all paths agree, as they do for most words: values known while building stay known.
        if all(value is first or (isinstance(value, int) and value == first) for value in values):
            return first
        phi = self.asm.b.phi(kind)
        for value, (_, block) in zip(values, self.ways, strict=True):
            phi.add_incoming(self.asm.val(value, kind), block)
        return phi

    def _points(self) -> tuple[tuple[int, Val], ...]:
        taken = [dict(path.points) for path, _ in self.ways]
        every = dict.fromkeys(point for points in taken for point in points)
        return tuple(
            (point, self._merged([points.get(point, False) for points in taken], I1)) for point in every
        )

    def _claims(self) -> tuple[Claim, ...]:
        # By identity: a claim made before the `when` is the same object on all paths, and needs no phi.
        every = {id(claim): claim for path, _ in self.ways for claim in path.claims}
        merged = []
        for claim in every.values():
            # The keys of a claim on only some paths are computed there, which does not dominate a use after
            # the join.  So the keys go through a phi, too, with any number from the other paths, on which
            # `made` is false.
            here = [any(other is claim for other in path.claims) for path, _ in self.ways]
            made = self._merged([claim.made if h else False for h in here], I1)
            keys = tuple(self._merged([key if h else 0 for h in here]) for key in claim.path)
            merged.append(claim if all(here) else Claim(claim.slot, keys, made))
        return tuple(merged)


def is_straight(body: Block) -> bool:
    """Whether a block has at most one path through it."""
    return all(
        not isinstance(stmt, Choice | Either)
        and (not isinstance(stmt, When) or (is_straight(stmt.then) and is_straight(stmt.orelse)))
        for stmt in body
    )
