"""Frozen classes: what the standard library makes of the same fields."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from typing import Any

import pytest

from specchk.frozen import frozen
from specchk.ir.types import Int

STANDARD = dataclass(frozen=True, slots=True)


def classes(make: Callable[[type], Any]) -> tuple[Any, Any, Any]:
    """A base, a class with every kind of field, and one without any: by the one way or by the other."""

    @make
    class Base:
        place: int = field(compare=False, repr=False)

    @make
    class Derived(Base):
        text: str
        number: int = 3
        items: list[int] = field(default_factory=list)
        shown: int = field(default=0, repr=False)
        noted: int = field(default=0, compare=False)

    @make
    class Empty:
        pass

    return Base, Derived, Empty


OURS, THEIRS = classes(frozen), classes(STANDARD)
CALLS: tuple[tuple[tuple[Any, ...], dict[str, Any]], ...] = (
    ((1, "a"), {}),
    ((2, "a"), {}),
    ((1, "b"), {}),
    ((1, "a", 4), {}),
    ((1, "a"), {"noted": 7}),
    ((1, "a"), {"shown": 7}),
    ((1,), {"items": [1], "text": "c"}),
)


def made(kinds: tuple[Any, Any, Any]) -> list[Any]:
    """Instances of the three classes; those of both ways in the same order."""
    base, derived, empty = kinds
    return [base(1), base(2), empty(), empty(), *(derived(*args, **more) for args, more in CALLS)]


def test_classes_have_the_same_fields_slots_and_patterns() -> None:
    """Of each class, in order, inherited ones first; slots are its own alone."""
    for ours, theirs in zip(OURS, THEIRS, strict=True):
        assert [member.name for member in fields(ours)] == [member.name for member in fields(theirs)]
        assert ours.__slots__ == theirs.__slots__
        assert ours.__match_args__ == theirs.__match_args__
        assert not hasattr(made(OURS)[4], "__dict__")


def test_instances_are_equal_where_those_of_the_standard_library_are() -> None:
    """Fields that are not compared do not count, and the class does."""
    ours, theirs = made(OURS), made(THEIRS)
    for a, b in zip(ours, theirs, strict=True):
        assert repr(a) == repr(b)
        assert [a == other for other in ours] == [b == other for other in theirs]
        assert [a != other for other in ours] == [b != other for other in theirs]
        assert a != b
    assert hash(ours[0]) == hash(theirs[0])
    assert hash(ours[2]) == hash(theirs[2])
    assert hash(OURS[1](1, "a", items=())) == hash(THEIRS[1](2, "a", items=()))


def test_a_default_is_made_for_each_instance() -> None:
    """And what is made for one is not shared by another."""
    assert OURS[1](1, "a").items is not OURS[1](1, "a").items


@pytest.mark.parametrize("kinds", [OURS, THEIRS])
def test_wrong_arguments_are_refused(kinds: tuple[Any, Any, Any]) -> None:
    """Too few, too many, unknown and repeated ones."""
    for args, more in (((), {}), ((1, 2), {}), ((1,), {"other": 1}), ((1,), {"place": 1})):
        with pytest.raises(TypeError):
            kinds[0](*args, **more)


def test_an_instance_cannot_be_changed() -> None:
    """Neither its fields, nor by a new attribute."""
    instance = OURS[1](1, "a")
    for name in ("text", "place", "other"):
        with pytest.raises(FrozenInstanceError):
            setattr(instance, name, 2)
    with pytest.raises(FrozenInstanceError):
        del instance.text
    assert instance == OURS[1](1, "a")


def test_copies_are_equal_and_frozen() -> None:
    """By `replace`, by `copy` and by pickle."""
    instance = OURS[1](1, "a", items=[2])
    for other in (replace(instance), copy.copy(instance), copy.deepcopy(instance)):
        assert other == instance
        assert other.place == 1
    assert replace(instance, text="b").text == "b"
    packed = pickle.loads(pickle.dumps(Int(1, 2)))
    assert packed == Int(1, 2)
    with pytest.raises(FrozenInstanceError):
        packed.low = 0


def test_a_pattern_takes_the_fields_in_order() -> None:
    """As `case Derived(place, text)`."""
    _, derived, _ = OURS
    match derived(1, "a", 5):
        case derived(place, text, number):
            assert (place, text, number) == (1, "a", 5)
        case _:
            pytest.fail("the pattern does not match")


def test_what_a_class_defines_itself_is_kept() -> None:
    """A method of its own is not replaced, and a check of its arguments is called."""

    @frozen
    class Named:
        name: str

        def __post_init__(self) -> None:
            if not self.name:
                raise ValueError("no name")

        def __repr__(self) -> str:
            return f"<{self.name}>"

    assert repr(Named("a")) == "<a>"
    with pytest.raises(ValueError, match="no name"):
        Named("")
    assert list(inspect.signature(Named).parameters) == ["name"]
