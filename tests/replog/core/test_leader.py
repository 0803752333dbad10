"""A leader: produce, fetch, high watermark, waiting requests, fences, and lying requests."""

from __future__ import annotations

from dataclasses import replace

import pytest
from core_support import NOW, batch, fetch, following, leading, log_of, metadata, produce, replica_of, sent

from replog.core.broker.state import Config
from replog.core.effects import Append, Flush, Send, SetTimer, StoreEpochs, Timer
from replog.core.messages import (
    EARLIEST,
    LATEST,
    AlterPartitionReply,
    AlterPartitionRequest,
    EpochEndRequest,
    FetchReply,
    FetchRequest,
    ListOffsetsReply,
    ListOffsetsRequest,
    ProduceReply,
    ProduceRequest,
)
from replog.core.protocol import CURRENT
from replog.core.types import Batch, EpochEnd, Error


def test_two_fetches_move_the_high_watermark():
    """F1: the first fetch carries the record, the second acknowledges it; its answer waited."""
    leader = leading()
    assert sent(produce(leader, acks=1)) == [ProduceReply(1, Error.NONE, 0)]
    (first,) = sent(fetch(leader, 0, max_wait_ms=500))
    assert (first.high_watermark, len(first.batches)) == (0, 1)
    assert leader.state.log.hw == 0
    (wait,) = (e for e in fetch(leader, 1, max_wait_ms=500) if isinstance(e, SetTimer))
    assert leader.state.log.hw == 1
    (second,) = sent(leader.fire(Timer.FETCH_WAIT, wait.token, NOW))
    assert (second.high_watermark, second.batches) == (1, ())


def test_an_answer_with_records_carries_the_high_watermark_from_before_the_fetch():
    """I7: the response HW is read before the fetch raises it."""
    leader = leading()
    produce(leader, acks=1)
    fetch(leader, 0)
    produce(leader, acks=1)
    (reply,) = sent(fetch(leader, 1))
    assert reply.high_watermark == 0
    assert leader.state.log.hw == 1


def test_acks_all_waits_for_the_high_watermark():
    """F2: no answer before HW has passed the record, then success with its offset."""
    leader = leading(min_isr=2)
    assert sent(produce(leader)) == []
    assert sent(fetch(leader, 0), ProduceReply) == []
    assert sent(fetch(leader, 1), ProduceReply) == [ProduceReply(1, Error.NONE, 0)]


def test_a_leader_alone_in_the_isr_commits_at_once():
    """A7a: with ISR = {leader} HW follows the produce itself."""
    leader = leading(isr=(0,))
    assert sent(produce(leader)) == [ProduceReply(1, Error.NONE, 0)]
    assert leader.state.log.hw == 1


def test_too_small_an_isr_refuses_acks_all_and_takes_acks_one():
    """A1: NOT_ENOUGH_REPLICAS appends nothing; acks=1 is not gated, and HW stays (KAFKA-15583)."""
    leader = leading(isr=(0,), min_isr=2)
    assert sent(produce(leader)) == [ProduceReply(1, Error.NOT_ENOUGH_REPLICAS, -1)]
    assert leader.state.log.leo == 0
    assert sent(produce(leader, acks=1)) == [ProduceReply(1, Error.NONE, 0)]
    assert leader.state.log.hw == 0


def test_min_isr_is_capped_by_the_number_of_replicas():
    """A1: effMinIsr = min(min.insync.replicas, |AR|)."""
    leader = leading(isr=(0,), brokers=1, min_isr=3)
    assert sent(produce(leader)) == [ProduceReply(1, Error.NONE, 0)]


def test_acks_zero_is_never_answered():
    """A1: acks=0 has no reply, not even for an error."""
    assert sent(produce(leading(), acks=0)) == []
    assert sent(produce(following(), acks=0)) == []


def test_the_epoch_entry_is_written_before_the_first_record_and_the_flush_before_the_answer():
    """A3, and the flush policy: effects are in an order in which a crash between them is safe."""
    leader = leading(isr=(0,), config=Config(flush_messages=1))
    leader.state.log.epochs.entries.clear()
    kinds = [type(effect) for effect in produce(leader)]
    assert kinds == [StoreEpochs, Append, Flush, Send]


def test_a_duplicate_is_answered_with_its_old_offset_and_not_appended():
    """A2: the retry of a batch in the log succeeds, once it is committed."""
    leader = leading(isr=(0,))
    first = produce(leader, producer_id=7, producer_epoch=0, first_seq=0)
    again = produce(leader, number=2, producer_id=7, producer_epoch=0, first_seq=0)
    assert sent(first) == [ProduceReply(1, Error.NONE, 0)]
    assert sent(again) == [ProduceReply(2, Error.NONE, 0)]
    assert leader.state.log.leo == 1


def test_the_first_of_five_batches_in_flight_may_be_sent_again():
    """A2, KIP-98: five may be in flight, so the retry of any of them is a duplicate, not a gap."""
    leader = leading(isr=(0,))
    for number in range(5):
        produce(leader, number=number, producer_id=7, producer_epoch=0, first_seq=number)
    again = produce(leader, number=9, producer_id=7, producer_epoch=0, first_seq=0)
    assert sent(again) == [ProduceReply(9, Error.NONE, 0)]
    assert leader.state.log.leo == 5


def test_a_producer_that_was_replaced_is_refused():
    """KIP-98: after a batch of a later producer epoch nothing of the earlier one is appended."""
    leader = leading(isr=(0,))
    produce(leader, producer_id=7, producer_epoch=1, first_seq=0)
    (reply,) = sent(produce(leader, number=2, producer_id=7, producer_epoch=0, first_seq=1))
    assert reply.error is Error.INVALID_PRODUCER_EPOCH
    assert leader.state.log.leo == 1


def test_waiting_produces_fail_when_the_leader_resigns_or_time_is_up():
    """A4: NOT_LEADER_OR_FOLLOWER on resigning, REQUEST_TIMED_OUT at the deadline; the record stays."""
    leader = leading()
    produce(leader)
    assert sent(leader.fire(Timer.PRODUCE_TIMEOUT, 0, NOW + 999)) == []
    assert sent(leader.fire(Timer.PRODUCE_TIMEOUT, 0, NOW + 1_000)) == [
        ProduceReply(1, Error.REQUEST_TIMED_OUT, -1)
    ]
    produce(leader, number=2)
    out = leader.apply(metadata(1, 1, 2), 1, NOW)
    assert sent(out, ProduceReply) == [ProduceReply(2, Error.NOT_LEADER_OR_FOLLOWER, -1)]
    assert leader.state.log.leo == 2


def test_the_timer_of_waiting_produces_rings_for_the_first_that_is_due():
    """Also if a clock has jumped back in between, so that the later one is due first."""
    leader = leading()
    produce(leader, now=NOW + 500)
    produce(leader, number=2, now=NOW)
    produce(leader, number=3, now=NOW + 900)
    out = leader.fire(Timer.PRODUCE_TIMEOUT, 0, NOW + 1_000)
    assert sent(out) == [ProduceReply(2, Error.REQUEST_TIMED_OUT, -1)]
    assert SetTimer(Timer.PRODUCE_TIMEOUT, 500) in out


def test_the_first_producer_id_is_one():
    """KIP-98: 0 is a producer like any other; a gap in its sequence is refused."""
    leader = leading(isr=(0,))
    produce(leader, producer_id=0, producer_epoch=0, first_seq=0)
    again = produce(leader, number=2, producer_id=0, producer_epoch=0, first_seq=0)
    assert sent(again) == [ProduceReply(2, Error.NONE, 0)]
    gap = produce(leader, number=3, producer_id=0, producer_epoch=0, first_seq=5)
    assert sent(gap) == [ProduceReply(3, Error.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)]
    assert leader.state.log.leo == 1


def test_a_new_leader_knows_nothing_of_its_followers():
    """A18: LEOs unknown, HW unchanged, leso and epoch entry at the LEO; LATEST not available yet (F3)."""
    log = log_of(0, 0)
    log.assign_hw(1)
    leader = leading(log, epoch=5)
    state = leader.state
    assert state.leading is not None
    assert (state.leading.leso, state.leading.remotes[1].leo, state.log.hw) == (2, -1, 1)
    assert state.log.epochs.entries == [(0, 0), (5, 2)]
    (reply,) = sent(leader.receive(-10, ListOffsetsRequest(1, -1, -1, LATEST), NOW))
    assert reply.error is Error.OFFSET_NOT_AVAILABLE
    fetch(leader, 2, epoch=5)
    (reply,) = sent(leader.receive(-10, ListOffsetsRequest(1, -1, -1, LATEST), NOW))
    assert (reply.error, reply.offset) == (Error.NONE, 2)


def test_a_diverging_fetch_gets_the_end_of_the_common_epoch_and_counts_for_nothing():
    """F5, B9: Fetch(5, last epoch 1) against (0,0)(2,3) -> Diverging(0, 3), and remote LEO stays unknown."""
    leader = leading(log_of(0, 0, 0, 2, 2, 2), epoch=2)
    (reply,) = sent(fetch(leader, 5, epoch=2, last_fetched_epoch=1))
    assert reply.diverging == EpochEnd(0, 3)
    assert reply.batches == ()
    assert leader.state.leading is not None
    assert leader.state.leading.remotes[1].leo == -1


@pytest.mark.parametrize("wrong", [{"producer_epoch": -1}, {"first_seq": -1}])
@pytest.mark.parametrize("producer_id", [0, 7])
def test_a_producer_without_epoch_or_sequence_is_refused(wrong, producer_id):
    """KIP-98: a producer with an id has both."""
    leader = leading(isr=(0,))
    fields = {"producer_epoch": 0, "first_seq": 0, **wrong}
    assert sent(produce(leader, producer_id=producer_id, **fields)) == [
        ProduceReply(1, Error.INVALID_RECORD, -1)
    ]


@pytest.mark.parametrize("wait_ms", [-1, 0, 1, 2])
def test_a_fetch_waits_for_any_time_above_zero(wait_ms):
    """A6: one millisecond is a time to wait; zero, or less, is none."""
    leader = leading()
    effects = fetch(leader, 0, max_wait_ms=wait_ms)
    waits = [effect.delay_ms for effect in effects if isinstance(effect, SetTimer)]
    assert waits == ([wait_ms] if wait_ms > 0 else [])
    assert len(sent(effects)) == (0 if wait_ms > 0 else 1)


def test_a_fetch_that_waits_does_so_for_the_whole_time():
    """A6: the timer of another fetch does not end it, its own deadline does."""
    leader = leading()
    fetch(leader, 0, max_wait_ms=500)
    assert sent(leader.fire(Timer.FETCH_WAIT, 77, NOW + 499)) == []
    assert len(sent(leader.fire(Timer.FETCH_WAIT, 77, NOW + 500))) == 1


def test_a_replica_is_told_the_log_end_whichever_it_is():
    """A20, A30: a consumer would have to wait for the start of the epoch to be committed."""
    leader = replica_of(1, log_of(0, 0))
    leader.apply(metadata(1), 2, NOW)
    (reply,) = sent(leader.receive(0, ListOffsetsRequest(1, 0, -1, LATEST), NOW))
    assert reply == ListOffsetsReply(1, Error.NONE, 2)
    (reply,) = sent(leader.receive(0, ListOffsetsRequest(2, -1, -1, LATEST), NOW))
    assert reply == ListOffsetsReply(2, Error.OFFSET_NOT_AVAILABLE, -1)


def test_a_consumer_of_a_follower_gets_one_answer():
    """A30, KIP-392."""
    replica = following(log_of(0, 0), config=Config(follower_read=True))
    replica.state.log.assign_hw(2)
    (reply,) = sent(fetch(replica, 0, epoch=-1, replica_id=-1))
    assert (reply.error, len(reply.batches)) == (Error.NONE, 2)


def test_a_follower_does_not_say_where_epochs_end():
    """A20: only the leader's log decides."""
    (reply,) = sent(following(log_of(0)).receive(0, EpochEndRequest(1, 0, -1, 0), NOW))
    assert reply.error is Error.NOT_LEADER_OR_FOLLOWER


def test_an_old_epoch_is_refused_as_such_by_a_follower_too():
    """A22: fencing comes before the question who leads."""
    replica = following(log_of(0), epoch=3)
    (reply,) = sent(replica.receive(0, EpochEndRequest(1, 0, 2, 0), NOW))
    assert reply.error is Error.FENCED_LEADER_EPOCH


@pytest.mark.parametrize("only", ["fences_fetch", "fences_truncation"])
def test_truncation_and_fetches_are_fenced_by_rules_of_their_own(only):
    """A22: each rule applies to its own request; the other passes with an epoch that has ended."""
    rules = replace(CURRENT, **{"fences_fetch": False, "fences_truncation": False, only: True})
    leader = leading(log_of(3), epoch=3, protocol=rules)
    requests = {
        "fences_truncation": EpochEndRequest(1, 1, 2, 3),
        "fences_fetch": ListOffsetsRequest(1, 1, 2, LATEST),
    }
    for name, request in requests.items():
        (reply,) = sent(leader.receive(1, request, NOW))
        assert reply.error is (Error.FENCED_LEADER_EPOCH if name == only else Error.NONE)


def test_a_diverging_fetch_counted_under_the_old_rule():
    """B9, KAFKA-13141 (before 2.8.1): its offset was treated as an acknowledgement."""
    old = replace(CURRENT, updates_on_diverge=True)
    leader = leading(log_of(0, 0, 0, 2, 2, 2), epoch=2, protocol=old)
    fetch(leader, 5, epoch=2, last_fetched_epoch=1)
    assert leader.state.leading is not None
    assert leader.state.leading.remotes[1].leo == 5


def test_consumers_read_below_the_high_watermark_only():
    """A30: [position, HW); nothing between HW and LEO; an error outside the log."""
    leader = leading(log_of(0, 0, 0))
    leader.state.log.raise_hw(2)
    (reply,) = sent(leader.receive(-10, FetchRequest(1, -1, -1, 0), NOW))
    assert [b.base_offset for b in reply.batches] == [0, 1]
    (reply,) = sent(leader.receive(-10, FetchRequest(1, -1, -1, 2), NOW))
    assert (reply.error, reply.batches) == (Error.NONE, ())
    (reply,) = sent(leader.receive(-10, FetchRequest(1, -1, -1, 4), NOW))
    assert reply.error is Error.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize(
    ("epoch", "error"),
    [(2, Error.FENCED_LEADER_EPOCH), (4, Error.UNKNOWN_LEADER_EPOCH), (3, Error.NONE), (-1, Error.NONE)],
)
def test_requests_of_another_epoch_are_fenced(epoch, error):
    """A22: lower 74, higher 75, equal or absent served; for fetch, list offsets and end of epoch alike."""
    leader = leading(epoch=3)
    requests = (
        FetchRequest(1, 1, epoch, 0, broker_epoch=2),
        ListOffsetsRequest(1, 1, epoch, EARLIEST),
        EpochEndRequest(1, 1, epoch, 3),
    )
    for request in requests:
        (reply,) = [
            m for m in sent(leader.receive(1, request, NOW)) if not isinstance(m, AlterPartitionRequest)
        ]
        assert reply.error is error


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (ProduceRequest(1, batch(), 2, 0), Error.INVALID_REQUIRED_ACKS),
        (ProduceRequest(1, batch(), -7, 0), Error.INVALID_REQUIRED_ACKS),
        (ProduceRequest(1, Batch(5, -1, 1), 1, 0), Error.INVALID_RECORD),
        (ProduceRequest(1, Batch(0, -1, 0), 1, 0), Error.INVALID_RECORD),
        (ProduceRequest(1, Batch(0, -1, -3), 1, 0), Error.INVALID_RECORD),
        (ProduceRequest(1, Batch(0, -1, 1, 7, 0, -5), 1, 0), Error.INVALID_RECORD),
        (ProduceRequest(1, Batch(0, -1, 1, body=b"x" * (1 << 20)), 1, 0), Error.MESSAGE_TOO_LARGE),
        (FetchRequest(1, 9, 0, 0), Error.UNKNOWN_LEADER_EPOCH),
        (FetchRequest(1, 9, -1, 0), Error.NOT_LEADER_OR_FOLLOWER),
        (FetchRequest(1, 1, 0, -4), Error.OFFSET_OUT_OF_RANGE),
        (FetchRequest(1, 1, 0, 1 << 62), Error.OFFSET_OUT_OF_RANGE),
        (FetchRequest(1, 1, 0, 0, last_fetched_epoch=99), Error.OFFSET_OUT_OF_RANGE),
        (FetchRequest(1, 1, 0, 0, broker_epoch=1), Error.NOT_LEADER_OR_FOLLOWER),
        (EpochEndRequest(1, 1, 77, 0), Error.UNKNOWN_LEADER_EPOCH),
        (ListOffsetsRequest(1, 1, 77, LATEST), Error.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_a_request_that_lies_gets_kafkas_error_and_changes_nothing(request_, error):
    """Unknown epochs, replicas and offsets, negative counts: the reference's code, the log untouched."""
    leader = leading()
    before = leader.state.copy()
    (reply,) = sent(leader.receive(-10, request_, NOW))
    assert reply.error is error
    assert leader.state == before


def test_a_partition_is_known_from_its_epoch_0_on():
    """Kafka counts partition epochs from 0: the first image is valid."""
    leader = replica_of(0)
    leader.apply(metadata(0, 0, 0), 1, NOW)
    for request in (FetchRequest(1, 1, 0, 0, broker_epoch=2), EpochEndRequest(1, 1, 0, 0)):
        (reply,) = sent(leader.receive(1, request, NOW))
        assert reply.error is Error.NONE


def test_a_copy_has_the_produces_that_wait():
    """Two states with different waiting produces are not equal, though their logs are."""
    leader = leading()
    produce(leader)
    before = leader.state.copy()
    assert before == leader.state
    assert before.leading is not None
    before.leading.produces.clear()
    assert before != leader.state


def test_a_replica_without_metadata_knows_no_partition():
    """UNKNOWN_TOPIC_OR_PARTITION before the first image; NOT_LEADER_OR_FOLLOWER at a follower."""
    fresh = replica_of(0)
    assert sent(fresh.receive(-10, ProduceRequest(1, batch(), 1, 0), NOW))[0].error is (
        Error.UNKNOWN_TOPIC_OR_PARTITION
    )
    assert sent(fresh.receive(1, FetchRequest(1, 1, 0, 0), NOW))[0].error is Error.UNKNOWN_TOPIC_OR_PARTITION
    assert sent(produce(following(), acks=1))[0].error is Error.NOT_LEADER_OR_FOLLOWER
    assert (
        sent(following().receive(0, FetchRequest(1, 0, 0, 0), NOW))[0].error is Error.NOT_LEADER_OR_FOLLOWER
    )


def test_a_fetch_with_a_negative_byte_limit_still_gets_one_batch():
    """At least one batch is returned, as in Kafka, so a wrong limit cannot stall replication."""
    leader = leading(log_of(0, 0))
    (reply,) = sent(fetch(leader, 0, max_bytes=-5), FetchReply)
    assert len(reply.batches) == 1


def test_high_watermark_moves_when_a_shrink_succeeds():
    """A7d, KAFKA-13091: removing the lagging replica commits the records that the others have."""
    leader = leading(log_of(0, 0))
    out = leader.fire(Timer.ISR_CHECK, 0, NOW + 10_001)
    (proposal,) = sent(out, AlterPartitionRequest)
    assert leader.state.log.hw == 0
    leader.receive(-1, AlterPartitionReply(proposal.correlation, Error.NONE, 0, 2, (0,)), NOW + 10_001)
    assert leader.state.log.hw == 2


def test_a_fetch_that_waits_is_refused_when_a_later_epoch_begins():
    """A22: a leader that missed an epoch answers no earlier fetch with its present records."""
    leader = leading(log_of(0), isr=(0,))
    assert sent(fetch(leader, 1, max_wait_ms=500), FetchReply) == []
    (reply,) = sent(leader.apply(metadata(0, 2, 2, (0,)), 1, NOW + 1), FetchReply)
    assert reply.error is Error.FENCED_LEADER_EPOCH
    assert sent(produce(leader), FetchReply) == []


def test_a_fetch_goes_on_waiting_when_only_the_isr_is_news():
    """A18: a newer image of the same epoch does not affect waiting fetches."""
    leader = leading(log_of(0), isr=(0,))
    assert sent(fetch(leader, 1, max_wait_ms=500), FetchReply) == []
    assert sent(leader.apply(metadata(0, 0, 2, (0, 1)), 1, NOW + 1), FetchReply) == []
    (reply,) = sent(produce(leader), FetchReply)
    assert (reply.error, len(reply.batches)) == (Error.NONE, 1)
