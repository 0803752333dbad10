"""The values known in a block, while a function is built: those of the blocks that dominate it.

A block dominates another if every way from the entry passes it first.  Control flow is structured, so all
jumps to a block are built before it is entered, except for those back to the head of a loop.  Its immediate
dominator is then the nearest one that all blocks which jump to it share (Cooper, Harvey, Kennedy, A Simple,
Fast Dominance Algorithm, 2001); a jump back comes from a block that this one dominates, too, which is
checked here, and once more by LLVM's verifier.

    known:  of the blocks on the way from the root of the tree to the present one, as a stack
"""

from __future__ import annotations

from specchk.codegen.ir import Block, Value


class Dominance:
    """The dominator tree built so far, and the values that are `known` in the current block."""

    __slots__ = ("_path", "block", "known")

    def __init__(self, block: Block) -> None:
        self.block = block
        self.known: dict[str, Value] = {}
        self._path = [block]  # by depth: the dominators of the present block, and itself
        block.is_entered = block.is_reached = True

    def jump(self, block: Block, target: Block) -> None:
        """Record a jump from one block to another."""
        if not block.is_reached:
            return  # control is never there: what constants decided is built all the same
        if not target.is_reached:
            assert not target.is_entered, "a block is entered before any jump to it"
            target.is_reached, target.dominator = True, block
            return
        if target.dominator is None:  # the block that all ways begin with
            return
        above = _shared(block, target.dominator)
        assert above is not None
        if target.is_entered:
            assert above is target.dominator, "a jump from elsewhere to a block that was entered"
        target.dominator = above

    def enter(self, block: Block) -> None:
        """Continue building at the end of a block."""
        self.block = block
        if not block.is_entered:
            block.is_entered = True
            _place(block)
        path, back = self._path, []
        above: Block | None = block
        while above is not None and not (above.depth < len(path) and path[above.depth] is above):
            back.append(above)
            above = above.dominator
        common = 0 if above is None else above.depth + 1
        while len(path) > common:
            for right, _ in path.pop().shared:
                self.known.pop(right, None)
        for inner in reversed(back):
            path.append(inner)
            # What a block had when it was left: it is entered again where code beside it was built meanwhile.
            self.known.update(inner.shared)


def _place(block: Block) -> None:
    """Insert a block into the tree below its dominator."""
    above = block.dominator
    if above is None:  # no jump leads here yet, so nothing is known here
        return
    block.depth = above.depth + 1
    # A walk to any dominator is short: as many steps as its height has digits (Myers, An applicative
    # random-access stack, 1983).
    far = above.far
    block.far = far.far if above.depth - far.depth == far.depth - far.far.depth else above


def _shared(a: Block, b: Block) -> Block | None:
    """The nearest block that dominates both (possibly one of them); None if there is none."""
    while a is not b:
        if a.depth < b.depth:
            a, b = b, a
        if a.depth > b.depth:
            step = a.far if a.far.depth >= b.depth else a.dominator
            assert step is not None
            a = step
        elif a.far is not b.far:
            a, b = a.far, b.far
        elif a.dominator is None or b.dominator is None:
            return None
        else:
            a, b = a.dominator, b.dominator
    return a
