"""Levels: an expression depends on nothing, the state, a step, or a whole behaviour.

As in TLA+ every expression has a level, and every place in a spec has a highest permitted level:
bounds, defaults, initial values and model bindings are constant, guards and invariants are state
level, step invariants are action level, liveness properties are temporal.
"""

from __future__ import annotations

from enum import IntEnum
from types import MappingProxyType

from specchk.identity import compared
from specchk.lang.check.spec import Facts
from specchk.lang.syntax import decls, tree
from specchk.lang.text.diagnostics import Report


class Level(IntEnum):
    """The extent of a behaviour that an expression reads."""

    CONSTANT = 0
    STATE = 1
    ACTION = 2
    TEMPORAL = 3


_TEMPORAL = ("leadsto", "eventually", "always")
# of a part above the level of its place: code, what the part does, hint
_ABOVE = MappingProxyType({
    Level.STATE: ("S402", "reads the state", "only constants have a value here"),
    Level.ACTION: ("S401", "refers to the state after a step",
                   "primes belong in `step invariant` and on the left of an action's assignments"),
    Level.TEMPORAL: ("S403", "refers to whole behaviours", "temporal operators belong in `liveness`"),
})  # fmt: skip


def children(node: tree.Node) -> list[tree.Node]:
    """The direct parts of a tree node, in source order."""
    parts: list[tree.Node] = []
    for name in compared(type(node)):
        value = getattr(node, name)
        if isinstance(value, tree.Node):
            parts.append(value)
        elif isinstance(value, tuple):
            parts += [part for part in value if isinstance(part, tree.Node)]
    return parts


class LevelChecker:
    """Infers levels; the level of each definition is computed once."""

    def __init__(self, facts: Facts, report: Report) -> None:
        self.facts = facts
        self.report = report
        self._defs: dict[int, Level] = {}
        self._open: set[int] = set()  # definitions whose levels are being determined
        self._met: set[int] = set()  # those of them that were used again, with what they add still unknown

    def demand(self, node: tree.Node, most: Level, place: str) -> None:
        """Report the first part of `node` above the level that `place` allows."""
        above = self._above(node, most)
        if above is not None:
            part, level = above
            code, effect, hint = _ABOVE[level]
            self.report.add(code, part.span, f"this {effect}, but {place}", hint)

    def _above(self, node: tree.Node, most: Level) -> tuple[tree.Node, Level] | None:
        own = self._own(node)
        if own > most:
            return node, own
        for part in children(node):
            if found := self._above(part, most):
                return found
        return None

    def _own(self, node: tree.Node) -> Level:
        """The level that a node adds to those of its parts."""
        if isinstance(node, tree.Prime):
            return Level.ACTION
        if isinstance(node, tree.Binary | tree.Unary) and node.op in _TEMPORAL:
            return Level.TEMPORAL
        ref = self.facts.refs.get(id(node))
        # A local has no level of its own: its value or domain is a part of the same expression, or of an
        # earlier statement, and is checked there.
        if ref is None or ref.home is None:
            return Level.CONSTANT
        if ref.kind in ("variable", "property", "action"):
            return Level.STATE
        if ref.kind == "def" and ref.name in ref.home.defs:
            return self._of_def(ref.home.defs[ref.name])
        return Level.CONSTANT

    def _of_def(self, decl: decls.Def) -> Level:
        place = id(decl)
        if place in self._defs:
            return self._defs[place]
        # In a recursion it adds nothing to its own level.
        if place in self._open:
            self._met.add(place)
            return Level.CONSTANT
        self._open.add(place)
        found = self.of(decl)
        self._open.discard(place)
        self._met.discard(place)
        # Of a definition between an open one and its next use, the level of the open one is not in it yet.
        if not self._met:
            self._defs[place] = found
        return found

    def of(self, node: tree.Node) -> Level:
        """The level of a whole node."""
        return max([self._own(node), *(self.of(part) for part in children(node))])
