"""Decision trees: the effect of a piece of code on the offsets of a control part, recorded once.

Zones of one shape differ only in what is known about their offsets.  So a run of the spec's code on the
shape, with a symbol for each of its offsets, is the same for all of them up to the first comparison that
their matrices answer differently.  A `Tree` is all such runs of one piece of code: its inner nodes are the
questions in the order in which they arise, its leaves the results of the code.  A zone walks through the
tree, answers each question from its matrix, and forks where both answers are possible.  The code itself runs
only where a zone is the first to arrive, and then with that zone's answers.

Comparisons that earlier answers decide are not questions, so a tree does not depend on which zone came first,
and each zone reaches the leaves of its own runs.

    x_i - x_j <= bound     `Ask`; symbols are the offsets of the shape in their order, and 0 the number 0
        one of n alternatives  `Alternative`; a zone takes them all
    a new symbol           `Fresh`
    a symbol for a sum     `Define`; after one the zone's matrix may need the solver to answer

Not here: the leaves (`zones.leaves`), and the meaning of the code (`meaning`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeVar

from msgspec import Struct

from specchk.meaning import paths
from specchk.meaning.linear import Form, Terms, substituted, symbol
from specchk.meaning.paths import Defined, ForkPath, Matrix
from specchk.symbolic.recording.solver import LinearSolver

T = TypeVar("T")
Classes = list[tuple[int, int]]  # of each symbol its class in a zone's matrix, and its distance from it
End = tuple[Any, Classes, Matrix, bool]  # a leaf, the facts known there, and whether something was assumed


class TreeNode:
    """A point in a run, and its continuation for each answer; None if not seen yet."""

    __slots__ = ("after", "place", "side", "up")

    def __init__(self, up: TreeNode | None, side: int, ways: int) -> None:
        self.up = up  # the node before, and the answer there that leads here
        self.side = side
        self.after: list[Any] = [None] * ways
        self.place = 0  # in the array of a compiled tree (`compiled`)


class Ask(TreeNode):
    """The question whether `x_i - x_j <= bound`: 1 is yes."""

    __slots__ = ("bound", "i", "j")

    def __init__(self, up: TreeNode | None, side: int, i: int, j: int, bound: int) -> None:
        super().__init__(up, side, 2)
        self.i = i
        self.j = j
        self.bound = bound


class Alternative(TreeNode):
    """The choice of one of several alternatives."""

    __slots__ = ()


class Fresh(TreeNode):
    """The creation of a new symbol."""

    __slots__ = ()


class Define(TreeNode):
    """The definition of a symbol for a number with these terms."""

    __slots__ = ("terms",)

    def __init__(self, up: TreeNode | None, side: int, terms: Terms) -> None:
        super().__init__(up, side, 1)
        self.terms = terms


class Recorder(ForkPath):
    """The path of recorded runs: the answers given to the run.

    Answers come from the tree as far as a zone walked it, and from what is known in that zone beyond.
    """

    __slots__ = ("_classes", "_guide", "_node", "_side")

    def record(self, tree: Tree, at: tuple[TreeNode, int], classes: Classes, rows: Matrix) -> None:
        """Record a run of a tree that reaches the answer `at` a node, and continues like a zone."""
        # The answers from the top to this place: the code is run again from its beginning, since a run
        # cannot be continued from the middle of a Python function.
        script = []
        node, side = at
        while node.up is not None:
            script.append(side)
            node, side = node.up, node.side
        # Without facts, whatever the zone: its facts would hide questions that other zones must answer.
        self.begin(tree.start, script[::-1])
        self._node, self._side = node, side
        self._classes = classes.copy()
        self._guide = ForkPath(self.solver)
        self._guide.begin(rows, [])
        leaf = tree.run()
        self._node.after[self._side] = leaf

    @property
    def is_at_top(self) -> bool:
        """Whether the run has compared nothing yet, so that its result is independent of offsets."""
        node = self._node
        while type(node) is Fresh and node.up is not None:
            node = node.up
        return node.up is None

    def at_most(self, i: int, j: int, bound: int) -> bool:
        """Whether `x_i - x_j <= bound`; assumed from here on."""
        if self.rows[i][j] <= bound:
            return True
        if self.rows[j][i] < -bound:
            return False
        node = self._next(Ask, i, j, bound)
        if self._at < len(self._script):
            answer = self._script[self._at]
        else:
            (c, d), (e, f) = self._classes[i], self._classes[j]
            # Beyond the known part of the tree, the run follows the zone, so that it records a path that
            # exists.
            answer = int(self._guide.at_most(c, e, bound - d + f))
        self._went(node, answer)
        if answer:
            self._assume(i, j, bound)
        else:
            self._assume(j, i, -bound - 1)
        return bool(answer)

    def choose(self, count: int) -> int:
        """Choose one of `count` ways to continue."""
        if count == 1:
            return 0
        node = self._next(Alternative, count)
        answer = self._script[self._at] if self._at < len(self._script) else 0
        self._went(node, answer)
        return answer

    def fresh(self) -> int:
        """A new symbol."""
        node = self._next(Fresh, 1)
        # The zone's classes have the symbols of the path that it walked; the guide's matrix grows with them.
        if self._at >= len(self._script):
            self._classes.append((self._guide.fresh(), 0))
        self._went(node, 0)
        return super().fresh()

    def defined(self, terms: Terms) -> tuple[int, int]:
        """The symbol of a number with these terms, and the number to add to it."""
        for known, number, plus in paths.definitions(self.rows):
            if known == terms:
                return number, plus
        node = self._next(Define, terms)
        if self._at >= len(self._script):
            self._guide.rows, *place = paths.placed(self._guide.rows, moved(terms, self._classes))
            self._classes.append((place[0], place[1]))
        self._went(node, 0)
        self.rows, number, plus = paths.defining(self._own(), terms)
        return number, plus

    def _next(self, kind: type[TreeNode], *about: Any) -> TreeNode:
        """The next node of the run, new if no run was here before."""
        node = self._node.after[self._side]
        if node is None:
            # The code depends only on the answers, so a node that exists already is this very question.
            node = self._node.after[self._side] = kind(self._node, self._side, *about)
        assert isinstance(node, TreeNode)
        return node

    def _went(self, node: TreeNode, answer: int) -> None:
        self._node, self._side = node, answer
        self._at += 1


def moved(terms: Terms, classes: Classes) -> Form:
    """Terms over the symbols of a tree as a form over the classes of a zone."""
    return substituted((terms, 0), lambda place: symbol(*classes[place]))


@cache
def unknown(size: int, defined: tuple[tuple[Terms, int, int], ...] = ()) -> Matrix:
    """The matrix of this many unconstrained symbols: offsets, which are non-negative, and defined ones."""
    rows = [[0] * (size + 1)] + [[paths.FREE] * (size + 1) for _ in range(size)]
    for index, row in enumerate(rows):
        row[index] = 0
    for _, number, _ in defined:
        rows[0][number] = paths.FREE
    return Defined(rows, defined) if defined else rows


class Tree:
    """All runs of one piece of code from a matrix; `run` runs it on the recorder, and returns a leaf.

    Control parts that agree in everything that the code reads share its runs: `places` are the symbols of a
    control part that occur in the tree, the number 0 first; None for all symbols.
    """

    __slots__ = ("places", "run", "start", "top")

    def __init__(self, start: Matrix, run: Callable[[], object]) -> None:
        self.start = start
        self.run = run
        self.top = TreeNode(None, 0, 1)
        self.places: tuple[int, ...] | None = None

    def at(self, places: tuple[int, ...]) -> Tree:
        """The same runs with other symbols."""
        other = Tree(self.start, self.run)
        other.top, other.places = self.top, places
        return other

    def among(self, symbols: list[T]) -> list[T]:
        """The data of a control part's symbols restricted to the symbols of the tree."""
        return symbols if self.places is None else [symbols[place] for place in self.places]

    @property
    def only(self) -> Any:
        """The leaf if no question is left; None if there is one, or nothing is known yet."""
        first = self.top.after[0]
        while type(first) is Fresh:  # an open argument, with which nothing is compared
            first = first.after[0]
        return None if isinstance(first, TreeNode) else first


class TreeWalker(Struct):
    """Walks trees with zones; `forks` and `known` count the open and the decided answers."""

    recorder: Recorder
    solver: LinearSolver
    forks: int = 0
    known: int = 0

    def walk_once(self, tree: Tree, classes: Classes, rows: Matrix) -> None:
        """Record the first run of a zone in a tree that has none; counts nothing."""
        if tree.top.after[0] is None:
            self.recorder.record(tree, (tree.top, 0), tree.among(classes), rows)

    def walk(self, tree: Tree, classes: Classes, rows: Matrix) -> Iterator[End]:
        """The leaves reached by part of a zone, with the facts known about that part.

        Every state of the zone is in exactly one part for each choice among ways.
        """
        left: list[tuple[TreeNode, int, Classes, Matrix, bool]]
        left, solver = [(tree.top, 0, tree.among(classes), rows, False)], self.solver
        while left:
            node, side, classes, rows, assumed = left.pop()
            while True:
                child = node.after[side]
                if child is None:
                    # The tree is extended during the walk: here, and from here to a leaf.
                    self.recorder.record(tree, (node, side), classes, rows)
                    child = node.after[side]
                kind = type(child)
                if kind is Ask:
                    (c, d), (e, f) = classes[child.i], classes[child.j]
                    # (y_c + d) - (y_e + f) <= bound, moved to the classes of the zone.
                    bound = child.bound - d + f
                    if rows[c][e] <= bound:
                        side = 1
                        self.known += 1
                    elif rows[e][c] < -bound:
                        side = 0
                        self.known += 1
                    # A matrix without definitions decides by itself.
                    elif type(rows) is Defined and (follows := solver.decided(rows, c, e, bound)) is not None:
                        side = int(follows)
                        self.known += 1
                    else:
                        # Yes first, as in `ForkPath.at_most`: the recorded path is then the one that is
                        # walked next.
                        left.append((child, 0, classes, paths.assuming(rows, e, c, -bound - 1), True))
                        side, rows, assumed = 1, paths.assuming(rows, c, e, bound), True
                        self.forks += 1
                elif kind is Alternative:
                    others = range(len(child.after) - 1, 0, -1)
                    left += [(child, other, classes, rows, assumed) for other in others]
                    self.forks += len(others)
                    side = 0
                elif kind is Fresh:
                    classes, rows, assumed = [*classes, (len(rows), 0)], paths.widened(rows), True
                    side = 0
                elif kind is Define:
                    rows, *place = paths.placed(rows, moved(child.terms, classes))
                    classes, side = [*classes, (place[0], place[1])], 0
                else:
                    yield child, classes, rows, assumed
                    break
                node = child
