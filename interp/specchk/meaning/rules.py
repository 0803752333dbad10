"""The page of rules: what operators mean, each a function of its arguments' values.

Those that Python has itself, such as `+`, are in `meaning.operators`, which calls the rules here for the
reference engine, and on open numbers for zones and hulls.  A rule is Python on the values of the core
(`meaning.values`).  Operators in terms of others, in `DERIVED`, may instead be read as expressions
(`meaning.reading`): so such an operator is added by its card, its rule and its word
(`tests/laws/test_added_operators.py` adds two).  The native engine and `--prove` have a rule of their own for
all others, and a shortcut where reading would be slower: `tests/laws/test_page.py` compares the shortcuts
with the rules.

| read | is |
|---|---|
| `x == y`, `x < y`, `x in y`, `x - y`, `not x`, `x[n]`, `x[n:]`, `()` | the operator of these types |
| `x if c else y` | the conditional |
| `all(c for x in a)`, `any(c for x in a)` | the quantifiers over a set |
| `sum(y for x in a)`, `min(y for x in a)`, `max(y for x in a)` | the same of numbers |
| `tuple([x for x in a if c])` | the items of a set for which a condition holds |
| `(*a, x)` | a sequence with one more item |
| `fail(reason) if c else y` | no value where the condition holds, only outside of `y` |

Where a rule does not fail it has a value: it asks before it uses an operator that is partial.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain, combinations, pairwise, product
from types import MappingProxyType
from typing import Any, NoReturn

from specchk.ir.ops import Op
from specchk.ir.types import MAX_LISTED_BITS, power

Rules = MappingProxyType[Op, Callable[..., Any]]


class NoValue(Exception):
    """A rule has no value, for a reason."""


def fail(reason: str) -> NoReturn:
    """Say that there is no value."""
    raise NoValue(reason)


def distinct(items: Iterable[Any]) -> tuple[Any, ...]:
    """A set's value: the distinct items, ascending.

    By order and equality alone: open numbers (`meaning.paths`) are equal where no hash can show it.
    """
    ascending = sorted(items)
    if len(ascending) < 2:
        return tuple(ascending)
    return (ascending[0], *[item for before, item in pairwise(ascending) if item != before])


DERIVED: Rules = MappingProxyType(
    {
        Op.NE: lambda a, b: not a == b,  # noqa: SIM201 - the rule of `!=` itself
        Op.NEG: lambda a: 0 - a,
        Op.MIN: lambda a, b: a if a <= b else b,  # noqa: FURB136
        Op.MAX: lambda a, b: a if b <= a else b,  # noqa: FURB136
        Op.GET_OR: lambda a, b: b if a == () else a[0],
        Op.SUBSET: lambda a, b: all(x in b for x in a),
        Op.INTERSECT: lambda a, b: tuple([x for x in a if x in b]),
        Op.DIFFERENCE: lambda a, b: tuple([x for x in a if x not in b]),
        Op.SET_MIN: lambda a: fail("`min` of an empty collection") if a == () else min(x for x in a),
        Op.SET_MAX: lambda a: fail("`max` of an empty collection") if a == () else max(x for x in a),
        Op.SET_SUM: lambda a: sum(x for x in a),
        Op.HEAD: lambda a: fail("`head` of an empty collection") if a == () else a[0],
        Op.LAST: lambda a: fail("`last` of an empty collection") if a == () else a[len(a) - 1],
        Op.TAIL: lambda a: fail("`tail` of an empty collection") if a == () else a[1:],
        Op.APPEND: lambda a, b: (*a, b),
        Op.DECREASED: lambda new, old: (
            fail(f"the measure of this recursion is below 0: {new}") if new < 0
            else fail(f"the measure of this recursion does not decrease: {old}, then {new}") if old <= new
            else new
        ),
    }
)  # fmt: skip
RULES: Rules = MappingProxyType(
    {
        **DERIVED,
        Op.DIV: lambda a, b: fail("division by zero") if b == 0 else a // b,
        Op.MOD: lambda a, b: fail("division by zero") if b == 0 else a % b,
        Op.UNION: lambda a, b: distinct((*a, *b)) if a and b else a or b,
        # A shift, not a comparison: on open numbers it raises `NotSymbolic`, where a comparison would fork.
        # For an empty range the difference is negative, and so is the result.
        Op.RANGE: lambda low, high: (
            tuple(range(low, high + 1)) if not high - low >> MAX_LISTED_BITS
            else () if high < low
            else fail(f"the set {low}..{high} is too large to list")
        ),
        Op.SUBSETS: lambda a: (
            fail(f"the subsets of {len(a)} items are too many to list") if len(a) > MAX_LISTED_BITS
            else tuple(sorted(chain.from_iterable(combinations(a, n) for n in range(len(a) + 1))))
        ),
        Op.MAPS: lambda a, b: (
            fail(f"the maps from {len(a)} keys to {len(b)} values are too many to list")
            if power(len(b), len(a)) > 1 << MAX_LISTED_BITS
            else tuple(product(*[[(key, value) for value in b] for key in a]))
        ),
        Op.SEQ_GET: lambda a, n: (
            a[n] if 0 <= n < len(a) else fail(f"index {n} of a sequence of length {len(a)}")
        ),
        Op.PREFIX: lambda a, n: (
            a[:n] if 0 <= n <= len(a) else fail(f"`prefix` of {n} from a sequence of length {len(a)}")
        ),
        Op.SUFFIX: lambda a, n: (
            a[n:] if 0 <= n <= len(a) else fail(f"`suffix` of {n} from a sequence of length {len(a)}")
        ),
        Op.SEQ_ITEMS: distinct, Op.BAG_ITEMS: distinct,
        Op.BAG_ADD: lambda a, x: tuple(sorted((*a, x))),
        Op.BAG_UNION: lambda a, b: tuple(sorted(a + b)),
        Op.BAG_COUNT: lambda a, x: a.count(x),
        Op.BAG_REMOVE: lambda a, x: (
            (*a[: a.index(x)], *a[a.index(x) + 1 :]) if x in a
            else fail("`remove` of an item that is not in the bag")
        ),
    }
)  # fmt: skip
