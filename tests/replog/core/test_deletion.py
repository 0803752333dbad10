"""Records are deleted at the front of a log: by request, by retention, and after the leader (A35)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from core_support import CLIENT, NOW, fetch, following, leading, log_of, metadata, produce, replica_of, sent

from replog.core.broker.state import Config
from replog.core.effects import AdvanceStart, Append, Reset, SetTimer, StoreEpochs, Timer
from replog.core.messages import (
    LATEST,
    AlterPartitionReply,
    AlterPartitionRequest,
    DeleteRecordsReply,
    DeleteRecordsRequest,
    FetchReply,
    FetchRequest,
)
from replog.core.protocol import CURRENT
from replog.core.types import BATCH_OVERHEAD_BYTES, Batch, BrokerState, Error, MetadataImage
from replog.sim.disks.stored import StoreStorage


def delete(replica, offset, timeout_ms=1_000):
    return replica.receive(CLIENT, DeleteRecordsRequest(3, offset, timeout_ms), NOW)


def committed(*epochs, **fields):
    """A leader whose records are committed, and whose follower is known to have them."""
    leader = leading(log_of(*epochs), epoch=max(epochs), **fields)
    fetch(leader, len(epochs), epoch=max(epochs))
    assert leader.state.log.hw == len(epochs)
    return leader


def acknowledge(leader, log_start, epoch=0):
    """The follower fetches the end of the log, with its own log start."""
    leo = leader.state.log.leo
    return leader.receive(1, FetchRequest(9, 1, epoch, leo, epoch, 2, log_start=log_start), NOW)


def test_a_client_waits_until_the_follower_has_deleted():
    """KIP-107: the low watermark is the least log start of the live replicas."""
    leader = committed(0, 0, 0)
    effects = delete(leader, 2)
    assert AdvanceStart(2) in effects
    assert sent(effects, DeleteRecordsReply) == []
    assert sent(acknowledge(leader, 1), DeleteRecordsReply) == []
    assert sent(acknowledge(leader, 2), DeleteRecordsReply) == [DeleteRecordsReply(3, Error.NONE, 2)]
    assert sent(delete(leader, 1), DeleteRecordsReply) == [DeleteRecordsReply(3, Error.NONE, 2)]


@pytest.mark.parametrize("offset", [3, -2])
def test_only_what_is_committed_is_deleted(offset):
    """A35: an offset above HW is out of range, and nothing is deleted."""
    leader = committed(0, 0)
    produce(leader, acks=1)
    effects = delete(leader, offset)
    assert sent(effects) == [DeleteRecordsReply(3, Error.OFFSET_OUT_OF_RANGE, -1)]
    assert leader.state.log.log_start == 0


def test_latest_is_the_high_watermark():
    """KIP-107: -1 deletes all committed records."""
    leader = committed(0, 0)
    produce(leader, acks=1)
    assert AdvanceStart(2) in delete(leader, LATEST)


def without(follower, image, **partition):
    """The metadata after a broker was fenced."""
    brokers = {**image.brokers, follower: replace(image.brokers[follower], state=BrokerState.FENCED)}
    changed = {name: replace(one, **partition) for name, one in image.partitions.items()}
    return MetadataImage(image.version + 1, changed, brokers)


def test_who_is_fenced_is_not_waited_for():
    """KIP-107: an absent replica would delay a deletion forever."""
    leader = committed(0)
    leader.apply(without(1, metadata(0), isr=(0,), partition_epoch=2), 1, NOW)
    assert sent(delete(leader, 1)) == [DeleteRecordsReply(3, Error.NONE, 1)]


@pytest.mark.parametrize("waits", [True, False])
def test_who_is_fenced_and_eligible_is_waited_for(waits):
    """A35: elected from the ELR when it returns, it would give deleted records to consumers."""
    leader = committed(0, protocol=replace(CURRENT, join_needs_start=waits))
    leader.apply(without(1, metadata(0), isr=(0,), elr=(1,), partition_epoch=2), 1, NOW)
    assert bool(sent(delete(leader, 1), DeleteRecordsReply)) is not waits
    leader.apply(metadata(0, 0, 3), 1, NOW)
    assert bool(sent(acknowledge(leader, 1), DeleteRecordsReply)) is waits


def test_the_elr_comes_with_the_metadata_of_an_own_isr_change():
    """A35: the reply has the partition epoch but no ELR, so metadata of this epoch is not obsolete."""
    leader = committed(0)
    produce(leader, acks=1)
    (proposal,) = sent(leader.fire(Timer.ISR_CHECK, 0, NOW + 20_000), AlterPartitionRequest)
    leader.receive(-1, AlterPartitionReply(proposal.correlation, Error.NONE, 0, 2, (0,)), NOW + 20_000)
    assert (leader.state.partition_epoch, leader.state.elr) == (2, ())
    leader.apply(without(1, metadata(0), isr=(0,), elr=(1,), partition_epoch=2), 1, NOW + 20_000)
    assert sent(delete(leader, 1), DeleteRecordsReply) == []


def test_who_is_fenced_and_proposed_is_waited_for():
    """A35: the proposal may be granted late, when the replica is back, and before it has fetched again."""
    leader = leading(log_of(0), isr=(0,))
    leader.state.log.raise_hw(1)
    assert sent(acknowledge(leader, 0), AlterPartitionRequest)
    leader.apply(without(1, metadata(0, isr=(0,))), 1, NOW)
    assert sent(delete(leader, 1), DeleteRecordsReply) == []
    assert sent(acknowledge(leader, 1), DeleteRecordsReply) == [DeleteRecordsReply(3, Error.NONE, 1)]


def test_a_deletion_times_out_and_is_done_on_the_leader():
    """A35: REQUEST_TIMED_OUT does not decide about the records; a later deadline has its own timer."""
    leader = committed(0, 0)
    delete(leader, 1)
    (timer,) = (e for e in delete(leader, 2, 2_000) if isinstance(e, SetTimer))
    assert timer.timer is Timer.DELETE_TIMEOUT
    effects = leader.fire(Timer.DELETE_TIMEOUT, 0, NOW + 1_000)
    assert sent(effects) == [DeleteRecordsReply(3, Error.REQUEST_TIMED_OUT, -1)]
    assert SetTimer(Timer.DELETE_TIMEOUT, 1_000) in effects
    assert leader.state.log.log_start == 2


def test_who_does_not_lead_refuses():
    """A35: and a deposed leader answers the waiting clients."""
    assert sent(delete(replica_of(0), 1)) == [DeleteRecordsReply(3, Error.UNKNOWN_TOPIC_OR_PARTITION, -1)]
    assert sent(delete(following(), 1)) == [DeleteRecordsReply(3, Error.NOT_LEADER_OR_FOLLOWER, -1)]
    leader = committed(0)
    delete(leader, 1)
    replies = sent(leader.apply(metadata(1, 1, 2), 1, NOW), DeleteRecordsReply)
    assert replies == [DeleteRecordsReply(3, Error.NOT_LEADER_OR_FOLLOWER, -1)]


@pytest.mark.parametrize("needs_start", [True, False])
def test_who_joins_the_isr_has_the_leader_s_log_start(needs_start):
    """A35: in Kafka a first fetch is enough, whose response contains only the log start."""
    leader = leading(log_of(0, 0), isr=(0,), protocol=replace(CURRENT, join_needs_start=needs_start))
    leader.state.log.raise_hw(2)
    delete(leader, 1)
    assert bool(sent(acknowledge(leader, 0), AlterPartitionRequest)) is not needs_start
    assert bool(sent(acknowledge(leader, 1), AlterPartitionRequest)) is needs_start


def test_a_follower_takes_over_the_leader_s_log_start():
    """A35: after HW, and on disk."""
    follower = following()
    effects = follower.fire(Timer.SEND_FETCH, 0, NOW)
    (request,) = sent(effects, FetchRequest)
    assert request.log_start == 0
    batches = tuple(Batch(offset, 0, 1, body=b"m") for offset in range(2))
    effects = follower.receive(0, FetchReply(request.correlation, Error.NONE, 2, 1, batches), NOW)
    assert AdvanceStart(1) in effects
    assert (follower.state.log.log_start, follower.state.log.epochs.entries) == (1, [(0, 1)])
    (request,) = sent(follower.fire(Timer.SEND_FETCH, 0, NOW), FetchRequest)
    assert request.log_start == 1


def test_a_follower_begins_at_the_batch_in_which_the_log_starts():
    """A35, A9: batches are sent whole; Partition.appendRecordsToFollowerOrFutureReplica has the same case."""
    follower = following()
    follower.state.log.reset(4)
    (request,) = sent(follower.fire(Timer.SEND_FETCH, 0, NOW), FetchRequest)
    batches = (Batch(3, 0, 3, body=b"m"), Batch(6, 0, 1, body=b"n"))
    effects = follower.receive(0, FetchReply(request.correlation, Error.NONE, 7, 4, batches), NOW)
    log = follower.state.log
    assert (log.log_start, log.hw, log.leo, log.epochs.entries) == (4, 7, 7, [(0, 4)])
    kinds = [Reset, StoreEpochs, StoreEpochs, Append, AdvanceStart]
    assert [type(e) for e in effects if isinstance(e, tuple(kinds))] == kinds
    storage = StoreStorage()
    storage.recover()
    for effect in (Reset(4), *(e for e in effects if isinstance(e, tuple(kinds)))):
        storage.perform(effect)
    assert storage.copy().recover().log.cells() == log.cells()
    assert storage.copy().recover().log.log_start == 4


@pytest.mark.parametrize("base", [2, 5])
def test_a_batch_that_does_not_touch_the_log_is_not_appended(base):
    """A8: before the log start, or behind the end."""
    follower = following()
    follower.state.log.reset(4)
    (request,) = sent(follower.fire(Timer.SEND_FETCH, 0, NOW), FetchRequest)
    batches = (Batch(base, 0, 2, body=b"m"),)
    effects = follower.receive(0, FetchReply(request.correlation, Error.NONE, 7, 4, batches), NOW)
    assert (follower.state.log.leo, [e for e in effects if isinstance(e, Append | Reset)]) == (4, [])


@pytest.mark.parametrize(("kept", "start"), [(3, 0), (2, 1), (1, 2), (0, 2)])
def test_retention_deletes_whole_batches_below_the_high_watermark(kept, start):
    """A35: as many of the oldest as permitted by the limit; two of three records are committed."""
    log = log_of(0, 0, 0)
    log.raise_hw(2)
    limit = kept * (BATCH_OVERHEAD_BYTES + 1)
    replica = following(log, config=Config(retention_bytes=limit, retention_check_ms=50))
    assert SetTimer(Timer.RETENTION, 50) in replica.start()
    effects = replica.fire(Timer.RETENTION, 0, NOW)
    assert (replica.state.log.log_start, effects[-1]) == (start, SetTimer(Timer.RETENTION, 50))
    assert effects[:-1] == ([AdvanceStart(start)] if start else [])


def test_nobody_retains_without_a_limit():
    """A35: -1 keeps all."""
    assert all(e.timer is not Timer.RETENTION for e in following().start() if isinstance(e, SetTimer))


def test_a_batch_that_is_cut_whole_takes_the_log_start_down():
    """A9, A21: as on disk, where a batch is kept or cut as one."""
    log = log_of(0)
    log.append(Batch(1, 0, 3))
    log.raise_hw(4)
    log.advance_start(2)
    log.truncate_to(3)
    assert (log.log_start, log.leo, log.hw) == (1, 1, 1)
