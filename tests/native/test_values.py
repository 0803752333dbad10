"""Operators as compiled code, each by itself, so that a broken emitter is named by its operator."""

from __future__ import annotations

from itertools import chain
from random import Random

import pytest

from laws.operators import SIGNATURES, SPAN, cases
from native import wide
from native.emitted import compiled, is_supported, miscompiled, misjudged
from specchk.ir.nodes import Apply, Const, Narrow, Var
from specchk.ir.ops import Op
from specchk.ir.types import Bag, Bool, Int, Map, Option, Record, Set, Type
from specchk.meaning import values
from specchk.meaning.values import Value, universe


@pytest.mark.parametrize("op", Op, ids=lambda op: op.name)
def test_the_code_of_an_operator_computes_its_meaning(op: Op) -> None:
    """Read from a state, stored in a wider place, and folded: the value of the reference, or none."""
    assert not miscompiled(op)


@pytest.mark.parametrize("op", wide.WIDE, ids=lambda op: op.name)
def test_an_operator_takes_values_of_several_words(op: Op) -> None:
    """Whichever of its arguments are known beforehand: constants, too, may be longer than a word."""
    assert not wide.miscompiled(op)


def test_operators_that_are_not_tried_on_several_words_have_none() -> None:
    """They concern numbers and truth values, or list all subsets or maps."""
    left_out = [(op, kind) for op in set(Op) - set(wide.WIDE) for kinds in SIGNATURES[op] for kind in kinds]
    assert all(isinstance(kind, Int | Bool) or op in (Op.SUBSETS, Op.MAPS) for op, kind in left_out)


@pytest.mark.parametrize("op", Op, ids=lambda op: op.name)
def test_an_operator_loops_as_its_card_says(op: Op) -> None:
    """Straight code may be computed needlessly; code that visits items one by one may not."""
    assert not misjudged(op)


def test_only_sets_that_are_too_large_are_not_compiled() -> None:
    """The types left out above are left to the reference engine."""
    left_out = {op for op in Op for expr, kinds in cases(op) if not is_supported(expr, kinds)}
    assert left_out == {Op.RANGE, Op.SUBSETS, Op.MAPS}
    assert all(any(is_supported(expr, kinds) for expr, kinds in cases(op)) for op in left_out)


BAGS = [Bag(Int(0, 2), 3), Bag(Bool(), 1), Bag(Option(Int(4, 5)), 2), Bag(Set(Bool()), 2), Bag(Int(0, -1), 2)]


@pytest.mark.parametrize("kind", BAGS)
def test_a_set_of_bags_has_the_bags_that_were_added(kind: Bag) -> None:
    """Each bag is at its position in the order of all of them, from which it is listed again."""
    bags = sorted(universe(kind))
    other = Map(kind, Int(0, len(bags)))
    places = Const(other, SPAN, tuple(range(len(bags))))
    place = Apply(Int(0, len(bags)), SPAN, Op.MAP_GET, (places, Var(kind, SPAN, 0, primed=False)))
    (position,) = compiled([place], [kind])
    assert [position((bag,)) for bag in bags] == list(range(len(bags)))


SMALL, WIDE = Int(0, 2), Int(1, 30)
ITEMS = [
    (Record((("a", SMALL), ("b", SMALL))), Record((("a", SMALL), ("b", Int(0, 4))))),  # items move apart
    (Record((("a", SMALL), ("b", Int(0, 4)))), Record((("a", Int(0, 4)), ("b", SMALL)))),  # and together
    (
        Record((("a", SMALL), ("b", WIDE))),
        Record((("a", Int(0, 5)), ("b", WIDE))),
    ),  # to numbers of more words
    (Record((("a", Int(0, 5)), ("b", WIDE))), Record((("a", SMALL), ("b", WIDE)))),  # and of fewer
    (
        Record((("a", Int(-1, 5)), ("b", WIDE))),
        Record((("a", Int(-2, 4)), ("b", Int(0, 31)))),
    ),  # across words
    (Record((("a", Int(0, 5)), ("b", WIDE))), Record((("a", Int(4, 5)), ("b", WIDE)))),  # from the last word
    (Option(SMALL), Option(Int(-1, 3))),
]


@pytest.mark.parametrize(("given", "wanted"), ITEMS)
def test_a_set_has_the_same_items_in_another_type(given: Type, wanted: Type) -> None:
    """Wherever their bits are: one by one, all, and at random; one that does not fit is not a value."""
    items, fitting = sorted(universe(given)), set(universe(wanted))
    small, large = Set(given), Set(wanted)
    (convert,) = compiled([Narrow(large, SPAN, Var(small, SPAN, 0, primed=False))], [small])
    random = Random(7)
    sets = [(item,) for item in items] + [tuple(items), ()]
    sets += [tuple(sorted(random.sample(items, random.randint(0, len(items))))) for _ in range(50)]
    for value in sets:
        assert convert((value,)) == (value if set(value) <= fitting else None)


@pytest.mark.parametrize("size", [2, 24, 64])
def test_a_constant_set_has_its_rank_without_a_list_of_all_sets(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bag whose items are sets takes one that is known beforehand, for any number of sets."""

    def few(items: list[Value]) -> chain[tuple[Value, ...]]:
        assert len(items) <= 8, "more sets than memory has room for"
        return subsets(items)

    subsets = values._subsets
    monkeypatch.setattr(values, "_subsets", few)
    item = Set(Int(0, size - 1))
    kind, span = Bag(item, 3), SPAN
    known = Const(item, span, (0, size - 1))
    added = Apply(kind, span, Op.BAG_ADD, (Var(kind, span, 0, primed=False), known))
    (code,) = compiled([added], [kind])
    for before in ([], [()], [(0,)], [(size - 1,)], [(), (0, 1)]):
        assert code((tuple(before),)) == tuple(sorted([*before, known.value]))
