"""The ISR at its leader: lagging, joining, one proposal in flight, every outcome."""

from __future__ import annotations

from dataclasses import replace

import pytest
from core_support import NOW, fetch, leading, log_of, metadata, produce, sent

from replog.core.broker import isr
from replog.core.broker.state import Remote
from replog.core.effects import SetTimer, Timer
from replog.core.messages import AlterPartitionReply, AlterPartitionRequest
from replog.core.protocol import CURRENT, CaughtUpRule, MaximalIsr
from replog.core.types import BrokerImage, BrokerState, Error


def proposals(effects):
    return sent(effects, AlterPartitionRequest)


def lead(replica):
    assert replica.state.leading is not None
    return replica.state.leading


def test_the_example_of_the_reference_stays_in_sync_by_the_two_branch_rule():
    """F8: 100 at t0, 100 at t5, 200 at t9 with the leader at 100, 200, 300 -> caught up at t0, t0, t5."""
    for rule, expected in ((CaughtUpRule.TWO_BRANCHES, [0, 0, 5]), (CaughtUpRule.REACHED_LEO, [0, 0, 0])):
        state = leading(protocol=replace(CURRENT, caught_up=rule)).state
        remote, seen = Remote(), []
        for at, offset, leo in ((0, 100, 100), (5, 100, 200), (9, 200, 300)):
            isr.note_fetch(state, remote, offset, leo, at)
            seen.append(remote.last_caught_up_ms)
        assert seen == expected


def test_a_member_is_removed_after_the_lag_limit_and_not_while_it_is_at_the_leo():
    """A10: LEO differs and lastCaughtUp is longer ago than the limit, both strictly."""
    leader = leading(log_of(0))
    assert proposals(leader.fire(Timer.ISR_CHECK, 0, NOW + 10_000)) == []
    (proposal,) = proposals(leader.fire(Timer.ISR_CHECK, 0, NOW + 10_001))
    assert [member for member, _ in proposal.new_isr] == [0]
    caught_up = leading(log_of(0))
    fetch(caught_up, 1)
    assert proposals(caught_up.fire(Timer.ISR_CHECK, 0, NOW + 99_000)) == []


def test_the_lag_limit_begins_when_a_member_was_last_caught_up():
    """A10: at the LEO nine seconds after the start, behind since: stays for ten more seconds."""
    leader = leading(log_of(0))
    fetch(leader, 1, now=NOW + 9_000)
    produce(leader, acks=1, now=NOW + 9_001)
    assert proposals(leader.fire(Timer.ISR_CHECK, 0, NOW + 19_000)) == []
    assert len(proposals(leader.fire(Timer.ISR_CHECK, 0, NOW + 19_001))) == 1


def test_a_follower_that_does_not_say_its_broker_epoch_may_join():
    """KIP-903: -1 is sent by older versions."""
    (proposal,) = proposals(fetch(expansion(), 2, broker_epoch=-1))
    assert proposal.new_isr == ((0, 1), (1, -1))


def test_a_fetch_of_a_former_life_counted_under_the_old_rule():
    """B18, before KIP-903."""
    for rules, leo in ((CURRENT, -1), (replace(CURRENT, checks_broker_epoch=False), 1)):
        leader = leading(log_of(0), protocol=rules)
        fetch(leader, 1, broker_epoch=1)
        assert lead(leader).remotes[1].leo == leo


def test_the_isr_is_looked_at_twice_in_a_lag_limit():
    """A10: every lag.time.max.ms / 2."""
    leader = leading()
    assert leader.fire(Timer.ISR_CHECK, 0, NOW) == [SetTimer(Timer.ISR_CHECK, 5_000)]


def test_a_member_that_fetches_and_is_always_behind_is_removed():
    """I10: a fetch below the LEO does not count as having caught up, however many there are."""
    leader = leading(log_of(0))
    for seconds in range(1, 11):
        fetch(leader, 0, now=NOW + 1_000 * seconds)
    (proposal,) = proposals(leader.fire(Timer.ISR_CHECK, 0, NOW + 10_001))
    assert [member for member, _ in proposal.new_isr] == [0]


def test_only_one_proposal_is_in_flight_and_it_is_sent_again_as_it_was():
    """A13: nothing new is proposed while one waits; the retry repeats it under a new number."""
    leader = leading(log_of(0))
    (first,) = proposals(leader.fire(Timer.ISR_CHECK, 0, NOW + 10_001))
    assert proposals(leader.fire(Timer.ISR_CHECK, 0, NOW + 20_000)) == []
    (again,) = proposals(leader.fire(Timer.ALTER_RETRY, first.correlation, NOW + 20_000))
    assert again.correlation > first.correlation
    assert replace(again, correlation=first.correlation) == first
    assert proposals(leader.fire(Timer.ALTER_RETRY, first.correlation, NOW + 30_000)) == []


@pytest.mark.parametrize("error", sorted(isr.ROLLED_BACK))
def test_a_refusal_of_an_earlier_attempt_does_not_roll_a_later_one_back(error):
    """The first came too early, the second may be granted: HW waits for both sets until its answer."""
    leader, number = pending_leader()
    (again,) = proposals(leader.fire(Timer.ALTER_RETRY, number, NOW + 1_000))
    leader.receive(-1, AlterPartitionReply(number, error), NOW + 1_000)
    assert lead(leader).pending is not None
    assert isr.maximal_isr(leader.state, lead(leader)) == (0, 1)
    leader.receive(-1, AlterPartitionReply(again.correlation, Error.NONE, 0, 2, (0, 1)), NOW + 1_000)
    assert (lead(leader).isr, lead(leader).pending) == ((0, 1), None)


def expansion(**fields):
    """A leader of epoch 0 alone in the ISR, at LEO 2 with HW 2."""
    return leading(log_of(0, 0), isr=(0,), **fields)


def test_a_proposal_is_for_the_incarnation_that_was_caught_up():
    """KIP-903: one that has lost its records since then must not join by a retry with its own epoch."""
    leader = expansion()
    (first,) = proposals(fetch(leader, 2))
    assert dict(first.new_isr)[1] == 2
    assert proposals(fetch(leader, 0, now=NOW + 1, broker_epoch=3)) == []
    (again,) = proposals(leader.fire(Timer.ALTER_RETRY, first.correlation, NOW + 1_000))
    assert again.new_isr == first.new_isr


def test_a_replica_joins_only_at_the_high_watermark():
    """A11, B30: LEO >= HW; the fetch that reaches it proposes the expansion."""
    leader = expansion()
    assert leader.state.log.hw == 2
    assert proposals(fetch(leader, 1)) == []
    (proposal,) = proposals(fetch(leader, 2))
    assert proposal.new_isr == ((0, 1), (1, 2))


def test_a_replica_joins_only_at_the_start_of_the_leaders_epoch():
    """A11, B5: with HW below leso the follower still needs leso."""
    for rules, count in ((CURRENT, 0), (replace(CURRENT, expand_needs_leso=False), 1)):
        leader = leading(log_of(0, 0), epoch=1, isr=(0, 2), brokers=3, protocol=rules)
        assert len(proposals(fetch(leader, 1, epoch=1))) == count


@pytest.mark.parametrize(
    "image",
    [
        BrokerImage(2, BrokerState.FENCED),
        BrokerImage(2, BrokerState.SHUTTING_DOWN),
        BrokerImage(1, BrokerState.ACTIVE),
    ],
)
def test_a_fenced_leaving_or_other_incarnation_does_not_join(image):
    """KIP-841, KIP-903: the metadata must have the fetching incarnation, active."""
    leader = expansion()
    leader.state.brokers = {**leader.state.brokers, 1: image}
    assert proposals(fetch(leader, 2)) == []


def test_while_an_expansion_is_in_flight_the_newcomer_already_counts():
    """KIP-497: HW waits for the maximal ISR; without that rule it runs ahead (B14)."""
    for rule, hw in ((MaximalIsr.EAGER_EXPAND, 2), (MaximalIsr.NONE, 3)):
        rules = replace(CURRENT, maximal_isr=rule, waits_for_caught_up=False)
        leader = expansion(protocol=rules)
        fetch(leader, 2)
        produce(leader, acks=1)
        assert leader.state.log.hw == hw


def test_while_a_shrink_is_in_flight_the_laggard_still_counts():
    """A10: maximal ISR stays the committed one; an eager shrink runs ahead (B14)."""
    for rule, hw in ((MaximalIsr.EAGER_EXPAND, 0), (MaximalIsr.EAGER_SHRINK, 2)):
        leader = leading(log_of(0), protocol=replace(CURRENT, maximal_isr=rule))
        leader.fire(Timer.ISR_CHECK, 0, NOW + 10_001)
        produce(leader, acks=1, now=NOW + 10_001)
        assert leader.state.log.hw == hw


def pending_leader():
    leader = expansion()
    (proposal,) = proposals(fetch(leader, 2))
    return leader, proposal.correlation


@pytest.mark.parametrize("error", sorted(isr.ROLLED_BACK))
def test_a_refusal_for_good_goes_back_to_the_committed_isr(error):
    """A13: OPERATION_NOT_ATTEMPTED and INELIGIBLE_REPLICA roll back."""
    leader, number = pending_leader()
    leader.receive(-1, AlterPartitionReply(number, error), NOW)
    assert lead(leader).pending is None
    assert lead(leader).isr == (0,)


@pytest.mark.parametrize("error", sorted(isr.OUTCOME_UNKNOWN))
def test_an_unknown_outcome_keeps_the_proposal_until_metadata_arrives(error):
    """A13: the controller may have applied it, or another; the maximal ISR stays until an image decides."""
    leader, number = pending_leader()
    assert leader.receive(-1, AlterPartitionReply(number, error), NOW) == []
    assert lead(leader).pending is not None
    leader.apply(metadata(0, 0, 2, (0, 1), version=2), 1, NOW)
    assert (lead(leader).pending, lead(leader).isr) == (None, (0, 1))


def test_any_other_error_is_tried_again():
    """A13: the same proposal goes out after the retry time."""
    leader, number = pending_leader()
    (timer,) = leader.receive(-1, AlterPartitionReply(number, Error.NOT_CONTROLLER), NOW)
    assert (timer.timer, timer.token) == (Timer.ALTER_RETRY, number)


def test_a_success_commits_the_controllers_isr_and_its_epoch():
    """A13: Committed(isr of the reply), partition epoch of the reply."""
    leader, number = pending_leader()
    leader.receive(-1, AlterPartitionReply(number, Error.NONE, 0, 2, (0, 1)), NOW)
    assert (lead(leader).isr, lead(leader).pending, leader.state.partition_epoch) == ((0, 1), None, 2)


@pytest.mark.parametrize(("epoch", "partition_epoch", "shift"), [(1, 2, 0), (0, 0, 0), (0, 2, 1)])
def test_a_success_of_another_epoch_an_older_state_or_another_proposal_is_ignored(
    epoch, partition_epoch, shift
):
    """A13: ignored if the state is no longer the one proposed."""
    leader, number = pending_leader()
    leader.receive(-1, AlterPartitionReply(number + shift, Error.NONE, epoch, partition_epoch, (0, 1)), NOW)
    assert lead(leader).pending is not None
