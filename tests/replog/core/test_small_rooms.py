"""Placement, ZooKeeper-era propagation, consumer groups, and the protocol's presets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replog.core.broker.groups import Commit, Groups, from_body
from replog.core.broker.propagation import TICK_MS, Propagator
from replog.core.controller.placement import assign, assign_simple
from replog.core.protocol import CURRENT, Protocol, Truncation, preset, preset_names
from replog.core.types import Error


def test_the_placements_of_the_reference():
    """F7: n=5 and n=3, start index 0, shift 0, three replicas."""
    assert assign(range(5), 6, 3) == ((0, 1, 2), (1, 2, 3), (2, 3, 4), (3, 4, 0), (4, 0, 1), (0, 2, 3))
    assert assign(range(3), 4, 3) == ((0, 1, 2), (1, 2, 0), (2, 0, 1), (0, 2, 1))


@given(st.integers(1, 7), st.integers(1, 20), st.data())
def test_a_placement_uses_distinct_brokers_and_balances_first_replicas(n, partitions, data):
    """Replicas of a partition are distinct; brokers' counts of first replicas differ by at most one."""
    replication = data.draw(st.integers(1, n))
    start, shift = data.draw(st.integers(0, 9)), data.draw(st.integers(0, 9))
    placed = assign(range(n), partitions, replication, start, shift)
    assert all(len(set(replicas)) == replication for replicas in placed)
    firsts = [sum(replicas[0] == broker for replicas in placed) for broker in range(n)]
    assert max(firsts) - min(firsts) <= 1


@given(st.integers(2, 7), st.data())
def test_the_seeds_rule_is_kafkas_first_pass(n, data):
    """I19: with start index 0 and shift 0 both place the first n partitions alike."""
    replication = data.draw(st.integers(1, n))
    assert assign(range(n), n, replication) == assign_simple(range(n), n, replication)


@pytest.mark.parametrize("replication", [0, 4, -1])
def test_a_placement_without_enough_brokers_is_refused(replication):
    """More replicas than brokers, or none, is an error with both numbers."""
    with pytest.raises(ValueError, match="3"):
        assign([1, 2, 3], 1, replication)


def told(changes: list[int], until: int, sent: int = 0) -> list[int]:
    state = Propagator(0, sent)
    moments = []
    for now in range(0, until + 1, TICK_MS):
        while changes and changes[0] <= now:
            state = state.changed("t-0", changes.pop(0))
        state, news = state.tick(now)
        if news:
            moments.append(now)
    return moments


def test_propagation_waits_as_in_the_reference():
    """F9: at once after 60 s of silence, else after more than 5 s of quiet, else after more than 60 s."""
    assert told([100], 10_000, sent=-60_000) == [2_500]
    assert told([0], 20_000) == [7_500]
    assert told(list(range(0, 70_000, 2_000)), 65_000) == [62_500]
    assert told([], 70_000) == []


def test_a_commit_needs_the_current_owner_and_generation():
    """A31: other members and former owners are refused, and a new owner starts at the committed offset."""
    groups = Groups()
    commit = Commit("g", "t-0", 5)
    assert groups.commit(commit, 1, 1) is Error.UNKNOWN_MEMBER_ID
    first = groups.join("g", 1).number
    assert groups.position("g", "t-0") is None
    assert groups.commit(commit, 1, first) is Error.NONE
    groups.join("g", 1)
    assert groups.commit(Commit("g", "t-0", 9), 1, first) is Error.ILLEGAL_GENERATION
    assert groups.commit(Commit("g", "t-0", -9), 1, first + 1) is Error.INVALID_REQUEST
    second = groups.join("g", 2).number
    assert groups.commit(Commit("g", "t-0", 9), 1, first + 1) is Error.UNKNOWN_MEMBER_ID
    assert groups.position("g", "t-0") == 5
    assert groups.commit(Commit("g", "t-0", 3), 2, second) is Error.NONE
    assert groups.position("g", "t-0") == 3, "an owner may rewind"


def test_committed_offsets_are_a_function_of_the_commit_log():
    """I31: replaying the records of commits gives the same positions; the copy is independent."""
    records = [Commit("g", "t-0", 1), Commit("h h", "t-0", 4), Commit("g", "t-0", 3, 2)]
    assert [from_body(record.to_body()) for record in records] == records
    groups = Groups.replay(records)
    assert (groups.position("g", "t-0"), groups.position("h h", "t-0")) == (3, 4)
    twin = groups.copy()
    groups.join("g", 1)
    groups.commit(Commit("g", "t-0", 8), 1, 1)
    assert twin.position("g", "t-0") == 3


def test_another_coordinator_fences_former_owners():
    """A generation without a commit is in the log, too; otherwise its number would be assigned again."""
    groups = Groups()
    records = [groups.join("g", 1), Commit("g", "t-0", 5), groups.join("g", 1)]
    assert [from_body(record.to_body()) for record in records] == records
    other = Groups.replay(records)
    assert other.groups["g"].member == 1
    assert other.join("g", 1).number == 3
    for former in (1, 2):
        assert other.commit(Commit("g", "t-0", 9), 1, former) is Error.ILLEGAL_GENERATION
    assert other.commit(Commit("g", "t-0", 6), 1, 3) is Error.NONE


def test_the_default_protocol_is_todays():
    """Protocol() and the preset `kafka-4.1` are the same value; every preset has a name and is known."""
    assert preset("kafka-4.1") == Protocol() == CURRENT
    assert preset("hw-truncation").truncation is Truncation.HW
    assert len({preset(name) for name in preset_names()}) == len(preset_names())
    with pytest.raises(KeyError, match="hw-truncation"):
        preset("yesterday")
