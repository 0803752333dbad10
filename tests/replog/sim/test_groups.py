"""Members of a consumer group commit, die and take over, while their coordinators change."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from replog.core.broker.coordinator import Coordinator
from replog.core.effects import Send, Timer
from replog.core.messages import (
    CommitReply,
    CommitRequest,
    ForPartition,
    JoinGroupReply,
    JoinGroupRequest,
    PositionReply,
)
from replog.core.types import Error
from replog.sim.cluster.members import Member
from replog.sim.faults.profiles import profile
from replog.sim.oracles.commits import CommitWatch
from replog.sim.oracles.promises import ViolationError
from replog.sim.run import Simulation
from specchk.conform.contract.known_bad import BadCode, planted

GROUPS = profile("groups")


@pytest.mark.parametrize("seed", range(4))
def test_the_group_goes_on_where_it_has_committed(seed):
    """Under faults, and to the end of the log once the faults are over."""
    simulation = Simulation(seed, GROUPS)
    report = simulation.run()
    assert not report.is_failure, report.text()
    assert report.checks["commits-kept"] > 5
    assert simulation.members[0].committed == len(simulation.oracles.committed) > 0


def test_a_coordinator_on_files_reads_its_log_from_them():
    """Bodies are on disk: a new coordinator receives them in a message to itself."""
    simulation = Simulation(3, replace(GROUPS, uses_store=True, duration_ms=20_000, batches=10))
    report = simulation.run()
    assert not report.is_failure, report.text()
    assert report.checks["commits-kept"] > 0
    assert simulation.members[0].committed > 0


@pytest.mark.slow
def test_no_seed_of_sixty_loses_a_commit():
    """More than the sample of every run."""
    broken = [report for seed in range(60) if (report := Simulation(seed, GROUPS).run()).is_failure]
    assert not broken, broken[0].text()


def test_positions_without_owners_are_old_ones():
    """A replaced coordinator, without its knowledge, would send an owner back."""
    bad = BadCode(
        "any owner", Coordinator._position,
        "self.committed.owner_error(request.group, request.member, request.generation)", "Error.NONE", "",
    )  # fmt: skip
    with planted(bad):
        assert Simulation(22, GROUPS).run().oracle == "commits-kept"


def test_a_member_that_is_not_answered_joins_again():
    """Its request may still be executed, and is then of an earlier generation."""
    member = Member(-40, "g", "t-0", "groups-0", lambda _: 0, lambda _: 1)
    (join, _) = member.fire(Timer.SEND_FETCH, 0, 1_000)
    assert join == Send(0, ForPartition("groups-0", JoinGroupRequest(1, "g", 40)))
    member.receive(JoinGroupReply(1, Error.NONE, 3), 1_001)
    member.fire(Timer.SEND_FETCH, 0, 1_002)
    member.receive(PositionReply(2, Error.NONE, 5), 1_003)
    member.position = 7
    (sent, _) = member.fire(Timer.SEND_FETCH, 0, 1_004)
    assert sent == Send(0, ForPartition("groups-0", CommitRequest(3, "g", "t-0", 7, 40, 3)))
    assert len(member.fire(Timer.SEND_FETCH, 0, 1_500)) == 1
    (again, _) = member.fire(Timer.SEND_FETCH, 0, 9_000)
    assert isinstance(again.message.message, JoinGroupRequest)
    member.receive(CommitReply(3, Error.NONE), 9_001)
    assert member.committed == -1


def test_a_refused_owner_rests_and_joins_again():
    """Another member owns the group: it is left to that one for a while."""
    member = Member(-40, "g", "t-0", "groups-0", lambda _: 0, lambda n: n - 1)
    member.fire(Timer.SEND_FETCH, 0, 1_000)
    member.receive(JoinGroupReply(1, Error.NONE, 3), 1_001)
    member.fire(Timer.SEND_FETCH, 0, 1_002)
    member.receive(PositionReply(2, Error.ILLEGAL_GENERATION, -1), 1_003)
    assert (member.generation, member.rest_ms > 0) == (-1, True)


def test_the_watch_compares_where_an_owner_continues():
    """Not before the committed offset, and not past the processed records."""
    watch = CommitWatch(Counter())
    for offset in (1, 0, 3):
        watch.processed(offset)
    watch.committed_to(2)
    watch.resumed(2, watch.kept())
    with pytest.raises(ViolationError, match="continues at 1, committed was 2"):
        watch.resumed(1, watch.kept())
    with pytest.raises(ViolationError, match="record 2 was not processed"):
        watch.resumed(4, watch.kept())
    assert watch.checks["commits-kept"] == 3
