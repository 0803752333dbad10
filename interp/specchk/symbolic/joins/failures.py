"""The comparisons on which failures in a hull depend, and those before the steps that lead there.

A property fails in a hull after some comparisons that the hull leaves open.  If no real state fails, the hull
joins states on different sides of these comparisons: they are the atoms by which it is split.  If it is split
by all of them and still fails, a hull before it is too coarse, and is split by the weakest preconditions of
these atoms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from specchk.meaning.paths import Defined, Matrix, assuming, placed, widened
from specchk.meaning.undefined import Undefined
from specchk.symbolic.joins.atoms import Atom, PlaceNames, SplitAtoms
from specchk.symbolic.recording.solver import LinearSolver
from specchk.symbolic.recording.trees import Alternative, Ask, Classes, Define, Fresh, Tree, TreeNode, moved
from specchk.symbolic.zones.controls import Control
from specchk.symbolic.zones.expand import Candidate
from specchk.symbolic.zones.leaves import Effect, PredicateValue, Question
from specchk.symbolic.zones.precision import Abstraction
from specchk.symbolic.zones.precision import Question as Comparison
from specchk.symbolic.zones.zones import Shape, Zone

NO_PLACE = 1 << 30
Compared = tuple[tuple[Comparison, bool], ...]  # the comparisons on a path, and whether each was open
Way = tuple[Any, Classes, Matrix, Compared]  # a leaf, the facts known there, and the comparisons


def ways_of(tree: Tree, classes: Classes, rows: Matrix, solver: LinearSolver) -> Iterator[Way]:
    """The leaves that a zone has reached in a recorded tree, with the comparisons on the path to each."""
    left: list[Way] = [(tree.top.after[0], tree.among(classes), rows, ())]
    places = tree.places
    while left:
        node, classes, rows, compared = left.pop()
        while isinstance(node, TreeNode):
            if type(node) is Ask:
                (c, d), (e, f) = classes[node.i], classes[node.j]
                bound = node.bound - d + f
                follows = _decided(rows, c, e, bound, solver)
                # In places of the control part; a symbol of the tree alone is a number above all places.
                i, j = (x if places is None else places[x] if x < len(places) else NO_PLACE
                        for x in (node.i, node.j))  # fmt: skip
                compared = (*compared, ((i, j, node.bound), follows is None))
                if follows is None:
                    left.append((node.after[0], classes, assuming(rows, e, c, -bound - 1), compared))
                    rows = assuming(rows, c, e, bound)
                node = node.after[1 if follows is None else follows]
            elif type(node) is Alternative:
                left += [(other, classes, rows, compared) for other in node.after[1:]]
                node = node.after[0]
            elif type(node) is Fresh:
                classes, rows = [*classes, (len(rows), 0)], widened(rows)
                node = node.after[0]
            else:
                assert type(node) is Define
                rows, *place = placed(rows, moved(node.terms, classes))
                classes, node = [*classes, (place[0], place[1])], node.after[0]
        if node is not None:
            yield node, classes, rows, compared


def _decided(rows: Matrix, i: int, j: int, bound: int, solver: LinearSolver) -> bool | None:
    if rows[i][j] <= bound:
        return True
    if rows[j][i] < -bound:
        return False
    return solver.decided(rows, i, j, bound) if type(rows) is Defined else None


class Failures:
    """Finds the atoms of failures in hulls."""

    def __init__(self, abstraction: Abstraction, names: PlaceNames) -> None:
        self.abstraction = abstraction
        self.names = names

    def atoms(
        self, control: Control, hull: Zone, candidates: Iterable[Candidate]
    ) -> Iterator[tuple[Atom, bool]]:
        """The atoms on the paths to failures in a hull or in steps out of it, and whether each was open."""
        classes, rows = [(0, 0), *hull.classes], self.abstraction.matrix(hull)
        for candidate in dict.fromkeys(candidates):
            for compared in self._compared(control, classes, rows, candidate):
                for (i, j, bound), is_open in compared:
                    # Numbers that are chosen or computed on the way have no place in the hull.
                    if max(i, j) <= control.size:
                        yield self.names.atom(hull.shape, (i, j, bound)), is_open

    def _compared(
        self, control: Control, classes: Classes, rows: Matrix, candidate: Candidate
    ) -> Iterator[Compared]:
        solver = self.abstraction.solver
        for question, tree in control.questions:
            if question.name == candidate.name and candidate.kind in (question.kind, "undefined"):
                ways = ways_of(tree, classes, rows, solver)
                yield from [compared for leaf, _, _, compared in ways if _fails(leaf, question)]
        if candidate.name == "deadlock":
            for tree in (*control.instances, control.stops):
                yield from [compared for *_, compared in ways_of(tree, classes, rows, solver)]
        if candidate.step is None:
            return
        for tree in control.instances:
            for leaf, known, assumed, compared in ways_of(tree, classes, rows, solver):
                if isinstance(leaf, Effect) and leaf.taken == candidate.step:
                    yield compared
                    for check in _checks(leaf, candidate.name):
                        yield from [more for *_, more in ways_of(check, known, assumed, solver)]

    def before(
        self, shape: Shape, control: Control, hulls: Sequence[Zone], failing: Mapping[Shape, Sequence[Atom]]
    ) -> Iterator[Atom]:
        """The preimages of atoms of `failing` shapes before steps to these, if hulls leave them open."""
        for target, effect in effects_of(control):
            if target not in failing:
                continue
            places = ((0, 0), *effect.images[0])
            for i, j, bound in SplitAtoms(self.names, failing[target]).of(target):
                if max(i, j) >= len(places):
                    continue  # a further place of the target
                (x, d), (y, e) = places[i], places[j]
                question = x, y, bound - d + e
                if x != y and max(x, y) <= control.size and any(is_open(one, question) for one in hulls):
                    yield self.names.atom(shape, question)


def effects_of(control: Control) -> Iterator[tuple[Shape, Effect]]:
    """The recorded steps out of a control part, and the shapes that they reach."""
    left = [tree.top.after[0] for tree in control.instances]
    while left:
        node = left.pop()
        if isinstance(node, TreeNode):
            left += [after for after in node.after if after is not None]
        elif isinstance(node, Effect) and node.taken.shape is not None:
            yield node.taken.shape, node


def is_open(zone: Zone, question: Comparison) -> bool:
    """Whether a zone has states on both sides of a comparison."""
    i, j, bound = question
    places = ((0, 0), *zone.classes)
    (c, d), (e, f) = places[i], places[j]
    return zone.bounds[c][e] > bound - d + f and zone.bounds[e][c] >= d - f - bound


def _fails(leaf: object, question: Question) -> bool:
    if not isinstance(leaf, PredicateValue):
        return False
    return isinstance(leaf.value, Undefined) or (question.kind != "reached" and leaf.value is question.wanted)


def _checks(effect: Effect, name: str) -> list[Tree]:
    trees = [tree for question, tree in (*effect.steps, *effect.outside) if question.name == name]
    return [*trees, effect.inside] if effect.inside is not None else trees
