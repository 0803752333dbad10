"""The in-sync replica set in the leader's view: lagging members, candidates, and one proposal in flight.

    Committed(isr) --shrink/expand--> pending proposal --success--> Committed(proposed)
                                              |--rejected for good--> Committed(isr)
                                              |--outcome unknown----> pending until metadata arrives

Theory: KIP-497 (AlterPartition, maximal ISR), KIP-841 and KIP-903 (eligibility), rules A10, A11, A13 and
I9, I10 of the project's Kafka reference.  While a proposal is in flight, HW waits for the *maximal* ISR:
whichever set the controller has by now, HW never passes a record that one of its members lacks (B14).

Not here: HW itself (`leader`), and the controller's verdict on a proposal (`controller`).
"""

from __future__ import annotations

from dataclasses import replace

from replog.core.broker.state import Leading, PendingIsr, Remote, ReplicaState
from replog.core.effects import Effect, Send, SetTimer, Timer
from replog.core.messages import AlterPartitionReply, AlterPartitionRequest
from replog.core.protocol import CaughtUpRule, MaximalIsr
from replog.core.types import CONTROLLER, BrokerState, Error

ROLLED_BACK = frozenset({Error.OPERATION_NOT_ATTEMPTED, Error.INELIGIBLE_REPLICA})
"""Refusals after which nothing changed: go back to the committed ISR."""
OUTCOME_UNKNOWN = frozenset(
    {
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.UNKNOWN_TOPIC_ID,
        Error.FENCED_LEADER_EPOCH,
        Error.INVALID_UPDATE_VERSION,
        Error.INVALID_REQUEST,
        Error.NEW_LEADER_ELECTED,
    }
)
"""Refusals that say the metadata moved on: keep the maximal ISR until it arrives."""


def maximal_isr(state: ReplicaState, leading: Leading) -> tuple[int, ...]:
    """Return every replica that may be in the controller's ISR at present (KIP-497)."""
    pending = leading.pending
    if pending is None:
        return leading.isr
    # Proposals do not overlap, so the controller has either the committed set or the proposed one. The larger
    # of the two covers both: the proposed set of an expansion, the committed set of a shrink.
    rule = state.protocol.maximal_isr
    if rule is MaximalIsr.NONE:
        return leading.isr
    if rule is MaximalIsr.EAGER_SHRINK or pending.is_expansion:
        return pending.proposed
    return pending.committed


def note_fetch(state: ReplicaState, remote: Remote, fetch_offset: int, leader_leo: int, now_ms: int) -> bool:
    """Record a follower's fetch: its LEO, and when it was last caught up (I10).

    Return whether its LEO changed.
    """
    # Not every fetch counts as caught up: a follower that fetches all the time and never gets closer would
    # stay in the ISR and hold HW back (S44).
    if fetch_offset >= leader_leo:
        remote.last_caught_up_ms = max(remote.last_caught_up_ms, now_ms)
    elif (
        state.protocol.caught_up is CaughtUpRule.TWO_BRANCHES and fetch_offset >= remote.last_fetch_leader_leo
    ):
        # It now has the leader's end at its previous fetch, so it was caught up then. A steady
        # follower one batch behind a busy leader stays in the ISR by this branch.
        remote.last_caught_up_ms = max(remote.last_caught_up_ms, remote.last_fetch_ms)
    # Assigned, not raised: after a truncation the follower's LEO is lower, and HW must not count the rest.
    changed = remote.leo != fetch_offset
    remote.leo = fetch_offset
    # After the branch above, which needs the leader's LEO at the previous fetch.
    remote.last_fetch_leader_leo = max(leader_leo, remote.last_fetch_leader_leo)
    remote.last_fetch_ms = now_ms
    return changed


def is_caught_up(state: ReplicaState, remote: Remote, now_ms: int) -> bool:
    """Return whether a follower is at the leader's LEO, or was less than the lag limit ago."""
    # With equal LEOs time does not matter: in a partition without writes no follower is behind.
    return remote.leo == state.log.leo or now_ms - remote.last_caught_up_ms <= state.config.lag_ms


def is_eligible(state: ReplicaState, follower: int, remote: Remote) -> bool:
    """Return whether the metadata allows `follower` in an ISR.

    Not fenced, not leaving, the incarnation that fetches.
    """
    rules = state.protocol
    broker = state.brokers.get(follower)
    # No fetch in this leadership yet, so no incarnation to compare: nothing shows that it is coming back.
    if remote.leo < 0:
        return False
    if broker is None:
        return not rules.checks_fenced
    if rules.checks_fenced and broker.state is not BrokerState.ACTIVE:
        return False
    return not rules.checks_broker_epoch or remote.broker_epoch in (-1, broker.broker_epoch)


def lagging(state: ReplicaState, leading: Leading, now_ms: int) -> tuple[int, ...]:
    """Return the ISR members that have fallen behind for longer than the lag limit."""
    return tuple(
        member
        for member in leading.isr
        if member != state.broker_id
        and not is_caught_up(state, leading.remotes.setdefault(member, Remote()), now_ms)
    )


def may_join(state: ReplicaState, leading: Leading, follower: int, remote: Remote) -> bool:
    """Return whether a follower outside the ISR has everything it needs to join (A11)."""
    rules = state.protocol
    if follower in leading.isr or follower not in state.replicas:
        return False
    # Below HW it lacks a committed record, and as a member it could be elected (B30).
    if rules.expand_needs_hw and remote.leo < state.log.hw:
        return False
    if rules.expand_needs_leso and remote.leo < leading.leso:
        return False
    # If elected without the log start, it would give deleted records to consumers, or others that never
    # were in the leader's log: below its start no divergence is detected.
    if rules.join_needs_start and remote.log_start < state.log.log_start:
        return False
    return is_eligible(state, follower, remote)


def maybe_shrink(state: ReplicaState, leading: Leading, now_ms: int, out: list[Effect]) -> None:
    """Propose the ISR without its lagging members, unless a proposal is in flight (A10)."""
    # One proposal at a time: a second one would be computed from an ISR that may no longer be the
    # controller's, and the maximal ISR of two proposals has no simple bound.
    if leading.pending is not None:
        return
    # The ISR itself is not changed here. Until the controller agrees those members may be elected, so HW
    # waits for them as before.
    gone = lagging(state, leading, now_ms)
    if gone:
        propose(state, leading, tuple(m for m in leading.isr if m not in gone), out)


def maybe_expand(
    state: ReplicaState, leading: Leading, follower: int, remote: Remote, out: list[Effect]
) -> None:
    """Propose the ISR with `follower`, if it may join and nothing is in flight (A11)."""
    if leading.pending is None and may_join(state, leading, follower, remote):
        propose(state, leading, (*leading.isr, follower), out)


def propose(state: ReplicaState, leading: Leading, isr: tuple[int, ...], out: list[Effect]) -> None:
    """Put one proposal in flight, for the checked incarnations of its members (KIP-903)."""

    def epoch_of(member: int) -> int:
        if member == state.broker_id:
            return state.broker_epoch
        remote = leading.remotes.get(member)
        return -1 if remote is None else remote.broker_epoch

    # The incarnations are fixed now. If a member restarts while the proposal is in flight, it may have lost
    # the records that it had, and the controller must refuse (B18).
    broker_epochs = tuple(map(epoch_of, isr))
    assert leading.pending is None, "proposals do not overlap"
    leading.pending = PendingIsr(leading.isr, isr, state.next_correlation(), broker_epochs)
    send_proposal(state, leading.pending, out)


def retry(state: ReplicaState, leading: Leading, pending: PendingIsr, out: list[Effect]) -> None:
    """Send the proposal in flight again, unchanged: a later incarnation of a member may lack its records.

    Only its number is new: a refusal of an earlier attempt does not apply to this one, which may be granted.
    """
    leading.pending = replace(pending, correlation=state.next_correlation())
    send_proposal(state, leading.pending, out)


def send_proposal(state: ReplicaState, pending: PendingIsr, out: list[Effect]) -> None:
    """Send the proposal in flight, and set a timer to repeat it if there is no answer."""
    members = tuple(zip(pending.proposed, pending.broker_epochs, strict=True))
    out.append(
        Send(
            CONTROLLER,
            AlterPartitionRequest(
                pending.correlation,
                state.partition,
                state.broker_id,
                state.broker_epoch,
                state.leader_epoch,
                state.partition_epoch,
                members,
            ),
        )
    )
    out.append(SetTimer(Timer.ALTER_RETRY, state.config.alter_retry_ms, pending.correlation))


def on_reply(state: ReplicaState, leading: Leading, reply: AlterPartitionReply, out: list[Effect]) -> bool:
    """Process the controller's decision (A13); return whether a new ISR was committed, so HW may move.

    A reply to anything but the last attempt of the proposal in flight is ignored.  Errors that are not listed
    above are retried by the timer.
    """
    pending = leading.pending
    if pending is None or pending.correlation != reply.correlation:
        return False
    # These refusals prove that the controller kept the old ISR, so HW need not wait for the proposed member.
    if reply.error in ROLLED_BACK:
        leading.pending = None
        return False
    if reply.error is not Error.NONE:
        if reply.error not in OUTCOME_UNKNOWN:
            out.append(SetTimer(Timer.ALTER_RETRY, state.config.alter_retry_ms, pending.correlation))
        return False
    # Newer metadata has overtaken the reply, which is obsolete.
    if reply.leader_epoch != state.leader_epoch or reply.partition_epoch < state.partition_epoch:
        return False
    # The partition epoch moves with the ISR. Metadata of the same change arrives later, is not newer any
    # more, and is skipped.
    state.partition_epoch = reply.partition_epoch
    leading.isr, leading.pending = reply.isr, None
    return True
