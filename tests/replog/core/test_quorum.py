"""Controllers of a quorum: votes, one log, answers after the commit, and failover (A36)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from core_support import NOW, PARTITION
from quorum_support import CONFIG, VOTERS, A, B, C, Trio, first_record, inner

from replog.core.effects import Fired, Received, Send, SetTimer, StoreRecords, StoreVote, Timer
from replog.core.messages import (
    AlterPartitionReply,
    AlterPartitionRequest,
    ElectReply,
    ElectRequest,
    HeartbeatReply,
    HeartbeatRequest,
    MetadataRequest,
    MetadataUpdate,
    OfTerm,
    RegisterReply,
    RegisterRequest,
)
from replog.core.protocol import CURRENT, RecordIs
from replog.core.quorum import records
from replog.core.quorum.node import ELECTION_MS, NOBODY, ControllerNode
from replog.core.quorum_messages import (
    LogEnd,
    MetadataFetch,
    MetadataFetchReply,
    NotController,
    VoteReply,
    VoteRequest,
)
from replog.core.types import BrokerState, EpochEnd, Error


def led(rules=CURRENT) -> tuple[Trio, dict[int, int]]:
    """Controller A is active with B, both brokers are members, and everything is committed."""
    trio = Trio(rules)
    trio.elect(A, B)
    trio.replicate(A, B, C)
    epochs = trio.register_all(A, B, C)
    trio.sent.clear()
    return trio, epochs


def shrink(trio: Trio, epochs: dict[int, int], number: int = 7) -> AlterPartitionRequest:
    """The leader, broker 0, proposes itself alone."""
    image = trio[A].log[-1].image.partitions[PARTITION]
    return AlterPartitionRequest(
        number, PARTITION, 0, epochs[0], image.leader_epoch, image.partition_epoch, ((0, epochs[0]),)
    )


def test_a_majority_elects_and_the_new_one_decides_after_its_own_record():
    """One vote of two others is enough; requests wait until a record of the own term is committed."""
    trio = Trio()
    trio.elect(A, B)
    assert [trio[n].is_active for n in VOTERS] == [True, False, False]
    assert (trio[A].term, trio[B].term, trio[C].term) == (2, 2, 1)
    assert [record.term for record in trio[A].log] == [1, 2]
    assert not trio[A].decides
    assert trio.ask(A, 0, RegisterRequest(0, 1)) == []
    assert len(trio[A].log) == 2
    trio.replicate(A, B)
    assert trio[A].decides
    assert trio[A].hw == 2
    assert trio[B].log == trio[A].log


def test_nobody_votes_twice_in_a_term_or_for_a_log_that_has_less():
    """The second candidate of a term is refused, and so is one that lacks the voter's last record."""
    trio, _ = led()
    end = records.end_of(trio[B].log)
    trio.give(B, C, VoteRequest(9, end))
    trio.give(B, A, VoteRequest(9, end))
    assert [s.message for _, s in trio.sent[-2:]] == [VoteReply(9, True), VoteReply(9, False)]
    trio.give(B, C, VoteRequest(10, LogEnd(end.end - 1, end.term)))
    assert trio.sent[-1][1].message == VoteReply(10, False)
    trio.give(B, C, VoteRequest(11, LogEnd(end.end + 5, end.term - 1)))
    assert trio.sent[-1][1].message == VoteReply(11, False)


def test_a_vote_is_stored_before_it_is_given():
    """And so are records before the fetch that acknowledges them."""
    trio = Trio()
    out = trio[B].handle(Received(A, VoteRequest(2, LogEnd(1, 1))), NOW)
    assert out == [StoreVote(2, NOBODY), StoreVote(2, A), Send(A, VoteReply(2, True))]
    again = trio[B].handle(Received(A, VoteRequest(2, LogEnd(1, 1))), NOW)
    assert again == [Send(A, VoteReply(2, True))]
    own = first_record(2)
    out = trio[B].handle(Received(A, MetadataFetchReply(2, LogEnd(1, 1), (own,), 1)), NOW)
    assert out == [StoreRecords(1, (own,)), Send(A, MetadataFetch(2, LogEnd(2, 2)))]


def test_an_old_vote_is_none():
    """A vote of an earlier term does not count, nor one for a controller that is no longer a candidate."""
    trio = Trio()
    trio.perform(A, trio[A].stand(NOW))
    trio.give(A, B, VoteReply(1, True))
    assert not trio[A].is_active
    trio.give(A, B, VoteReply(5, False))
    assert (trio[A].term, trio[A].votes) == (5, set())
    trio.give(A, C, VoteReply(5, True))
    assert not trio[A].is_active


def test_an_answer_waits_for_its_record():
    """A granted ISR proposal is answered once a majority has it, and brokers get the metadata then."""
    trio, epochs = led()
    version = trio[A].log[-1].image.version
    assert trio.ask(A, 0, shrink(trio, epochs)) == []
    assert trio[A].log[-1].image.partitions[PARTITION].isr == (0,)
    sends = trio.replicate(A, B)
    (reply,) = inner(sends, AlterPartitionReply)
    assert (reply.error, reply.isr) == (Error.NONE, (0,))
    updates = inner(sends, MetadataUpdate)
    assert [image.version for update in updates for image in update.images] == [version + 1] * 2


def test_a_refusal_is_sent_at_once_if_nothing_is_pending():
    """It has no record; after an uncommitted record it waits, too."""
    trio, epochs = led()
    wrong = replace(shrink(trio, epochs), new_isr=((0, epochs[0] + 1),))
    (send,) = trio.ask(A, 0, wrong)
    assert send.message.message.error is Error.INELIGIBLE_REPLICA
    proposal = shrink(trio, epochs)
    trio.ask(A, 0, proposal)
    assert trio.ask(A, 0, replace(proposal, correlation=8)) == []
    replies = inner(trio.replicate(A, C), AlterPartitionReply)
    assert [reply.error for reply in replies] == [Error.NONE, Error.INVALID_UPDATE_VERSION]


@pytest.mark.parametrize(
    ("rule", "kind"), [("answered_when", AlterPartitionReply), ("applied_when", MetadataUpdate)]
)
def test_each_of_the_early_rules_sends_one_kind_early(rule, kind):
    """Other effects that wait for the commit still do."""
    trio, epochs = led(replace(CURRENT, **{rule: RecordIs.APPENDED}))
    early = trio.ask(A, 0, shrink(trio, epochs))
    assert early
    assert {type(send.message.message) for send in early} == {kind}


def test_who_is_replaced_promises_nothing_and_its_tail_is_cut():
    """Its successor decides by its own log, which the replaced controller adopts."""
    trio, epochs = led()
    trio.ask(A, 0, shrink(trio, epochs))
    lost = trio[A].log[-1]
    trio.elect(B, C)
    trio.replicate(B, C)
    assert trio[A].is_active
    assert trio[B].decides
    assert lost not in trio[B].log
    # It has heard of no other; without the fetches of a majority it gives up.
    trio.perform(A, trio[A].handle(Fired(Timer.QUORUM), NOW + 9 * ELECTION_MS))
    sends = trio.replicate(B, A)
    assert inner(sends, AlterPartitionReply) == []
    assert (trio[A].is_active, trio[A].held, trio[A].controller) == (False, [], None)
    assert trio[A].log == trio[B].log


def test_a_new_active_controller_begins_with_the_log_and_a_full_session_for_all():
    """Registrations and fencing are records, heartbeats are not."""
    trio, epochs = led()
    trio.now += 60_000
    trio.elect(B, C)
    trio.replicate(B, C)
    state = trio[B].controller.state
    known = {b: (r.broker_epoch, r.incarnation, r.state) for b, r in state.brokers.items()}
    assert known == {b: (epochs[b], 1, BrokerState.ACTIVE) for b in (0, 1)}
    assert {r.last_seen_ms for r in state.brokers.values()} == {trio.now}
    trio.perform(B, trio[B].handle(Fired(Timer.SESSION_CHECK, trio[B].term), trio.now + 10_000))
    assert {r.state for r in state.brokers.values()} == {BrokerState.FENCED}


def test_a_repeated_registration_is_recognised_by_the_next_controller():
    """The incarnation is in the record, so the same process gets the same broker epoch."""
    trio, epochs = led()
    trio.elect(B, C)
    trio.replicate(B, C)
    (send,) = trio.ask(B, 0, RegisterRequest(0, 1))
    assert send.message.message == RegisterReply(1, Error.NONE, epochs[0])


def test_high_watermark_never_rises_over_earlier_terms_alone():
    """Raft's figure 8 (KAFKA-12619); without the rule it does."""
    for rules, hw in ((CURRENT, 1), (replace(CURRENT, own_record=False), 2)):
        trio = Trio(rules)
        trio[A].log.append(first_record(2))
        trio[A].term = 2
        trio.elect(A, C)
        # Up to the record of term 2, and not to that of the own term.
        trio.give(A, C, MetadataFetch(trio[A].term, LogEnd(2, 2)))
        assert trio[A].hw == hw


def test_a_fetch_of_an_earlier_term_acknowledges_nothing():
    """Its sender may vote in between for another candidate, with fewer records."""
    trio, _ = led()
    trio.perform(A, trio[A].stand(NOW))
    trio.deliver(A, B)
    end = records.end_of(trio[A].log)
    trio.give(A, B, MetadataFetch(trio[A].term - 1, end))
    assert not trio[A].decides
    trio.give(A, B, MetadataFetch(trio[A].term, end))
    assert trio[A].decides


def test_logs_that_diverge_are_cut_where_they_part():
    """Term by term: the last common one ends at the earlier of both ends."""
    trio = Trio()
    first = first_record(1)
    trio[A].log[:] = [first, first, *map(first_record, (2, 2, 5))]
    trio[B].log[:] = [first, first, *map(first_record, (2, 3, 3, 3))]
    trio[A].term = trio[B].term = 5
    trio.perform(A, trio[A].activate(NOW))
    trio.replicate(A, B)
    assert trio[B].log == trio[A].log


def test_a_late_answer_does_not_cut_what_was_acknowledged_since():
    """An answer is for the log in its request; and a divergence does not describe the remaining log."""
    trio, _ = led()
    before = list(trio[B].log)
    trio.give(B, A, MetadataFetchReply(trio[A].term, LogEnd(1, 1), (), 1, EpochEnd(1, 1)))
    assert trio[B].log == before
    trio[B].hw = 2
    end = records.end_of(before)
    trio.give(B, A, MetadataFetchReply(trio[A].term, end, (), len(before), EpochEnd(2, 4)))
    assert (len(trio[B].log), trio[B].hw) == (4, 2)


def test_an_active_controller_without_a_majority_resigns():
    """Held-back replies end; another controller stands for election after its timeout."""
    trio, epochs = led()
    trio.ask(A, 0, shrink(trio, epochs))
    trio.perform(A, trio[A].handle(Fired(Timer.QUORUM), NOW + 2 * ELECTION_MS))
    assert trio[A].is_active
    out = trio.perform(A, trio[A].handle(Fired(Timer.QUORUM), NOW + 2 * ELECTION_MS + 1))
    assert (trio[A].is_active, trio[A].held) == (False, [])
    assert [effect for effect in out if not isinstance(effect, SetTimer)] == []
    trio.sent.clear()
    trio.perform(A, trio[A].handle(Fired(Timer.QUORUM), NOW + 3 * ELECTION_MS))
    assert {send.to for _, send in trio.sent} == {B, C}
    trio.perform(A, trio[A].handle(Fired(Timer.QUORUM), NOW + 9 * ELECTION_MS))
    assert trio[A].votes == {A}


def test_every_controller_has_another_patience_in_each_term():
    """So that two simultaneous candidates do not collide repeatedly."""
    nodes = [ControllerNode(v, VOTERS, CONFIG, CURRENT, 1, [first_record()]) for v in VOTERS]
    for term in range(4):
        for node in nodes:
            node.term = term
        assert len({node._patience_ms() for node in nodes}) == 3
    # In the next term it is another one's turn.
    shortest = [min(nodes, key=lambda node: replace(node, term=t)._patience_ms()).address for t in (3, 4, 5)]
    assert len(set(shortest)) == 3


def test_who_knows_the_active_controller_votes_for_no_other_in_its_term():
    """It has not voted in that term, and there is a majority without it."""
    trio, _ = led()
    assert (trio[C].vote, trio[C].active) == (NOBODY, A)
    trio.give(C, B, VoteRequest(trio[C].term, LogEnd(99, 99)))
    assert trio.sent[-1][1].message == VoteReply(trio[C].term, False)


def test_a_vote_is_given_with_patience():
    """A voter waits for its candidate as for an active controller, and then stands itself."""
    trio = Trio()
    late = NOW + 10 * ELECTION_MS
    trio[B].handle(Received(A, VoteRequest(2, LogEnd(1, 1))), late)
    trio[B].handle(Fired(Timer.QUORUM), late + 1)
    assert (trio[B].term, trio[B].votes) == (2, set())
    trio[B].handle(Fired(Timer.QUORUM), late + 2 * ELECTION_MS + 1_000)
    assert (trio[B].term, trio[B].votes) == (3, {B})


def test_who_knows_nothing_gets_the_newest_metadata_alone():
    """A start has no history to replay; others get each version once, except for their own records."""
    trio, _ = led()
    versions = [image.version for image in records.images_of(trio[A].log, 1)]
    assert versions == list(range(2, trio[A].log[-1].image.version + 1))
    assert [image.version for image in records.images_of(trio[A].log, -1)] == versions[-1:]


def test_a_proposal_is_judged_if_its_sender_knows_the_term():
    """Otherwise an older controller could refuse it later, and its sender would accept that."""
    trio, epochs = led()
    length = len(trio[A].log)
    (send,) = trio.ask(A, 0, shrink(trio, epochs), term=1)
    assert send.message == OfTerm(trio[A].term, MetadataUpdate(()))
    assert len(trio[A].log) == length
    trio.ask(A, 0, shrink(trio, epochs))
    assert len(trio[A].log) == length + 1


def test_the_old_rule_judges_whatever_the_sender_knows():
    """`newest_only = False`: a replaced controller answers as if it were not replaced."""
    trio, epochs = led(replace(CURRENT, newest_only=False))
    wrong = replace(shrink(trio, epochs), new_isr=((0, epochs[0] + 1),))
    (send,) = trio.ask(A, 0, wrong, term=1)
    assert send.message.message.error is Error.INELIGIBLE_REPLICA


def test_metadata_is_requested_from_whom_is_active_and_only_what_is_committed():
    """A request has an answer even without news; an inactive controller names the active one."""
    trio, epochs = led()
    version = trio[A].log[-1].image.version
    trio.ask(A, 0, shrink(trio, epochs))
    (send,) = trio.ask(A, 0, MetadataRequest(0, version - 1))
    assert [image.version for image in send.message.message.images] == [version]
    (send,) = trio.ask(A, 0, MetadataRequest(0, version))
    assert send.message.message == MetadataUpdate(())
    (send,) = trio.ask(B, 0, MetadataRequest(0, version))
    assert send.message == OfTerm(trio[A].term, NotController(A))
    trio[C].active = NOBODY
    assert trio.ask(C, 0, MetadataRequest(0, version)) == []


def test_a_heartbeat_brings_what_the_broker_has_missed():
    """As with one controller; its own answer is sent with it if nothing is pending."""
    trio, epochs = led()
    version = trio[A].log[-1].image.version
    sends = trio.ask(A, 1, HeartbeatRequest(1, epochs[1], version - 2))
    assert [type(send.message.message) for send in sends] == [HeartbeatReply, MetadataUpdate]
    assert [i.version for i in inner(sends, MetadataUpdate)[0].images] == [version - 1, version]


def test_an_operator_has_the_answer_without_an_envelope():
    """A sender that is not a broker follows the addressed controller."""
    trio, _ = led()
    out = trio.give(A, -99, ElectRequest(1, PARTITION))
    assert out == [Send(-99, ElectReply(1, Error.ELECTION_NOT_NEEDED))]
    assert trio.give(B, -99, ElectRequest(1, PARTITION)) == []


def test_one_voter_is_a_majority():
    """A quorum of one elects itself, and commits what it appends."""
    node = ControllerNode(A, (A,), CONFIG, CURRENT, 1, [first_record()])
    node.start(NOW)
    node.handle(Fired(Timer.QUORUM), NOW + ELECTION_MS * 2)
    assert (node.is_active, node.decides, node.hw) == (True, True, 2)
    out = node.handle(Received(0, OfTerm(2, RegisterRequest(0, 1))), NOW)
    assert [type(s.message.message) for s in out if isinstance(s, Send)] == [RegisterReply, MetadataUpdate]


def test_a_copy_runs_on_its_own():
    """Neither sees the other's changes."""
    trio, epochs = led()
    twin = trio[A].copy()
    trio.ask(A, 0, shrink(trio, epochs))
    assert len(twin.log) == len(trio[A].log) - 1
    assert twin.controller.state.partitions != trio[A].controller.state.partitions
    assert (twin.term, twin.ends, twin.held) == (trio[A].term, trio[A].ends, [])


def test_a_timer_of_an_earlier_term_rings_for_nothing():
    """A reactivated controller has one session check, not two."""
    trio, _ = led()
    assert trio[A].handle(Fired(Timer.SESSION_CHECK, trio[A].term - 1), NOW) == []
    (timer,) = trio[A].handle(Fired(Timer.SESSION_CHECK, trio[A].term), NOW)
    assert timer.token == trio[A].term
