"""The comparisons recorded in decision trees, and the precision that they require."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from specchk.meaning.linear import NOTHING, Form, Terms, added, primitive, substituted, symbol, symbols
from specchk.meaning.paths import Defined, pair_of
from specchk.symbolic.recording.trees import Ask, Define, Fresh, TreeNode
from specchk.symbolic.zones.controls import Control
from specchk.symbolic.zones.leaves import Effect
from specchk.symbolic.zones.precision import NONE, Place, Precision, ShapePredicates
from specchk.symbolic.zones.zones import Shape

FAR = 4  # thresholds from here on are kept as places; nearer ones are soon within a reach
MAX_SUMS = 12  # of a shape
MAX_SHIFTED = 24


class Comparison(Struct, frozen=True):
    """A comparison of a form of a shape's offsets with 0: whether it is at most 0."""

    shape: Shape
    form: Form


class Leading(Struct, frozen=True):
    """A step from a shape to another one, whose offsets are forms of those before it (None: chosen).

    `has_sums`: numbers were defined on the way.
    """

    shape: Shape
    target: Shape
    forms: tuple[Form | None, ...]
    has_sums: bool


Record = Comparison | Leading


def recorded(control: Control, shape: Shape, predicates: ShapePredicates) -> Iterator[Record]:
    """The comparisons and steps in the trees of a control part."""
    offsets = control.size - predicates.size
    known = [symbol(number) for number in range(offsets + 1)]
    forms: list[Form] = [*known, *[substituted(one, known.__getitem__) for one in predicates.forms()]]
    trees = [*control.instances, control.stops, *[tree for _, tree in control.questions]]
    # For each node, the forms of the symbols there, and the comparisons of chosen numbers before it.
    left: list[tuple[Any, list[Form], tuple[Form, ...]]]
    left = [(tree.top.after[0], tree.among(forms), ()) for tree in trees]
    while left:
        node, forms, chosen = left.pop()
        if type(node) is Effect:
            if node.taken.shape is not None:
                images = [(forms[number][0], forms[number][1] + plus) for number, plus in node.images[0]]
                known_images = tuple([None if _largest(one) > control.size else one for one in images])
                yield Leading(shape, node.taken.shape, known_images, isinstance(node.known, Defined))
                kept = [_after(form, images, control.size) for form in chosen]
                yield from [Comparison(node.taken.shape, form) for form in kept if form is not None]
            checks = [tree for _, tree in (*node.steps, *node.outside)]
            checks += [node.inside] if node.inside is not None else []
            left += [(tree.top.after[0], forms, chosen) for tree in checks]
        if not isinstance(node, TreeNode):
            continue
        if type(node) is Ask:
            terms, plus = added(forms[node.i], forms[node.j], -1)
            compared = terms, plus - node.bound
            if _largest(compared) > control.size:
                chosen = (*chosen, compared)
            else:
                yield Comparison(shape, compared)
        if type(node) is Fresh:
            forms = [*forms, symbol(len(forms))]  # beyond all offsets
        elif type(node) is Define:
            forms = [*forms, substituted((node.terms, 0), forms.__getitem__)]
        left += [(after, forms, chosen) for after in node.after]


def _largest(form: Form) -> int:
    return max(symbols(form[0]), default=0)


def _before(terms: Terms, forms: Sequence[Form | None]) -> Form | None:
    """Terms over places after a step as a form of offsets before it; None if a chosen number occurs."""
    if any(forms[number] is None for number in symbols(terms)):
        return None
    return substituted((terms, 0), lambda number: forms[number] or NOTHING)


def _after(form: Form, images: Sequence[Form], size: int) -> Form | None:
    """A form of offsets and chosen numbers as a form of the offsets after a step; None if impossible.

    `p + n - q`, where the step stores `p + n` in p and leaves q, is `p - q` after it.
    """
    after, rest = NOTHING, form
    # Images with chosen numbers first, since offsets in these have images of their own, too.
    for number in sorted(range(len(images)), key=lambda number: -_largest(images[number])):
        image = images[number]
        pivot = _largest(image)
        own = dict(image[0]).get(pivot)
        times = dict(rest[0]).get(pivot)
        # A single offset is one that the step leaves.
        if times and own == 1 and (pivot > size or len(image[0]) == 1):
            rest = added(rest, image, -times)
            after = added(after, symbol(number + 1), times)
    return None if rest[0] else (after[0], after[1] + rest[1])


class PrecisionBuilder:
    """Computes the precision from recorded comparisons and the previous precision."""

    def __init__(self, precision: Precision) -> None:
        self.before = precision
        self.shifted = {shape: dict.fromkeys(known.shifted) for shape, known in precision.items()}
        self.sums = {shape: dict.fromkeys(known.sums) for shape, known in precision.items()}
        self.compared = {shape: dict.fromkeys(known.compared) for shape, known in precision.items()}
        self.after_sums: set[Shape] = set()

    def add(self, record: Record) -> None:
        """Note a comparison, or a step."""
        if isinstance(record, Comparison):
            self._compared(record.shape, record.form)
        else:
            self._stepped(record)

    def _compared(self, shape: Shape, form: Form) -> None:
        if not form[0]:
            return
        terms, factor, plus = primitive(form)
        bound = -plus // abs(factor)
        pair = pair_of(terms)
        if pair is None:
            # Not `-f <= b`, but its negation `f <= -b - 1`, so that there is one place for both.
            self._sum(shape, (terms, -bound if factor > 0 else bound + 1))
            return
        i, j = pair if factor > 0 else pair[::-1]
        self.compared.setdefault(shape, {})[i, j, bound] = None
        if abs(bound) >= FAR:
            # One beyond the bound: where the comparison is true the difference is at most -1 there, and at
            # most 0 after a step by one, so that both are within the first reach.
            self._shift(shape, (i, -bound - 1) if i else (j, bound + 1))

    def _stepped(self, step: Leading) -> None:
        shape, places = step.shape, [NOTHING, *step.forms]
        if step.has_sums:
            self.after_sums.add(step.target)
        for form in self.before.get(step.target, NONE).forms():
            before = _before(form[0], places)
            if before is None or not before[0]:
                continue
            terms, factor, _ = primitive(before)
            # With the constant of the target: otherwise each round of a loop that adds would add a predicate.
            plus = form[1]
            pair = pair_of(terms)
            if pair is None:
                if terms not in [some for some, _ in self.sums.get(shape, ())]:
                    self._sum(shape, (terms, plus if factor > 0 else 1 - plus))
            elif abs(plus) >= FAR:
                self._shift(shape, (pair[0], plus if factor > 0 else -plus))

    def _sum(self, shape: Shape, form: Form) -> None:
        sums = self.sums.setdefault(shape, {})
        if len(sums) < MAX_SUMS:
            sums[form] = None

    def _shift(self, shape: Shape, place: Place) -> None:
        places = self.shifted.setdefault(shape, {})
        if len(places) < MAX_SHIFTED:
            places[place] = None

    def precision(self) -> Precision:
        """The predicates that zones are to keep from here on."""
        predicates: dict[Shape, ShapePredicates] = {}
        for shape in {*self.shifted, *self.sums, *self.after_sums}:
            shifted, sums = tuple(self.shifted.get(shape, ())), tuple(self.sums.get(shape, ()))
            compared = self.compared.get(shape, ()) if sums or shape in self.after_sums else ()
            if shifted or sums or compared:
                predicates[shape] = ShapePredicates(shifted, sums, tuple(compared))
        return predicates
