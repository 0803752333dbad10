"""Copies of systems equal deep copies, however they are made."""

from __future__ import annotations

import threading
from copy import deepcopy
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import pytest

from specchk.conform.contract.copies import restored, saved


class Side(Enum):
    HEADS = "heads"


@dataclass
class System:
    """The kinds of contents of systems: aliases, names of enums, classes and functions."""

    kind: type = dict
    side: Side = Side.HEADS
    rule: Any = len
    log: list[Any] = field(default_factory=list)
    others: dict[str, Any] = field(default_factory=dict)


class Shared:
    """Defines its own copying: not at all."""

    def __deepcopy__(self, memo: object) -> Shared:
        return self


def local() -> Any:
    """A class that cannot be imported, with a function that cannot be imported."""

    @dataclass
    class Hidden:
        rule: Any
        log: list[int]

    return Hidden(lambda: 1, [1])


@pytest.mark.parametrize(
    "other",
    [3, [1, {2}], Shared(), local(), [Side.HEADS, print]],
    ids=["int", "list", "object", "local", "shared"],
)
def test_a_copy_is_a_deep_copy(other: Any):
    """Equal, with the same aliases, and with the parts that `deepcopy` shares; functions are its own."""
    system = System(log=[other, other])
    system.others["log"] = system.log
    kept = saved(system)
    system.log.append(4)
    first, second = restored(kept), restored(kept)
    wanted = deepcopy(System(log=[other, other], others={}))
    for copy in (first, second):
        assert copy.log == wanted.log
        assert copy.others["log"] is copy.log
        assert copy.log[0] is copy.log[1]
        assert (copy.log[0] is other) is (wanted.log[0] is other)
        assert (copy.kind, copy.side, copy.rule) == (dict, Side.HEADS, len)
    first.log.append(5)
    assert second.log == restored(kept).log == wanted.log


class Counter:
    """Counts, up to a limit."""

    def up(self) -> str:
        """Count without a limit."""
        return "up"

    def __down(self) -> str:
        return "down"

    def table(self) -> dict[str, Any]:
        """Methods that only this class can name."""
        return {"down": self.__down}


class Limited(Counter):
    """Has another `up`, and uses the overridden one in its table."""

    def __init__(self) -> None:
        self.rules = {"up": super().up, **self.table()}

    def up(self) -> str:
        """Refuse."""
        return "limited"


class Recent(dict[str, int]):
    """A dict that must know its limit before its items."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit

    def __setitem__(self, key: str, value: int) -> None:
        super().__setitem__(key, min(value, self.limit))


class Journal(list[int]):
    """A list that counts what is appended."""

    appended = 0

    def append(self, item: int) -> None:
        """Append an item and count it."""
        self.appended += 1
        super().append(item)


def test_a_method_of_a_copy_is_the_one_that_was_kept():
    """Also one that its class overrides, and one with a mangled name; it is bound to the copy."""
    copy = restored(saved(Limited()))
    assert [rule() for rule in copy.rules.values()] == ["up", "down"]
    assert all(rule.__self__ is copy for rule in copy.rules.values())


def test_dicts_and_lists_with_rules_of_their_own_are_as_deep_copies():
    recent, journal = Recent(3), Journal()
    recent["a"] = 5
    journal.append(7)
    system = System(log=[recent, journal, journal.append])
    copy, wanted = restored(saved(system)), deepcopy(deepcopy(system))
    assert copy.log[:2] == wanted.log[:2] == [{"a": 3}, [7]]
    assert (copy.log[0].limit, copy.log[1].appended) == (3, wanted.log[1].appended)


def test_what_cannot_be_copied_is_refused_as_ever():
    """The exception is that of `deepcopy`."""
    with pytest.raises(TypeError, match="lock"):
        saved(System(log=[threading.Lock()]))
