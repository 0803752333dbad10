"""Incidental fields count in no comparison, and in nothing that names of kept files are made of."""

from __future__ import annotations

import pickle
from typing import ClassVar

import pytest
from msgspec.structs import replace

from specchk.identity import Identified, compared


class Named(Identified, frozen=True):
    text: str
    span: int


class Counted(Named, frozen=True):
    incidental: ClassVar = frozenset({"span", "seen"})
    number: int = 0
    seen: int = 0


class Bare(Identified, frozen=True):
    span: int


SAME = [
    (Named("a", 1), Named("a", 2)),
    (Counted("a", 1, 5, 7), Counted("a", 2, 5, 8)),
    (Bare(1), Bare(2)),
    (Named(("a", Bare(1)), 1), Named(("a", Bare(2)), 1)),  # type: ignore[arg-type]
]
OTHER = [
    (Named("a", 1), Named("b", 1)),
    (Counted("a", 1, 5), Counted("a", 1, 6)),
    (Named("a", 1), Counted("a", 1)),
    (Counted("a", 1), Named("a", 1)),
    (Bare(1), 1),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_values_with_other_incidental_fields_are_the_same(one: Identified, other: Identified) -> None:
    """By `==`, by `!=`, in sets, and as text."""
    assert one == other
    assert not one != other  # noqa: SIM202 - `!=` is what is tested
    assert len({one, other}) == 1
    assert repr(one) == repr(other)


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_other_values_differ(one: Identified, other: object) -> None:
    """Another field, or another class, though its fields are the same."""
    assert one != other
    assert not one == other  # noqa: SIM201 - `==` is what is tested
    assert repr(one) != repr(other)


def test_the_text_has_the_compared_fields_in_their_order() -> None:
    """As that of a struct, without the others."""
    assert repr(Counted("a", 1, 5, 7)) == "Counted(text='a', number=5)"
    assert repr(Bare(1)) == "Bare()"
    assert compared(Counted) == ("text", "number")


def test_copies_keep_the_incidental_fields() -> None:
    """Changed copies, and copies in another process."""
    one = Counted("a", 1, 5, 7)
    assert replace(one, number=6).seen == 7
    copy = pickle.loads(pickle.dumps(one))
    assert (copy, copy.span, copy.seen) == (one, 1, 7)
