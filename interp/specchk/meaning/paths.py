"""Paths: one run of code over open numbers, with its assumptions about them.

The meaning of specs (`meaning.evaluate`, `meaning.step`) runs on open numbers (`open_numbers`) as it does
on ints.  Wherever it compares two, the path answers: from the known constraints if they decide it, otherwise
the run forks.  A fork is another run of the same code: `outcomes` gives each run the answers of the
previous one up to the last open question, and the opposite answer there.

The known constraints are a difference-bound matrix: `rows[i][j]` is the least known bound of `x_i - x_j`.  It
is closed, so it decides exactly the consequences of the constraints, and its projection to some symbols is
a part of it (Dill 1989; Mine, "A New Numerical Abstract Domain Based on Difference-Bound Matrices", 2001).

A term that is not a difference, such as a sum of two symbols or twice a symbol, has its own symbol, and the
matrix its definition (`Defined`).  Then the matrix no longer decides all consequences: a path with a solver
lets it decide what the matrix leaves open, and a path without one refuses such numbers.

Not here: states and which of them are covered (`zones`), searching (`search`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

from specchk.meaning.linear import Form, Terms, primitive

# No real bound comes near it.  Sums leave it out, for FREE plus something would look like a bound.
FREE = 1 << 60  # the bound of a difference without one
Rows = list[list[int]]
Matrix = Sequence[Sequence[int]]
START: Matrix = ((0,),)  # no symbols but the number 0
T = TypeVar("T")


class NotSymbolic(Exception):
    """An open number where a known one is required; the search cannot continue."""


class Defined(list[list[int]]):
    """A matrix with defined symbols: `terms` are `x + plus` for each (terms, x, plus)."""

    definitions: tuple[tuple[Terms, int, int], ...]

    def __init__(self, rows: Iterable[list[int]], definitions: tuple[tuple[Terms, int, int], ...]) -> None:
        super().__init__(rows)
        self.definitions = definitions


class Solver(Protocol):
    """Decides comparisons that a matrix with definitions leaves open."""

    def is_possible(self, rows: Matrix) -> bool:
        """Whether some whole numbers satisfy a matrix and its definitions."""

    def decided(self, rows: Matrix, i: int, j: int, bound: int) -> bool | None:
        """Whether `x_i - x_j <= bound` follows from both (True), or its negation does (False)."""


class ForkPath:
    """The assumptions of one run; `forks` is the number of branches left to other runs."""

    __slots__ = ("_at", "_owned", "_script", "forks", "pending", "rows", "solver")

    def __init__(self, solver: Solver | None = None) -> None:
        self.solver = solver
        self.rows = START
        self._owned = True  # whether `rows` may be changed, or are someone else's
        self._script: list[int] = []
        self._at = 0
        self.pending: list[list[int]] = []
        self.forks = 0

    def begin(self, rows: Matrix, script: list[int]) -> None:
        """Start a run from a matrix, with the answers to its first questions."""
        self.rows = rows
        self._owned = False
        self._script = script
        self._at = 0
        self.pending = []

    def choose(self, count: int) -> int:
        """Choose one of `count` ways to continue; the others are separate runs."""
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
        """Whether `x_i - x_j <= bound`; assumed from here on."""
        rows = self.rows
        if rows[i][j] <= bound:
            # The known constraints decide: closed, the matrix has the tightest bound of every difference.
            return True
        # x_i - x_j is at least 1 more than the bound: over whole numbers the negation of `<=`, exactly.
        if rows[j][i] < -bound:
            return False
        if type(rows) is Defined and self.solver is not None:
            follows = self.solver.decided(rows, i, j, bound)
            if follows is not None:
                return follows
        if self.choose(2) == 0:
            self._assume(i, j, bound)
            return True
        # The negation over whole numbers: x_i - x_j >= bound + 1.
        self._assume(j, i, -bound - 1)
        return False

    def equal(self, i: int, j: int, difference: int) -> bool:
        """Whether `x_i - x_j == difference`; assumed from here on."""
        above, below = self.rows[i][j], self.rows[j][i]
        if above < difference or below < -difference:
            return False
        if above == difference and below == -difference:
            return True
        # Two questions, so three ways: below, above and equal.  The negation of an equality is no matrix.
        return self.at_most(i, j, difference) and self.at_most(j, i, -difference)

    def at_most_zero(self, form: Form) -> bool:
        """Whether a form is at most 0; assumed from here on."""
        i, j, bound = difference(form, self.defined)
        return bound >= 0 if i == j else self.at_most(i, j, bound)

    def is_zero(self, form: Form) -> bool:
        """Whether a form is 0; assumed from here on."""
        if form[0] and form[1] % primitive(form)[1]:
            return False
        i, j, bound = difference(form, self.defined)
        return bound == 0 if i == j else self.equal(i, j, bound)

    def defined(self, terms: Terms) -> tuple[int, int]:
        """The symbol for a number with these terms, and the number to add to it."""
        if self.solver is None:
            raise NotSymbolic("a sum or a quotient of open numbers is not a difference of two")
        self.rows, number, plus = defining(self._own(), terms)
        return number, plus

    def fresh(self) -> int:
        """A new symbol, known only to be non-negative."""
        return _widen(self._own())

    def _own(self) -> Rows:
        if not self._owned:
            # Copied at the first assumption: most runs assume nothing, and share the matrix that they began
            # with.
            self.rows = _copy(self.rows)
            self._owned = True
        return self.rows  # type: ignore[return-value]

    def _assume(self, i: int, j: int, bound: int) -> None:
        """Add a constraint that is consistent with the known ones, and all consequences."""
        _close(self._own(), i, j, bound)


def difference(form: Form, defined: Callable[[Terms], tuple[int, int]]) -> tuple[int, int, int]:
    """Symbols i and j and a bound such that a form is at most 0 exactly if `x_i - x_j <= bound`.

    `defined` gives terms that are not a difference a symbol, and a number to add to it.
    """
    if not form[0]:
        return 0, 0, -form[1]
    terms, factor, plus = primitive(form)
    bound = -plus // abs(factor)  # over whole numbers: 2x <= 5 is x <= 2
    pair = pair_of(terms)
    if pair is None:
        number, more = defined(terms)
        pair, bound = (number, 0), bound - more if factor > 0 else bound + more
    return (*pair, bound) if factor > 0 else (*pair[::-1], bound)


def assuming(rows: Matrix, i: int, j: int, bound: int) -> Rows:
    """A closed matrix with one more constraint, consistent with it, and all consequences."""
    more = _copy(rows)
    _close(more, i, j, bound)
    return more


def widened(rows: Matrix) -> Rows:
    """A closed matrix with a new symbol, known only to be non-negative."""
    more = _copy(rows)
    _widen(more)
    return more


def defining(rows: Matrix, terms: Terms) -> tuple[Rows, int, int]:
    """A closed matrix with a symbol for a number with these terms; the symbol, and what to add to it."""
    known = definitions(rows)
    for other, number, plus in known:
        if other == terms:
            return rows, number, plus  # type: ignore[return-value]
    new = len(rows)
    more = Defined([[*row, FREE] for row in rows], (*known, (terms, new, 0)))
    more.append([FREE] * new + [0])
    least, most = ends_of(rows, terms)
    # Its interval is in the matrix from here on; what else follows from the definition is the solver's.
    if most is not None:
        _close(more, new, 0, most)
    if least is not None:
        _close(more, 0, new, -least)
    return more, new, 0


def placed(rows: Matrix, form: Form) -> tuple[Matrix, int, int]:
    """A matrix with a symbol x, and a number, whose sum is a form; an existing symbol, if possible."""
    terms, plus = form
    match terms:
        case ():
            return rows, 0, plus
        case ((int(x), 1),):
            return rows, x, plus
    more, number, shift = defining(rows, terms)
    return more, number, plus + shift


def definitions(rows: Matrix) -> tuple[tuple[Terms, int, int], ...]:
    """The definitions of a matrix; empty if it has none."""
    return rows.definitions if type(rows) is Defined else ()


def pair_of(terms: Terms) -> tuple[int, int] | None:
    """The symbols (i, j) of terms `x_i - x_j`; 0 if there is only one symbol. None for other terms."""
    match terms:
        case ((int(i), 1),):
            return i, 0
        case ((int(i), 1), (int(j), -1)):
            return i, j
    return None


def ends_of(rows: Matrix, terms: Terms) -> tuple[int | None, int | None]:
    """The interval of a number with these terms; None if a closed matrix does not determine it."""
    negated = tuple([(part, -times) for part, times in terms])
    most, other = _most(rows, terms), _most(rows, negated)
    return (None if other is None else -other), most


def _most(rows: Matrix, terms: Terms) -> int | None:
    total = 0
    less = {part: -times for part, times in terms if isinstance(part, int) and times < 0}
    for part, times in terms:
        if not isinstance(part, int):
            inner, plus, divisor = part
            end = ends_of(rows, inner)[times > 0]
            if end is None:
                return None
            total += times * ((end + plus) // divisor)
            continue
        # In pairs first: a closed matrix bounds x - y at least as well as x and -y apart.
        for other in sorted(less, key=rows[part].__getitem__) if times > 0 else ():
            share = min(times, less[other]) if rows[part][other] < FREE else 0
            total += share * rows[part][other]
            times, less[other] = times - share, less[other] - share
        if times > 0:
            if rows[part][0] >= FREE:
                return None
            total += times * rows[part][0]
    for part, times in less.items():
        if times and rows[0][part] >= FREE:
            return None
        total += times * rows[0][part]
    return total


def _copy(rows: Matrix) -> Rows:
    more = [list(row) for row in rows]
    return Defined(more, rows.definitions) if type(rows) is Defined else more


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
    """The result of each run; when one is yielded, `path.rows` has its assumptions."""
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
