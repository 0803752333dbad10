"""Precision: the predicates that zones of a shape keep, in addition to differences within their reach.

Zones forget differences beyond a reach, and all sums.  If that is too coarse, zones of a shape also keep the
forms that the spec compares there: these are further places, whose numbers are forms of the offsets.

    shifted    x_i + c: a far threshold, `x_i <= 1000`, is `x_i - 1000` beside 0, which is near
    sums       a form of several offsets beside 0: `a + b <= c` is `a + b - c` beside 0
    compared   comparisons of places, which the solver decides where offsets are in sums

The predicates are those of the comparisons that trees have recorded, and their preconditions before the
recorded steps (predicate abstraction: Graf and Saidi 1997; by place: Henzinger et al., "Lazy
Abstraction", 2002).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from specchk.meaning.linear import Form, Terms, added, primitive, substituted, symbol
from specchk.meaning.paths import Defined, Matrix, assuming, pair_of, placed
from specchk.symbolic.recording.solver import LinearSolver
from specchk.symbolic.zones.zones import Reach, Shape, Zone, zone_at

Place = tuple[int, int]  # a symbol, and what is added to it
Question = tuple[int, int, int]  # x_i - x_j <= bound


class ShapePredicates(Struct, frozen=True):
    """The predicates of one shape; places are numbered from 1, and 0 is the number 0."""

    shifted: tuple[Place, ...] = ()
    sums: tuple[Form, ...] = ()
    compared: tuple[Question, ...] = ()

    @property
    def size(self) -> int:
        """The number of further places."""
        return len(self.shifted) + len(self.sums)

    def forms(self) -> list[Form]:
        """The forms of the further places."""
        return [*[symbol(*place) for place in self.shifted], *self.sums]

    def definitions(self, size: int) -> tuple[tuple[Terms, int, int], ...]:
        """The definitions of the further places, whose symbols follow those of `size` offsets."""
        return tuple([(terms, size + n, -plus) for n, (terms, plus) in enumerate(self.forms(), 1)])


NONE = ShapePredicates()
Precision = Mapping[Shape, ShapePredicates]


class Abstraction(Struct):
    """The map from sets of states to zones: differences within `reach` (None: all), and predicates."""

    reach: Reach | None
    solver: LinearSolver
    precision: Precision

    def of(self, shape: Shape) -> ShapePredicates:
        """The predicates of a shape."""
        return self.precision.get(shape, NONE)

    def zone(self, shape: Shape, at: Sequence[Place], rows: Matrix) -> Zone:
        """The zone of a shape with `x + d` at each open place, over a matrix."""
        predicates = self.precision.get(shape)
        if predicates is None:
            return zone_at(shape, at, rows, self.reach)
        offsets = [symbol(0), *[symbol(*place) for place in at]]
        places = list(at)
        for form in predicates.forms():
            rows, number, plus = placed(rows, substituted(form, offsets.__getitem__))
            places.append((number, plus))
        if type(rows) is Defined:
            # A sum implies more about its parts than intervals show: for each comparison that will be made,
            # it is decided now whether it follows, while the definitions are known.
            rows = self._with_answers(predicates, [(0, 0), *places], rows)
        return zone_at(shape, places, rows, self.reach)

    def _with_answers(self, predicates: ShapePredicates, places: Sequence[Place], rows: Matrix) -> Matrix:
        first = len(places) - predicates.size
        for i, j, bound in (*predicates.compared, *[(n, 0, 0) for n in range(first, len(places))]):
            (a, c), (b, d) = places[i], places[j]
            least = bound - c + d
            if rows[a][b] <= least or rows[b][a] < -least:
                continue
            follows = self.solver.decided(rows, a, b, least)
            if follows is not None:
                rows = assuming(rows, a, b, least) if follows else assuming(rows, b, a, -least - 1)
        return rows

    def matrix(self, zone: Zone) -> Matrix:
        """The matrix of a zone, including the definitions of its further places."""
        predicates = self.precision.get(zone.shape)
        if predicates is None:
            return zone.bounds
        rows: Matrix = zone.bounds
        size = len(zone.classes) - predicates.size
        offsets = [symbol(0), *[symbol(*place) for place in zone.classes]]
        defined = []
        for form, place in zip(predicates.forms(), zone.classes[size:], strict=True):
            terms, plus = substituted(form, offsets.__getitem__)
            difference = added((terms, plus), symbol(*place), -1)
            if not difference[0]:
                continue
            own, factor, more = primitive(difference)
            pair = pair_of(own)
            if pair is not None and abs(factor) == 1:
                (i, j), bound = pair, -more * factor
                for a, b, most in ((i, j, bound), (j, i, -bound)):
                    rows = assuming(rows, a, b, most) if rows[a][b] > most else rows
            else:
                number, shift = place
                defined.append((terms, number, shift - plus))
        return Defined([list(row) for row in rows], tuple(defined)) if defined else rows
