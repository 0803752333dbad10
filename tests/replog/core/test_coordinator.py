"""The group coordinator: its records, the time of its answers, and its refusals."""

from __future__ import annotations

from dataclasses import replace

from core_support import CLIENT, NOW, PARTITION, metadata, sent

from replog.core.broker.coordinator import GroupReplica, Waiting
from replog.core.broker.groups import Commit, Generation, from_body, records_of
from replog.core.broker.state import Config, ReplicaState
from replog.core.effects import Append, SetTimer, Timer
from replog.core.log.logview import LogView
from replog.core.messages import (
    CommitReply,
    CommitRequest,
    FetchReply,
    FetchRequest,
    GroupLog,
    JoinGroupReply,
    JoinGroupRequest,
    PositionReply,
    PositionRequest,
    ProduceRequest,
)
from replog.core.protocol import CURRENT
from replog.core.types import Batch, EpochEnd, Error

RESIGN_MS = 70


def coordinator(log: LogView | None = None, leader: int = 0, epoch: int = 0, **rules: bool) -> GroupReplica:
    """Broker 0 of two, with the log of groups."""
    config = Config(min_isr=1, lag_ms=10_000, resign_ms=RESIGN_MS)
    state = ReplicaState(0, PARTITION, config, replace(CURRENT, **rules))
    if log is not None:
        state.log = log
    replica = GroupReplica(state)
    loaded(replica, replica.apply(metadata(leader, epoch), 1, NOW))
    return replica


def loaded(replica: GroupReplica, effects: list) -> None:
    """Deliver to a broker the messages it has sent to itself."""
    for message in sent(effects, GroupLog):
        assert replica.receive(CLIENT, message, NOW) == []
        replica.receive(0, message, NOW)


def fetched(replica: GroupReplica, offset: int, epoch: int = 0) -> list:
    """Make the follower acknowledge all records before an offset."""
    return replica.receive(1, FetchRequest(90, 1, epoch, offset, broker_epoch=2), NOW)


def joined(replica: GroupReplica, member: int = 7) -> int:
    """Make a member own the group; return its generation."""
    replica.receive(CLIENT, JoinGroupRequest(1, "g", member), NOW)
    fetched(replica, replica.state.log.leo)
    (reply,) = sent(replica.fire(Timer.COMPLETE_COMMITS, 0, NOW), JoinGroupReply)
    return reply.generation


def commit(replica: GroupReplica, offset: int, generation: int, member: int = 7) -> list:
    return replica.receive(CLIENT, CommitRequest(2, "g", "t-0", offset, member, generation), NOW)


def position(replica: GroupReplica, generation: int, member: int = 7) -> PositionReply:
    request = PositionRequest(3, "g", "t-0", member, generation)
    (reply,) = sent(replica.receive(CLIENT, request, NOW))
    return reply


def test_a_commit_is_a_record_and_is_answered_after_hw_has_passed_it():
    """Not when it is written, nor while HW is still before it."""
    replica = coordinator()
    generation = joined(replica)
    effects = commit(replica, 5, generation)
    (written,) = (effect for effect in effects if isinstance(effect, Append))
    assert from_body(written.batches[0].body) == Commit("g", "t-0", 5, 0)
    assert sent(effects) == []
    assert sent(replica.fire(Timer.COMPLETE_COMMITS, 0, NOW)) == []
    assert position(replica, generation).offset == -1
    assert SetTimer(Timer.COMPLETE_COMMITS, 0) in fetched(replica, 2)
    assert sent(replica.fire(Timer.COMPLETE_COMMITS, 0, NOW)) == [CommitReply(2, Error.NONE)]
    assert position(replica, generation) == PositionReply(3, Error.NONE, 5)


def test_the_next_request_is_checked_by_what_is_written():
    """A new generation fences the previous one before it is committed, but has no owner until then."""
    replica = coordinator()
    old = joined(replica)
    replica.receive(CLIENT, JoinGroupRequest(9, "g", 7), NOW)
    assert sent(commit(replica, 5, old)) == [CommitReply(2, Error.ILLEGAL_GENERATION)]
    assert position(replica, old + 1).error is Error.ILLEGAL_GENERATION
    assert sent(commit(replica, 5, old + 1, member=8)) == [CommitReply(2, Error.UNKNOWN_MEMBER_ID)]
    assert sent(commit(replica, -1, old + 1)) == [CommitReply(2, Error.INVALID_REQUEST)]


def test_another_coordinator_knows_the_groups_by_the_log():
    """With their owners, generations and offsets, as far as its HW."""
    log = LogView()
    for offset, record in enumerate((Generation("g", 1, 7), Commit("g", "t-0", 4), Generation("g", 2, 8))):
        log.append(Batch(offset, 0, 1, body=record.to_body()))
    replica = coordinator(log, epoch=1)
    assert position(replica, 2, member=8).error is Error.UNKNOWN_MEMBER_ID
    fetched(replica, 2, epoch=1)
    assert position(replica, 1) == PositionReply(3, Error.NONE, 4)
    fetched(replica, 3, epoch=1)
    assert position(replica, 1).error is Error.UNKNOWN_MEMBER_ID
    assert position(replica, 2, member=8) == PositionReply(3, Error.NONE, 4)
    replica.receive(CLIENT, JoinGroupRequest(9, "g", 7), NOW)
    assert [record for _, record in records_of(log.batches)][-1] == Generation("g", 3, 7)


def test_who_follows_is_no_coordinator():
    """Every request is refused, and nothing is written."""
    replica = coordinator(leader=1)
    requests = (
        JoinGroupRequest(1, "g", 7),
        CommitRequest(2, "g", "t-0", 5, 7, 1),
        PositionRequest(3, "g", "t-0", 7, 1),
    )
    for request in requests:
        (reply,) = sent(replica.receive(CLIENT, request, NOW))
        assert reply.error is Error.NOT_COORDINATOR
    assert replica.state.log.leo == 0


def test_a_commit_needs_as_many_replicas_as_acks_all():
    """With fewer nothing is written: an answered commit must survive."""
    replica = coordinator()
    replica.state.config = replace(replica.state.config, min_isr=2)
    replica.apply(metadata(0, 0, 2, (0,)), 1, NOW)
    (reply,) = sent(replica.receive(CLIENT, JoinGroupRequest(1, "g", 7), NOW))
    assert reply == JoinGroupReply(1, Error.COORDINATOR_NOT_AVAILABLE, -1)
    assert replica.state.log.leo == 0


def cut_and_passed(**rules: bool) -> GroupReplica:
    """A coordinator that has become a follower, has cut its commit, and has other records below HW."""
    replica = coordinator(**rules)
    assert sent(commit(replica, 5, joined(replica))) == []
    resigned = replica.apply(metadata(1, 1, 2), 1, NOW)
    assert SetTimer(Timer.RESIGN, RESIGN_MS) in resigned
    replica.state.log.truncate_to(1)
    for offset in (1, 2):
        replica.state.log.append(Batch(offset, 1, 1, body=Generation("h", offset, 9).to_body()))
    replica.state.log.assign_hw(3)
    return replica


def test_a_commit_is_answered_only_in_the_epoch_in_which_it_was_written():
    """KAFKA-20634: the record at its offset may be another one now."""
    replica = cut_and_passed()
    assert sent(replica.fire(Timer.COMPLETE_COMMITS, 0, NOW)) == []
    assert sent(replica.fire(Timer.RESIGN, 0, NOW)) == [CommitReply(2, Error.NOT_COORDINATOR)]
    as_kafka = cut_and_passed(completes_as_leader=False)
    assert sent(as_kafka.fire(Timer.COMPLETE_COMMITS, 0, NOW)) == [CommitReply(2, Error.NONE)]


def test_who_leads_again_answers_no_commit_of_the_epoch_before():
    """Its record may have been cut in between; the group is loaded again."""
    replica = coordinator()
    generation = joined(replica)
    commit(replica, 5, generation)
    replica.apply(metadata(1, 1, 2), 1, NOW)
    replica.state.log.truncate_to(1)
    began = replica.apply(metadata(0, 2, 3), 1, NOW)
    assert position(replica, generation).error is Error.COORDINATOR_LOAD_IN_PROGRESS
    loaded(replica, began)
    replica.receive(CLIENT, ProduceRequest(4, Batch(0, -1, 1, body=b"?"), 1, 100), NOW)
    fetched(replica, 2, epoch=2)
    assert sent(replica.fire(Timer.COMPLETE_COMMITS, 0, NOW)) == []
    assert position(replica, generation).offset == -1
    assert sent(replica.fire(Timer.RESIGN, 0, NOW)) == [CommitReply(2, Error.NOT_COORDINATOR)]


def test_a_commit_that_was_cut_off_is_no_position():
    """A follower that truncates it, and leads again, has the records of its log alone."""
    replica = coordinator()
    generation = joined(replica)
    commit(replica, 5, generation)  # record 1, which nobody else has

    def answered(*batches: Batch, diverging: EpochEnd | None = None) -> None:
        (fetch,) = sent(replica.fire(Timer.SEND_FETCH, 0, NOW), FetchRequest)
        replica.receive(1, FetchReply(fetch.correlation, Error.NONE, 1, 0, batches, diverging), NOW)

    replica.apply(metadata(1, 1, 2), 1, NOW)
    answered(diverging=EpochEnd(0, 1))
    answered(Batch(1, 1, 1, body=Commit("other", "t-0", 9).to_body()))
    assert (replica.state.log.leo, replica.state.log.hw) == (2, 1)
    loaded(replica, replica.apply(metadata(0, 2, 3, (0,)), 1, NOW))
    assert replica.coordinator.committed.position("g", "t-0") is None


class Incomparable(CommitReply):
    """An answer that fails when it is compared."""

    def __eq__(self, other):
        raise AssertionError("compared")

    __hash__ = None


def test_waiting_answers_are_not_compared_with_each_other():
    """One request may commit for thousands of partitions; comparing each with each would stop the broker."""
    for timer, epoch in ((Timer.COMPLETE_COMMITS, 0), (Timer.RESIGN, -1)):
        replica = coordinator()
        answers = [Incomparable(n, Error.NONE) for n in range(3)]
        replica.coordinator.waiting = tuple(Waiting(CLIENT, each, epoch, 0) for each in answers)
        assert len(sent(replica.fire(timer, 0, NOW), CommitReply)) == 3
        assert replica.coordinator.waiting == ()


def test_a_snapshot_is_independent():
    """A copy that continues leaves the original unchanged."""
    replica = coordinator()
    generation = joined(replica)
    twin = replica.copy()
    commit(twin, 5, generation)
    fetched(twin, 2)
    assert sent(twin.fire(Timer.COMPLETE_COMMITS, 0, NOW)) == [CommitReply(2, Error.NONE)]
    assert position(replica, generation).offset == -1
    assert replica.coordinator.waiting == ()


def test_a_record_that_means_nothing_is_ignored():
    """A newer broker may have written it, or a producer."""
    bodies = (b"", b"\xff", b"7", b'["commit", 3]', b'["other"]', Generation("g", 1, 2).to_body())
    batches = [Batch(offset, 0, 1, body=body) for offset, body in enumerate(bodies)]
    assert list(records_of(batches)) == [(len(bodies), Generation("g", 1, 2))]
