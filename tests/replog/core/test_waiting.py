"""The replies that a leader holds back, and the time of its answers; the timers that ring in every role."""

from __future__ import annotations

import pytest
from core_support import CLIENT, NOW, fetch, following, leading, log_of, metadata, produce, replica_of, sent

from replog.core.broker.state import Config
from replog.core.effects import Append, Flush, Send, SetTimer, StoreHighWatermark, Timer
from replog.core.messages import (
    AlterPartitionReply,
    AlterPartitionRequest,
    FetchReply,
    FetchRequest,
    ProduceReply,
)
from replog.core.types import Batch, BrokerImage, BrokerState, Error

CONSUMER = -20


def waiting_consumer(replica, offset=0):
    """Make a consumer wait at a leader for uncommitted records."""
    request = FetchRequest(7, -1, -1, offset, max_wait_ms=500)
    assert sent(replica.receive(CONSUMER, request, NOW), FetchReply) == []


def test_a_consumer_that_waits_is_answered_when_the_high_watermark_passes_a_record():
    """A7, I7: not at its deadline: it waits for HW, which a follower's fetch moves."""
    leader = leading()
    waiting_consumer(leader)
    assert sent(produce(leader, acks=1), FetchReply) == []
    replies = sent(fetch(leader, 1), FetchReply)
    assert [(r.correlation, r.high_watermark, len(r.batches)) for r in replies] == [(7, 1, 1), (1, 0, 0)]


def test_a_fetch_that_waits_is_refused_when_the_leader_resigns():
    """A4: NOT_LEADER_OR_FOLLOWER at once, not at its deadline."""
    leader = leading()
    waiting_consumer(leader)
    replies = sent(leader.apply(metadata(1, 1, 2), 1, NOW), FetchReply)
    assert replies == [FetchReply(7, Error.NOT_LEADER_OR_FOLLOWER)]


def test_a_batch_is_committed_with_its_last_record():
    """A3, A4: HW is exclusive, so a follower with one record of three does not have the batch."""
    leader = leading()
    produce(leader, count=3)
    assert sent(fetch(leader, 1), ProduceReply) == []
    assert sent(fetch(leader, 2), ProduceReply) == []
    assert sent(fetch(leader, 3), ProduceReply) == [ProduceReply(1, Error.NONE, 0)]


def test_a_member_that_is_only_proposed_does_not_count_for_the_minimum():
    """A1: the controller may refuse it, and the record would have fewer copies than promised."""
    leader = leading(log_of(0, 0), isr=(0,), min_isr=2)
    assert len(sent(fetch(leader, 2), AlterPartitionRequest)) == 1
    assert sent(produce(leader)) == [ProduceReply(1, Error.NOT_ENOUGH_REPLICAS, -1)]


def test_a_follower_at_the_high_watermark_joins_before_that_moves_on():
    """A6, A11: otherwise HW, which no longer waits for a late follower, would pass it in the same step."""
    leader = leading(log_of(0, 0, 0, 0), isr=(0,))
    (first,) = sent(fetch(leader, 4), AlterPartitionRequest)
    leader.receive(-1, AlterPartitionReply(first.correlation, Error.INELIGIBLE_REPLICA), NOW)
    produce(leader, acks=1)
    produce(leader, acks=1)
    assert leader.state.log.hw == 4, "the follower is in time, so HW waits for it"
    late = NOW + leader.state.config.lag_ms + 1
    (again,) = sent(fetch(leader, 5, now=late), AlterPartitionRequest)
    assert [member for member, _ in again.new_isr] == [0, 1]
    assert leader.state.log.hw == 5


def test_the_minimum_of_the_metadata_replaces_the_configured_one():
    """A1: from the image on that has it."""
    leader = leading(isr=(0,))
    image = metadata(0, 0, 2, (0,))
    (name,) = image.partitions
    stricter = type(image.partitions[name])((0, 1), 0, 0, 2, (0,), min_isr=2)
    leader.apply(type(image)(2, {name: stricter}, image.brokers), 1, NOW)
    assert sent(produce(leader)) == [ProduceReply(1, Error.NOT_ENOUGH_REPLICAS, -1)]


def test_an_image_with_a_smaller_isr_moves_the_high_watermark():
    """A7c: the member that HW waited for may be the one that left."""
    leader = leading(log_of(0))
    assert leader.state.log.hw == 0
    leader.apply(metadata(0, 0, 2, (0,)), 1, NOW)
    assert leader.state.log.hw == 1


def test_a_follower_whose_registration_is_news_to_the_leader_may_fetch():
    """KIP-903: a later broker epoch than the metadata's is a later incarnation, not an earlier one."""
    leader = leading(log_of(0))
    leader.state.brokers = {**leader.state.brokers, 1: BrokerImage(2, BrokerState.ACTIVE)}
    (reply,) = sent(fetch(leader, 0, broker_epoch=3), FetchReply)
    assert (reply.error, len(reply.batches)) == (Error.NONE, 1)


@pytest.mark.parametrize(
    "replica", [replica_of(1), following(), leading()], ids=["none", "follower", "leader"]
)
def test_the_periodic_timers_are_armed_again_in_every_role(replica):
    """A10, A25: a broker that becomes a leader later must check, and write checkpoints."""
    assert SetTimer(Timer.ISR_CHECK, 5_000) in replica.fire(Timer.ISR_CHECK, 0, NOW)
    assert SetTimer(Timer.HW_CHECKPOINT, 5_000) in replica.fire(Timer.HW_CHECKPOINT, 0, NOW)


def test_only_a_replica_with_a_role_writes_its_high_watermark():
    """A25: before the first metadata it would replace the state of the last process."""
    assert StoreHighWatermark(0) not in replica_of(1).fire(Timer.HW_CHECKPOINT, 0, NOW)
    assert StoreHighWatermark(0) in following().fire(Timer.HW_CHECKPOINT, 0, NOW)


def test_a_follower_flushes_by_the_policy_too():
    """A3: acks=all promises as many durable copies as the policy of each broker determines."""
    follower = following(config=Config(flush_messages=2))
    (request,) = sent(follower.fire(Timer.SEND_FETCH, 0, NOW))
    reply = FetchReply(request.correlation, Error.NONE, 0, 0, (Batch(0, 0, 1), Batch(1, 0, 1)))
    kinds = [type(effect) for effect in follower.receive(0, reply, NOW)]
    assert kinds.index(Flush) == kinds.index(Append) + 1


def test_a_consumer_may_read_on_a_follower_up_to_its_log_end():
    """A30, KIP-392: between its HW and its end there is nothing to read yet."""
    follower = following(log_of(0, 0), config=Config(follower_read=True))
    follower.state.log.assign_hw(1)
    for offset, error in ((1, Error.NONE), (2, Error.NONE), (3, Error.OFFSET_OUT_OF_RANGE)):
        (reply,) = sent(follower.receive(CLIENT, FetchRequest(1, -1, -1, offset), NOW))
        assert (reply.error, reply.batches) == (error, ())


def test_what_a_member_has_lost_does_not_count_any_more():
    """A6: a fetch below an earlier one reverts the acknowledgement; HW waits for the lower of both."""
    leader = leading(log_of(0, 0), isr=(0, 1, 2), brokers=3)
    fetch(leader, 2)
    fetch(leader, 1)
    fetch(leader, 2, replica_id=2, broker_epoch=3)
    assert leader.state.log.hw == 1


def test_two_senders_may_use_the_same_correlation():
    """A6: the timer of one's fetch does not end the other's, which started later."""
    leader = leading()
    waits = [
        effect
        for source, now in ((-20, NOW), (-21, NOW + 100))
        for effect in leader.receive(source, FetchRequest(7, -1, -1, 0, max_wait_ms=500), now)
        if isinstance(effect, SetTimer)
    ]
    (first,) = (e for e in leader.fire(Timer.FETCH_WAIT, waits[0].token, NOW + 500) if isinstance(e, Send))
    assert (first.to, [w.source for w in leader.state.leading.fetches]) == (-20, [-21])
    (second,) = (e for e in leader.fire(Timer.FETCH_WAIT, waits[1].token, NOW) if isinstance(e, Send))
    assert second.to == -21
