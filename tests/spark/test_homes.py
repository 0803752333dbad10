"""Homes of partitions: each has one, it moves as seldom as possible, and lots keep to their bounds."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError

from specchk.spark import homes as module
from specchk.spark.homes import MOST, TABLES, WORK, Executor, Homes, Load, dealt, executors, lots_of
from specchk.spark.states.slices import Slice
from specchk.spark.states.tables import TableCount

FOUR = [Executor("host", str(number)) for number in range(4)]
NOTHING = Load(1, 1, 16)


def shares(homes: tuple[Executor | None, ...]) -> list[int]:
    return sorted(sum(home == executor for home in homes) for executor in set(homes))


def moved(before: tuple[Executor | None, ...], after: tuple[Executor | None, ...]) -> int:
    return sum(old != new for old, new in zip(before, after, strict=True))


@pytest.mark.parametrize("partitions", [1, 4, 7, 16])
def test_every_partition_has_a_home_and_shares_are_equal(partitions: int) -> None:
    """No executor has two partitions more than another one."""
    homes = dealt((None,) * partitions, FOUR)
    assert None not in homes
    assert shares(homes)[-1] - shares(homes)[0] <= 1


def test_homes_stay_while_executors_do() -> None:
    """Whatever the order in which they are named."""
    homes = dealt((None,) * 7, FOUR)
    assert dealt(homes, FOUR[::-1]) == homes


def test_only_what_was_lost_moves() -> None:
    """Only the partitions of a removed executor get other homes."""
    homes = dealt((None,) * 16, FOUR)
    after = dealt(homes, FOUR[1:])
    assert moved(homes, after) == 4
    assert all(old == new for old, new in zip(homes, after, strict=True) if old != FOUR[0])


def test_a_new_executor_gets_its_share_and_no_more() -> None:
    """One that comes later, or takes the place of a lost one."""
    homes = dealt((None,) * 16, FOUR[:3])
    after = dealt(homes, FOUR)
    assert moved(homes, after) == shares(after)[0] == 4


def test_without_executors_nothing_has_a_home() -> None:
    """Spark then chooses, until one is there."""
    assert dealt(dealt((None,) * 3, FOUR), []) == (None,) * 3


@pytest.mark.parametrize("load", [NOTHING, Load(10**6, 10**7, 16), Load(10, 10**9, 40)])
@pytest.mark.parametrize("partitions", [1, 3, 16, 1600])
def test_lots_have_each_partition_once(partitions: int, load: Load) -> None:
    """However many tasks there are."""
    lots = lots_of(range(partitions), 2, partitions, load)
    assert sorted(number for lot in lots for number in lot) == list(range(partitions))
    assert max(map(len, lots)) <= MOST


def test_small_levels_have_a_task_for_each_core_and_large_ones_for_each_partition() -> None:
    """A task costs the same whatever it does, and a table that is large has a task of its own."""
    assert len(lots_of(range(16), 2, 16, NOTHING)) == 2
    assert len(lots_of(range(16), 2, 16, Load(16 * WORK, 1, 16))) == 16
    assert len(lots_of(range(16), 2, 16, Load(1, TABLES, 16))) == 16
    counts = [len(lots_of(range(16), 2, 16, Load(size, size, 16))) for size in range(1, 16 * WORK, WORK)]
    assert all(few <= many for few, many in pairwise(counts))


def test_a_table_that_is_left_behind_counts() -> None:
    """Two places for a partition are two tables, one of which is not needed."""
    tables = TableCount()
    tables.add([Slice(1, 0, 10, 0, place=7, table=10), Slice(1, 1, 10, 0, place=8, table=10)])
    assert tables.ratio == 1
    tables.add([Slice(2, 0, 0, 0, place=8, table=10, caught_up=1)])
    assert (tables.ratio, tables.caught_up, tables.slices) == (1.5, 1, 3)


class Listed(list[Any]):
    """A context that lists executors as Spark does: host and port, and the name."""

    _jsc = property(lambda self: SimpleNamespace(sc=lambda: SimpleNamespace(statusStore=lambda: self)))

    def executorList(self, _: bool) -> Listed:  # noqa: N802 - Spark's name
        return self

    def iterator(self) -> Any:
        left = [SimpleNamespace(hostPort=lambda at=at: at, id=lambda of=of: of) for at, of in self]
        return SimpleNamespace(hasNext=lambda: bool(left), next=lambda: left.pop(0))


def test_an_executor_that_is_only_registered_is_no_home_yet() -> None:
    """It is listed without a port first; under two names it would be lost as soon as it is ready."""
    ready = ("10.0.0.1:4040", "0"), ("[::1]:4040", "1"), ("10.0.0.9:4040", "driver")
    found: Any = executors(Listed((*ready, ("10.0.0.2", "2"), ("[::2]", "3"), (None, "4"))))  # type: ignore[arg-type]
    assert found == [Executor("10.0.0.1", "0"), Executor("[::1]", "1")]


def test_homes_that_cannot_be_looked_up_are_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed query ends no job, all of whose work would be repeated."""
    context: Any = SimpleNamespace(master="spark://host:7077")
    homes = Homes(context, 4)
    monkeypatch.setattr(module, "slots", lambda _: 4)
    monkeypatch.setattr(module, "executors", lambda _: FOUR)
    homes.placed(NOTHING)
    assert not homes.is_lost()
    monkeypatch.setattr(module, "executors", lambda _: FOUR[1:])
    assert homes.is_lost()

    def fails(_: Any) -> list[Executor]:
        raise Py4JError("no answer")

    monkeypatch.setattr(module, "executors", fails)
    # By what was seen last, for as long as looking may still succeed.
    assert [homes.is_lost() for _ in range(module.LOOKS)] == [True] * (module.LOOKS - 1) + [False]
    assert not homes.is_known
    assert homes.placed(NOTHING).places == ("",) * 4


def test_one_look_that_fails_moves_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """The list of executors may change while it is read."""
    context: Any = SimpleNamespace(master="spark://host:7077")
    homes = Homes(context, 4)
    monkeypatch.setattr(module, "slots", lambda _: 4)
    monkeypatch.setattr(module, "executors", lambda _: FOUR)
    before = homes.placed(NOTHING)

    def fails(_: Any) -> list[Executor]:
        raise Py4JError("no such element")

    monkeypatch.setattr(module, "executors", fails)
    assert not homes.is_lost()
    assert homes.placed(NOTHING) == before
    monkeypatch.setattr(module, "executors", lambda _: FOUR)
    assert homes.placed(NOTHING) == before
    assert homes.is_known
