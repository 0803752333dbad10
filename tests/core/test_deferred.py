"""A class with deferred methods behaves like the same class of `dataclasses`."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import sys
import weakref
from collections.abc import Callable
from dataclasses import InitVar, field
from threading import Barrier, Thread
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from specchk import deferred

T = TypeVar("T")
Decorator = Callable[..., Any]
BOTH = {"deferred": deferred.dataclass, "eager": dataclasses.dataclass}


def family(dataclass: Decorator) -> dict[str, type]:
    """Classes of each kind used in the product, created by one of the two decorators."""

    @dataclass(frozen=True, slots=True)
    class Base:
        """A base."""

        kinds: ClassVar[int] = 3
        a: int
        b: str = "b"

        def twice(self) -> int:
            return 2 * self.a

    @dataclass(frozen=True, slots=True)
    class Derived(Base):
        b: str = "other"
        c: tuple[int, ...] = field(default=(), compare=False)

    class Plain(Derived):
        __slots__ = ()

    @dataclass(slots=True)
    class Mutable(Generic[T]):
        a: T
        items: list[int] = field(default_factory=list)
        count: int = field(init=False, default=0)
        made: str = field(init=False, repr=False)

        def __post_init__(self) -> None:
            self.made = f"of {self.a}"

    @dataclass(frozen=True, slots=True, order=True)
    class Ordered:
        a: int
        b: int = 0

    @dataclass(frozen=True, slots=True, eq=False)
    class Same:
        a: int

    @dataclass(frozen=True, slots=True)
    class Own:
        a: int

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own) and self.a % 2 == other.a % 2

    @dataclass(frozen=True, slots=True)
    class Hashed:
        a: list[int]

        def __hash__(self) -> int:
            return 7

    @dataclass(slots=True, weakref_slot=True)
    class Referred(Mutable[int]):
        c: int = 0

    @dataclass(frozen=True)
    class Dictionary:
        a: int

    made = (Base, Derived, Plain, Mutable, Ordered, Same, Own, Hashed, Referred, Dictionary)
    return {kind.__name__: kind for kind in made}


ARGUMENTS: dict[str, list[tuple[Any, ...]]] = {
    "Base": [(1,), (1, "b"), (2, "x")],
    "Derived": [(1,), (1, "b"), (1, "other", (2,))],
    "Plain": [(1,), (1, "b", (3,))],
    "Mutable": [(1,), (1, [2]), ("x",)],
    "Ordered": [(1,), (1, 2), (0, 5)],
    "Same": [(1,), (1,)],
    "Own": [(1,), (3,), (4,)],
    "Hashed": [([1],), ([2],)],
    "Referred": [(1,), (1, [2], 3)],
    "Dictionary": [(1,), (2,)],
}


def result(action: Callable[[], Any]) -> str:
    """The result or exception of an action, as text that is equal for both decorators."""
    try:
        value = action()
    except (AttributeError, TypeError, dataclasses.FrozenInstanceError) as error:
        return f"{type(error).__name__}: {error}"
    return repr(value)


def matched(value: Any, kind: type) -> object:
    match value:
        case kind(first, second):  # type: ignore[misc]
            return first, second
    return None


def answers(kind: type, arguments: list[tuple[Any, ...]], *, first: int) -> list[str]:
    """Each of these questions about instances, beginning with one of them: what is first used differs."""
    made = [kind(*given) for given in arguments] if first != 0 else []
    everything: list[Callable[[], Any]] = [
        lambda: [repr(item) for item in made],
        lambda: [[one == other for one in made] for other in made],
        lambda: [[one != other for one in made] for other in made],
        lambda: [hash(item) == hash(copy.copy(item)) for item in made],
        lambda: kind.__hash__ is None,
        lambda: [(f.name, f.default, f.init, f.compare) for f in dataclasses.fields(kind)],
        lambda: [dataclasses.replace(item, a=9) for item in made],
        lambda: setattr(made[0], "a", 5),
        lambda: delattr(made[-1], "a"),
        lambda: setattr(made[0], "unknown", 5),
        lambda: [[one < other for one in made] for other in made],
        lambda: sorted(made, key=lambda item: item.a),
        lambda: kind.__match_args__,  # type: ignore[attr-defined]
        lambda: [matched(item, kind) for item in made],
        lambda: kind(unknown=1),
        lambda: kind(),
        lambda: dataclasses.asdict(made[1]),
        lambda: dataclasses.is_dataclass(kind),
        lambda: [weakref.ref(item)() is item for item in made],
        lambda: kind.__dataclass_params__,  # type: ignore[attr-defined]
    ]
    made = made or [kind(*given) for given in arguments]
    return [result(action) for action in everything[first:] + everything[:first]]


@pytest.mark.parametrize("name", ARGUMENTS)
@pytest.mark.parametrize("first", range(20))
def test_a_class_does_the_same_whatever_is_used_first(name: str, first: int) -> None:
    """Instances, equality, hashes, order, texts, patterns, fields, and errors with their messages."""
    ours, theirs = (answers(family(made)[name], ARGUMENTS[name], first=first) for made in BOTH.values())
    assert ours == theirs


@deferred.dataclass(frozen=True, slots=True)
class Kept:
    """A frozen class that pickle finds by its name."""

    a: int
    b: tuple[int, ...] = ()


@deferred.dataclass(frozen=True, slots=True)
class KeptMore(Kept):
    """A class with one more field."""

    c: str = field(init=False, default="c")


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_frozen_instances_are_restored(protocol: int) -> None:
    """By pickle and by copy."""
    for value in (Kept(1, (2,)), KeptMore(3)):
        again = pickle.loads(pickle.dumps(value, protocol))
        assert again == value == copy.deepcopy(value)
        assert repr(again) == repr(value)


def test_an_instance_restored_before_anything_is_written_matches_by_position() -> None:
    """Pickle creates instances without `__init__`; a pattern is then the first use of the class."""
    made = family(deferred.dataclass)["Derived"]
    restored = made.__new__(made)
    restored.__setstate__([1, "x", (2,)])
    assert [type(vars(made)[name]).__name__ for name in ("__init__", "__match_args__")] == ["_Deferred"] * 2
    match restored:
        case made(a, b, c):  # type: ignore[misc]
            assert (a, b, c) == (1, "x", (2,))
        case _:
            pytest.fail("an instance that matches no pattern of its class")


def test_methods_are_written_when_first_used() -> None:
    """Creating a class calls no writer of the library; a derived class's first use writes its base's."""
    made = family(deferred.dataclass)
    names = ("__init__", "__repr__", "__eq__", "__hash__", "__setattr__", "__dataclass_fields__")
    assert {type(vars(made["Base"])[name]).__name__ for name in names} == {"_Deferred"}
    made["Derived"](1)
    for kind in ("Base", "Derived"):
        assert "_Deferred" not in {type(value).__name__ for value in vars(made[kind]).values()}
    assert type(vars(made["Ordered"])["__init__"]).__name__ == "_Deferred"


def test_threads_that_use_a_class_first_write_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sees complete methods, and the class keeps those of one writer."""
    written, eager = [], dataclasses.dataclass

    def counted(*args: Any, **options: Any) -> Any:
        written.append(options)
        return eager(*args, **options)

    monkeypatch.setattr(sys.modules["dataclasses"], "dataclass", counted)
    kind, barrier, found = family(deferred.dataclass)["Ordered"], Barrier(8), []
    written.clear()

    def use() -> None:
        barrier.wait()
        found.append(kind(1, 2) < kind(2, 1))

    threads = [Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 8
    assert sum("frozen" in options for options in written) == 1


def test_a_field_that_slots_cannot_hold_is_refused() -> None:
    """`InitVar` has no slot: the class reports it at its first use, and loses nothing silently."""

    @deferred.dataclass(slots=True)
    class Wrong:
        a: int
        b: InitVar[int] = 0

    with pytest.raises(TypeError, match="Wrong has fields other than the annotations"):
        Wrong(1)


def test_a_slot_for_weak_references_is_no_field() -> None:
    """Its descriptor cannot be assigned, so an apparent field would fail at the first use."""
    with pytest.raises(TypeError, match="Referred has a field __weakref__: write weakref_slot=True"):

        @deferred.dataclass(slots=True)
        class Referred:
            __weakref__: object = field(init=False)
