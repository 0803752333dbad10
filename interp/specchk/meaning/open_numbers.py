"""Open numbers: operands, in the semantics of specs, whose values are not known.

A `Term` is `x + c` for a symbol `x` of a path and a known `c`; symbol 0 is the number 0.  Other sums,
multiples, differences and quotients are `Linear`.  They are computed like ints, and each comparison is
a question to the path (`paths`).
"""

from __future__ import annotations

from operator import index
from typing import Any

from specchk.meaning.linear import Form, added, divided, scaled, symbol
from specchk.meaning.paths import ForkPath, NotSymbolic


def number(path: ForkPath, form: Form) -> Any:
    """The number of a form, in its simplest kind."""
    match form[0]:
        case ():
            return form[1]
        case ((int(x), 1),):
            return Term(path, x, form[1])
    return Linear(path, form)


class OpenNumber:
    """A number that is not known: the base of all kinds."""

    __slots__ = ("path",)

    path: ForkPath

    @property
    def form(self) -> Form:
        """The number as a linear form of the path's symbols."""
        raise NotImplementedError

    def __hash__(self) -> int:
        return 0  # equality is a question, so all open numbers share a bucket

    def __add__(self, other: Any) -> Any:
        return number(self.path, added(self.form, _form(other)))

    def __radd__(self, other: Any) -> Any:
        return self + other

    def __sub__(self, other: Any) -> Any:
        return number(self.path, added(self.form, _form(other), -1))

    def __rsub__(self, other: Any) -> Any:
        return number(self.path, added(_form(other), self.form, -1))

    def __neg__(self) -> Any:
        return number(self.path, scaled(self.form, -1))

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, OpenNumber):
            raise NotSymbolic("two open numbers are multiplied")
        return number(self.path, scaled(self.form, index(other)))

    def __rmul__(self, other: Any) -> Any:
        return self * other

    def __floordiv__(self, other: Any) -> Any:
        if isinstance(other, OpenNumber):
            raise NotSymbolic("a number is divided by an open one")
        by = index(other)
        # Rounded down for either sign, as the reference divides.
        return number(self.path, divided(self.form, by) if by > 0 else divided(scaled(self.form, -1), -by))

    def __mod__(self, other: Any) -> Any:
        return self - self // other * other

    def __rfloordiv__(self, other: Any) -> Any:
        raise NotSymbolic("a number is divided by an open one")

    __rmod__ = __rfloordiv__

    def __lt__(self, other: Any) -> bool:
        form = added(self.form, _form(other), -1)
        return self.path.at_most_zero((form[0], form[1] + 1))

    def __le__(self, other: Any) -> bool:
        return self.path.at_most_zero(added(self.form, _form(other), -1))

    def __gt__(self, other: Any) -> bool:
        return not self <= other

    def __ge__(self, other: Any) -> bool:
        return not self < other

    def __eq__(self, other: object) -> bool:
        return self.path.is_zero(added(self.form, _form(other), -1))

    def _no_number(self, *_: object) -> Any:
        raise NotSymbolic("an open number is used other than by computing and comparing")

    __index__ = __bool__ = __rshift__ = _no_number


class Linear(OpenNumber):
    """A number other than a symbol plus a known number: a difference, a sum, a multiple, a quotient."""

    __slots__ = ("_form",)

    def __init__(self, path: ForkPath, form: Form) -> None:
        self.path = path
        self._form = form

    @property
    def form(self) -> Form:
        """The number as a linear form."""
        return self._form

    def as_term(self) -> Term:
        """The same number as a term, of a symbol defined as this number."""
        terms, plus = self._form
        x, more = self.path.defined(terms)
        return Term(self.path, x, plus + more)


class Term(OpenNumber):
    """The number `x + plus` for the symbol `x` of a path."""

    __slots__ = ("plus", "symbol")

    def __init__(self, path: ForkPath, symbol: int, plus: int = 0) -> None:
        self.path = path
        self.symbol = symbol
        self.plus = plus

    def __repr__(self) -> str:
        return f"x{self.symbol}{f' + {self.plus}' if self.plus else ''}"

    __hash__ = OpenNumber.__hash__

    @property
    def form(self) -> Form:
        """The number as a linear form."""
        return symbol(self.symbol, self.plus)

    # What terms do most, without a form: comparing and advancing.
    def __add__(self, other: Any) -> Any:
        if isinstance(other, OpenNumber):
            return OpenNumber.__add__(self, other)
        return Term(self.path, self.symbol, self.plus + index(other))

    __radd__ = __add__

    def __lt__(self, other: Any) -> bool:
        if isinstance(other, Term):
            return self.path.at_most(self.symbol, other.symbol, other.plus - self.plus - 1)
        if isinstance(other, OpenNumber):
            return OpenNumber.__lt__(self, other)
        return self.path.at_most(self.symbol, 0, index(other) - self.plus - 1)

    def __le__(self, other: Any) -> bool:
        if isinstance(other, Term):
            return self.path.at_most(self.symbol, other.symbol, other.plus - self.plus)
        if isinstance(other, OpenNumber):
            return OpenNumber.__le__(self, other)
        return self.path.at_most(self.symbol, 0, index(other) - self.plus)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Term):
            return self.path.equal(self.symbol, other.symbol, other.plus - self.plus)
        if isinstance(other, OpenNumber):
            return OpenNumber.__eq__(self, other)
        return self.path.equal(self.symbol, 0, index(other) - self.plus)  # type: ignore[arg-type]


def _form(other: Any) -> Form:
    return other.form if isinstance(other, OpenNumber) else ((), index(other))
