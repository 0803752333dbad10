"""Zones: sets of states with one control part, and offsets that satisfy a difference-bound matrix.

    shape     the state with an `Open` place for each offset: everything that is not an offset
    classes   for each open place a pair (c, d): its offset is y_c + d; y_0 is the number 0
    bounds    the closed matrix of y_i - y_j, with one y for all offsets that differ by known numbers

A zone is canonical: equal sets have equal zones, if they were made with the same `reach`.  To be
finitely many, zones forget differences beyond `reach` (extrapolation, as of clock zones: Daws and
Tripakis 1998): a bound of more than `upper` becomes none, one of less than `-lower` becomes `-lower`.
So a zone may have states that cannot be reached, and never lacks one that can.

`Shapes` splits states into shape and offsets, and joins them again.

Kernels (`kernels.matrices`) compute the zone of a matrix, the hull of two zones, and a part of one.

Not here: which zones lie within others (`covering`), and which are joined (`joins.hulls`).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, permutations
from struct import unpack_from
from sys import byteorder
from typing import Any

from msgspec import Struct

from specchk.ir import types
from specchk.ir.program import Program
from specchk.ir.types import Type, components, has_horizon
from specchk.meaning.open_numbers import Linear, OpenNumber, Term
from specchk.meaning.paths import FREE, Matrix, NotSymbolic
from specchk.meaning.values import State
from specchk.symbolic.kernels.loading import compiled
from specchk.symbolic.kernels.matrices import CAP, HEAD, REFUSED

Shape = tuple[Any, ...]
OPEN = -1 << 61  # represents an offset in a shape; no value of a spec is so small


class HashedShape(tuple[Any, ...]):
    """A shape with a cached hash (of hundreds of numbers), for the lookup of each zone."""

    _hash: int

    def __new__(cls, parts: Shape) -> HashedShape:
        """The shape of these parts."""
        shape = super().__new__(cls, parts)
        shape._hash = tuple.__hash__(shape)
        return shape

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[HashedShape], tuple[Shape]]:
        return HashedShape, (tuple(self),)


Split = Callable[[Any, list[Any]], Any]  # a value and the offsets found so far -> its shape
Join = Callable[[Any, Any], Any]  # a shape and an iterator of offsets -> the value


class Reach(Struct, frozen=True):
    """The limit of distinguished differences: upper bounds up to `upper`, lower ones up to `lower`."""

    upper: int
    lower: int

    def further(self) -> Reach:
        """The next larger reach."""
        # From (0, 1): 1 and 3, 3 and 7, ... up to (31, 63) after five refinements.
        return Reach(2 * self.upper + 1, 2 * self.lower + 1)


class Zone:
    """A set of states; see the module's docstring.

    `words` has its classes and bounds as 64-bit numbers (`kernels.matrices`), so that kernels read them in
    place, and equal zones are found by a hash of bytes.  `mark` is the hash of the shape.
    """

    __slots__ = ("mark", "shape", "words")

    def __init__(self, shape: Shape, words: bytes, mark: int) -> None:
        self.shape = shape
        self.words = words
        self.mark = mark

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Zone):
            return NotImplemented
        return self.words == other.words and (self.shape is other.shape or self.shape == other.shape)

    def __hash__(self) -> int:
        return self.mark ^ hash(self.words)

    def __getstate__(self) -> tuple[Shape, bytes, int]:
        return self.shape, self.words, self.mark

    def __setstate__(self, state: tuple[Shape, bytes, int]) -> None:
        self.shape, self.words, self.mark = state

    def __repr__(self) -> str:
        return f"Zone({self.shape}, {self.classes}, {self.bounds})"

    @property
    def size(self) -> int:
        """The number of places."""
        return int.from_bytes(self.words[8:16], byteorder) - 1

    @property
    def classes(self) -> tuple[tuple[int, int], ...]:
        """For each open place, its class and its distance from it."""
        numbers = _numbers(self.words, 4, 2 * self.size)
        return tuple(zip(numbers[::2], numbers[1::2], strict=True))

    @property
    def bounds(self) -> tuple[tuple[int, ...], ...]:
        """The closed matrix of the classes' differences."""
        size = int.from_bytes(self.words[:8], byteorder)
        numbers = _numbers(self.words, 4 + 2 * self.size, size * size)
        return tuple([numbers[row : row + size] for row in range(0, size * size, size)])


def _numbers(words: bytes, first: int, count: int) -> tuple[int, ...]:
    return unpack_from(f"={count}q", words, 8 * first)


def own_bounds(bounds: Matrix) -> Iterator[tuple[int, int, int]]:
    """The bounds of a zone that follow from no two others.

    All of these can be left out at once, since numbers at a fixed distance are one class: there are no
    cycles of length 0 (Larsen, Larsson, Pettersson, Yi, 1997).
    """
    numbers = range(len(bounds))
    for i, j in permutations(numbers, 2):
        bound = bounds[i][j]
        others = (k for k in numbers if k not in (i, j))
        if bound < FREE and all(bounds[i][k] + bounds[k][j] > bound for k in others):
            yield i, j, bound


class SplitState(Struct, frozen=True):
    """A state, and each of its variables split; `images` are its renamings."""

    state: State
    splits: tuple[tuple[Any, list[Any]], ...]
    images: tuple[SplitState, ...] = ()


class Shapes:
    """Splits the states of a program into shape and offsets."""

    def __init__(self, program: Program) -> None:
        kinds = [variable.type for variable in program.variables]
        self._splits = [_splitter(kind) for kind in kinds]
        self._joins = [_joiner(kind) for kind in kinds]

    def split(self, state: State) -> tuple[Shape, list[Any]]:
        """The shape of a state, and its offsets: ints or terms."""
        found: list[Any] = []
        return tuple([split(part, found) for split, part in zip(self._splits, state, strict=True)]), found

    def parts(self, state: State, images: Iterable[State] = ()) -> SplitState:
        """Each variable of a state separately, with its renamings."""
        splits = []
        for split, value in zip(self._splits, state, strict=True):
            found: list[Any] = []
            splits.append((split(value, found), found))
        return SplitState(state, tuple(splits), tuple([self.parts(image) for image in images]))

    def split_like(self, state: State, parts: SplitState) -> tuple[Shape, list[Any]]:
        """As `split`, for a state that shares some values with another one."""
        found: list[Any] = []
        shape = []
        for split, value, before, known in zip(self._splits, state, parts.state, parts.splits, strict=True):
            if value is before:
                shape.append(known[0])
                found += known[1]
            else:
                shape.append(split(value, found))
        return tuple(shape), found

    def join(self, shape: Shape, offsets: Sequence[Any]) -> State:
        """The state with a shape and these offsets; of a variable whose part of the shape is None, None."""
        left = iter(offsets)
        pairs = zip(self._joins, shape, strict=True)
        return tuple([None if part is None else join(part, left) for join, part in pairs])  # type: ignore[misc]

    def zone(self, split: tuple[Shape, list[Any]], rows: Matrix, reach: Reach | None) -> Zone:
        """The zone of a split state of terms, over a matrix; None for `reach` forgets nothing."""
        shape, offsets = split
        at = [(term.symbol, term.plus) if isinstance(term, Term) else (0, term) for term in offsets]
        return zone_at(shape, at, rows, reach)


def zone_at(shape: Shape, at: Sequence[tuple[int, int]], rows: Matrix, reach: Reach | None) -> Zone:
    """The zone of a shape with `x + d` at each open place, over a matrix; None forgets nothing."""
    size, places = len(rows), len(at) + 1
    try:
        work = array("q", chain(*rows, *[(symbol, 0) for symbol in range(size)]))
        step = array("q", (1, places, 0, 0, *chain(*at)))
    except OverflowError:
        raise _too_large() from None
    scratch, out = _empty(scratch_words(places)), _empty(most_words(places))
    length = compiled().least_image(
        _address(work), 0, size, size * size, _address(step), *limits_of(reach), _address(scratch),
        _address(out),
    )  # fmt: skip
    return _zone_of(shape, out, length, hash(shape))


def joined(a: Zone, b: Zone) -> Zone:
    """The least zone that contains two zones of one shape; `a` itself if it contains the other."""
    places = a.size + 1
    scratch, out = _empty(scratch_words(places)), _empty(most_words(places))
    length = compiled().join(a.words, b.words, _address(scratch), _address(out))
    return _zone_of(a.shape, out, length, a.mark) if length else a


def cut(zone: Zone, i: int, j: int, bound: int) -> Zone:
    """The part of a zone with `y_i - y_j <= bound`, given its classes; it must not be empty."""
    places = zone.size + 1
    symbols, scratch, out = _empty(places), _empty(scratch_words(places)), _empty(most_words(places))
    length = REFUSED
    if abs(bound) <= CAP:
        length = compiled().cut(zone.words, i, j, bound, _address(scratch), _address(symbols), _address(out))
    return _zone_of(zone.shape, out, length, zone.mark)


def _zone_of(shape: Shape, words: array[int], length: int, mark: int) -> Zone:
    if length == REFUSED:
        raise _too_large()
    return Zone(shape, words[:length].tobytes(), mark)


def limits_of(reach: Reach | None) -> tuple[int, int]:
    """The reach as kernels take it: beyond which upper and lower bounds are forgotten."""
    return (FREE, FREE) if reach is None else (reach.upper, reach.lower)


def most_words(places: int) -> int:
    """The most words of a zone with this many places, the number 0 included."""
    return places * places + 2 * places + HEAD


def scratch_words(places: int) -> int:
    """The words that kernels need as working memory: a matrix, some rows, and some words."""
    return places * places + 6 * places + 64


def _empty(words: int) -> array[int]:
    return array("q", bytes(8 * words))


def _address(words: array[int]) -> int:
    return words.buffer_info()[0]


def _too_large() -> NotSymbolic:
    return NotSymbolic(f"a difference of offsets is beyond 2^{CAP.bit_length() - 1}")


def _offset(value: Any, found: list[Any]) -> int:
    assert not isinstance(value, Linear), "steps end in terms (`meaning.moves.settling`)"
    found.append(value)
    return OPEN


def _known(value: Any, _: list[Any]) -> Any:
    return value


# If arithmetic decided this, a difference of offsets could be stored where the type is a plain range, and a
# control part would contain an open number.
def _number(value: Any, _: list[Any]) -> Any:
    if isinstance(value, OpenNumber):
        raise NotSymbolic("an open number is stored in a place of bounded type")
    return value


def _splitter(kind: Type) -> Split:
    match kind:
        case types.Int():
            return _offset if kind.horizon else _number
        case types.Union():
            records = [_splitter(record) for _, record in kind.variants]
            return lambda value, found: (value[0], records[value[0]](value[1], found))
        # Behind unions, which are split in any case; without numbers, allowed or not, no part can be open.
        case _ if not any(isinstance(part, types.Int | types.Union) for part in components(kind)):
            return _known
        case types.Option() | types.Set() | types.Seq() | types.Bag() | types.Map():
            each = _splitter(kind.value if isinstance(kind, types.Map) else kind.item)
            return lambda value, found: tuple([each(item, found) for item in value])
        case types.Record():
            parts = [_splitter(part) for _, part in kind.fields]
            return lambda value, found: tuple([p(item, found) for p, item in zip(parts, value, strict=True)])
    return _known


def _joiner(kind: Type) -> Join:
    if not has_horizon(kind):
        return lambda shape, left: shape
    match kind:
        case types.Int():
            return lambda shape, left: next(left)
        case types.Option() | types.Set() | types.Seq() | types.Bag() | types.Map():
            item = _joiner(kind.value if isinstance(kind, types.Map) else kind.item)
            return lambda shape, left: tuple([item(part, left) for part in shape])
        case types.Record():
            parts = [_joiner(part) for _, part in kind.fields]
            return lambda shape, left: tuple([p(part, left) for p, part in zip(parts, shape, strict=True)])
        case types.Union():
            records = [_joiner(record) for _, record in kind.variants]
            return lambda shape, left: (shape[0], records[shape[0]](shape[1], left))
    return lambda shape, left: shape
