"""Paths: one run of code over open numbers, and what it has assumed about them.

A `Term` is `x + c` for a symbol `x` and a known `c`; symbol 0 is the number 0.  The meaning of specs
(`meaning.evaluate`, `meaning.step`) runs on terms as it does on ints.  Wherever it compares two, the path
answers: from what is known if that decides it, otherwise the run forks.  A fork is a run of the same
code once more: `outcomes` gives each run the answers of the one before it up to the last open
question, and the other answer there.

What is known is a difference-bound matrix: `rows[i][j]` is the least known bound of `x_i - x_j`.  It
is closed, so it decides exactly what follows from it, and its projection to some symbols is a part of
it (Dill 1989; Mine, "A New Numerical Abstract Domain Based on Difference-Bound Matrices", 2001).

Not here: states and which of them are covered (`zones`), searching (`search`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import index
from typing import Any, TypeVar

# No real bound comes near it.  Sums leave it out, for FREE plus something would look like a bound.
FREE = 1 << 60  # the bound of a difference without one
Rows = list[list[int]]
Matrix = Sequence[Sequence[int]]
START: Matrix = ((0,),)  # no symbols but the number 0
T = TypeVar("T")


class NotSymbolic(Exception):
    """An open number where only a known one will do; the search cannot continue."""


class ForkPath:
    """What one run has assumed; `known` is how many questions were answered without a fork."""

    __slots__ = ("_at", "_owned", "_script", "forks", "known", "pending", "rows")

    def __init__(self) -> None:
        self.rows = START
        self._owned = True  # whether `rows` may be changed, or are someone else's
        self._script: list[int] = []
        self._at = 0
        self.pending: list[list[int]] = []
        self.forks = 0
        self.known = 0

    def begin(self, rows: Matrix, script: list[int]) -> None:
        """Start a run from a matrix, with the answers to its first questions."""
        self.rows = rows
        self._owned = False
        self._script = script
        self._at = 0
        self.pending = []

    @property
    def assumed(self) -> bool:
        """Whether this run has assumed anything beyond what it began with."""
        return self._owned

    def choose(self, count: int) -> int:
        """One of `count` ways to continue; the others are runs of their own."""
        if count == 1:
            return 0
        at, script = self._at, self._script
        self._at = at + 1
        if at < len(script):
            return script[at]
        self.forks += count - 1
        self.pending += [[*script, other] for other in range(1, count)]
        script.append(0)
        return 0

    def at_most(self, i: int, j: int, bound: int) -> bool:
        """Whether `x_i - x_j <= bound`, from here on."""
        rows = self.rows
        if rows[i][j] <= bound:
            # What is known decides: closed, the matrix has the tightest bound of every difference.
            self.known += 1
            return True
        # x_i - x_j is at least 1 more than the bound: over whole numbers the negation of `<=`, exactly.
        if rows[j][i] < -bound:
            self.known += 1
            return False
        if self.choose(2) == 0:
            self._assume(i, j, bound)
            return True
        # The negation over whole numbers: x_i - x_j >= bound + 1.
        self._assume(j, i, -bound - 1)
        return False

    def equal(self, i: int, j: int, difference: int) -> bool:
        """Whether `x_i - x_j == difference`, from here on."""
        above, below = self.rows[i][j], self.rows[j][i]
        if above < difference or below < -difference:
            self.known += 1
            return False
        if above == difference and below == -difference:
            self.known += 1
            return True
        # Two questions, so three ways: below, above and equal.  The negation of an equality is no matrix.
        return self.at_most(i, j, difference) and self.at_most(j, i, -difference)

    def fresh(self) -> int:
        """A new symbol, of which only that it is no negative number is known."""
        rows = self._own()
        return _widen(rows)

    def _own(self) -> Rows:
        if not self._owned:
            # Copied at the first assumption: most runs assume nothing, and share the matrix that they began
            # with.
            self.rows = [list(row) for row in self.rows]
            self._owned = True
        return self.rows  # type: ignore[return-value]

    def _assume(self, i: int, j: int, bound: int) -> None:
        """Add a constraint that is consistent with what is known, and all that follows."""
        rows = self._own()
        _close(rows, i, j, bound)


def assuming(rows: Matrix, i: int, j: int, bound: int) -> Rows:
    """A closed matrix with one more constraint, which is consistent with it, and all that follows."""
    more = [list(row) for row in rows]
    _close(more, i, j, bound)
    return more


def widened(rows: Matrix) -> Rows:
    """A closed matrix with a new symbol, of which only that it is no negative number is known."""
    more = [list(row) for row in rows]
    _widen(more)
    return more


def outside(parts: Iterable[Matrix], taken: Matrix) -> list[Matrix]:
    """What parts of a matrix, which do not meet, have outside of another one with the same first symbols.

    Its further symbols are dropped first, which is exact as it is closed: it has what holds for some value
    of theirs.
    """
    return [rest for rows in parts for rest in _without(rows, taken)]


def _without(rows: Matrix, taken: Matrix) -> Iterator[Matrix]:
    size = min(len(rows), len(taken))
    for i in range(size):
        # Subtraction, constraint by constraint: what breaks the first, what keeps it and breaks the second,
        # and so on.  The parts do not meet, and each is a matrix.
        for j in range(size):
            bound = taken[i][j]
            if rows[i][j] <= bound:
                continue
            if rows[j][i] < -bound:  # x_i - x_j > bound throughout
                yield rows
                return
            yield assuming(rows, j, i, -bound - 1)
            rows = assuming(rows, i, j, bound)


def _close(rows: Rows, i: int, j: int, bound: int) -> None:
    # One new constraint in a closed matrix needs no Floyd and Warshall: every path that it shortens goes
    # through it once.  Row j is not changed by it, or the constraint would be inconsistent, so it can be
    # read beforehand.
    onward = [(b, far) for b, far in enumerate(rows[j]) if far < FREE]
    for row in rows:
        near = row[i]
        if near < FREE:
            near += bound
            for b, far in onward:
                if near + far < row[b]:
                    row[b] = near + far


def _widen(rows: Rows) -> int:
    new = len(rows)
    for row in rows:
        row.append(FREE)
    rows.append([FREE] * (new + 1))
    rows[new][new] = 0
    for row in rows[:new]:  # 0 - new <= 0, and what follows
        row[new] = row[0]
    return new


def outcomes(path: ForkPath, rows: Matrix, run: Callable[[], T]) -> Iterator[T]:
    """The result of each run; when one is handed out, `path.rows` is what it has assumed."""
    # The code is run from its beginning for each way, since a Python function cannot be forked in the middle;
    # so it must depend on nothing but its answers.
    scripts: list[list[int]] = [[]]
    while scripts:
        path.begin(rows, scripts.pop())
        result = run()
        # A stack, so that few runs wait; reversed, so that the answers to the first open question come in
        # their order.
        scripts += reversed(path.pending)
        yield result


class Term:
    """The number `x + plus` for the symbol `x` of a path."""

    __slots__ = ("path", "plus", "symbol")

    def __init__(self, path: ForkPath, symbol: int, plus: int = 0) -> None:
        self.path = path
        self.symbol = symbol
        self.plus = plus

    def __repr__(self) -> str:
        return f"x{self.symbol}{f' + {self.plus}' if self.plus else ''}"

    def __hash__(self) -> int:
        return 0  # equality is a question, so all terms share a bucket

    def __add__(self, other: Any) -> Term:
        if isinstance(other, Term):
            raise NotSymbolic("the sum of two open numbers is not a difference")
        return Term(self.path, self.symbol, self.plus + index(other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if not isinstance(other, Term):
            return Term(self.path, self.symbol, self.plus - index(other))
        if self.symbol == other.symbol:
            return self.plus - other.plus
        # A number of its own kind: it can be compared with a known number, which is a constraint of the
        # matrix, and nothing else.
        return Difference(self.path, self.symbol, other.symbol, self.plus - other.plus)

    def _no_number(self, *_: object) -> Any:
        raise NotSymbolic("an open number is used other than by comparing and advancing it")

    def __rsub__(self, other: Any) -> Difference:
        return Difference(self.path, 0, self.symbol, index(other) - self.plus)

    __neg__ = __mul__ = __rmul__ = __floordiv__ = __mod__ = __rfloordiv__ = _no_number
    __rmod__ = __index__ = __bool__ = __rshift__ = _no_number

    def __lt__(self, other: Any) -> bool:
        if isinstance(other, Term):
            return self.path.at_most(self.symbol, other.symbol, other.plus - self.plus - 1)
        return self.path.at_most(self.symbol, 0, index(other) - self.plus - 1)

    def __le__(self, other: Any) -> bool:
        if isinstance(other, Term):
            return self.path.at_most(self.symbol, other.symbol, other.plus - self.plus)
        return self.path.at_most(self.symbol, 0, index(other) - self.plus)

    def __gt__(self, other: Any) -> bool:
        return not self <= other

    def __ge__(self, other: Any) -> bool:
        return not self < other

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Term):
            return self.path.equal(self.symbol, other.symbol, other.plus - self.plus)
        return self.path.equal(self.symbol, 0, index(other) - self.plus)  # type: ignore[arg-type]


class Difference:
    """The number `x_i - x_j + plus`: it can be compared with known numbers."""

    __slots__ = ("i", "j", "path", "plus")

    def __init__(self, path: ForkPath, i: int, j: int, plus: int) -> None:
        self.path = path
        self.i = i
        self.j = j
        self.plus = plus

    def __hash__(self) -> int:
        return 0

    def __add__(self, other: Any) -> Difference:
        return Difference(self.path, self.i, self.j, self.plus + index(other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Difference:
        return Difference(self.path, self.i, self.j, self.plus - index(other))

    def __rsub__(self, other: Any) -> Difference:
        return Difference(self.path, self.j, self.i, index(other) - self.plus)

    def __neg__(self) -> Difference:
        return Difference(self.path, self.j, self.i, -self.plus)

    def __lt__(self, other: Any) -> bool:
        return self.path.at_most(self.i, self.j, index(other) - self.plus - 1)

    def __le__(self, other: Any) -> bool:
        return self.path.at_most(self.i, self.j, index(other) - self.plus)

    def __gt__(self, other: Any) -> bool:
        return not self <= other

    def __ge__(self, other: Any) -> bool:
        return not self < other

    def __eq__(self, other: object) -> bool:
        return self.path.equal(self.i, self.j, index(other) - self.plus)  # type: ignore[arg-type]

    def _no_number(self, *_: object) -> Any:
        raise NotSymbolic("the difference of two offsets is compared with an offset, stored or multiplied")

    __mul__ = __rmul__ = __floordiv__ = __mod__ = __index__ = __bool__ = __rshift__ = _no_number
