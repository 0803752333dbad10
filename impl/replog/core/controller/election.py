"""The ISR after a change, and its leader: the controller's arithmetic, as functions of values.

Theory: PartitionChangeBuilder and KIP-966; rules A15-A17 and A34 of the project's Kafka reference.  In this
order: a reassignment that is complete ends, the ELR, the election, the epochs.

    clean      the current leader if still eligible; else the first in assignment order, active and in the ISR
    ELR        (flag) with an empty ISR, the first active member of the ELR; it becomes the whole ISR
    last       (ELR's flag) with an empty ISR and an empty ELR, the last leader, once it is active
    unclean    (flag) the first active replica; it becomes the whole ISR, and records that it lacks are lost

ISR and ELR become empty together when every member has ended without a clean shutdown.  The last leader had
all committed records then, and has them still if only its process died; after a power loss it may lack
unflushed records, which are then lost.  Hence `is_recovering`, as after an unclean election.

A change of min.insync.replicas is one of the partition's metadata, and clears the ELR of a partition that is
led: under another minimum HW may have passed its members (KAFKA-16540).  In both it is stricter than
Kafka.  There the change has no partition epoch of its own, so a leader that does not apply it yet may leave
the ISR alone and commit, with the departed members made eligible; and the ELR and the last known leader of a
partition without a leader are cleared, too, after which no replica may lead.

Invariants: without ELR the ISR never becomes empty: its last member stays in it, dead (that is the weakness
B11); ISR and ELR are disjoint; with ELR, a partition without a leader records its last leader, if any;
ISR, ELR and leader are replicas; the partition epoch grows by one with every change, the leader epoch exactly
when the leader changes or a replica of a partition that was ever led is removed.

Not here: when this is needed (`controller`), and the definition of a reassignment (`reassignment`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from replog.core.controller import reassignment
from replog.core.protocol import Protocol
from replog.core.types import NO_EPOCH, NO_LEADER, PartitionImage


@dataclass(frozen=True, slots=True)
class Rules:
    """The inputs of an election in addition to the partition: protocol, min ISR, active brokers."""

    protocol: Protocol
    min_isr: int
    active: Collection[int]


def next_image(
    old: PartitionImage, isr: tuple[int, ...], rules: Rules, gone: Collection[int] = ()
) -> PartitionImage:
    """Return the partition after its ISR has become `isr`.

    `gone` leave the ELR too.  Unchanged means no change.
    """
    return changed(old, replace(old, isr=isr), rules, gone)


def changed(
    old: PartitionImage, wanted: PartitionImage, rules: Rules, gone: Collection[int] = ()
) -> PartitionImage:
    """Return the partition after its ISR, or its assignment, has become that of `wanted`.

    With it a reassignment may be complete (A34).
    """
    isr = wanted.isr
    # Without ELR the last member stays, dead or alive: only it is known to have all committed records.
    # An empty ISR would mean that any replica may lead.
    target = isr if isr or rules.protocol.elr else old.isr
    settled = reassignment.completed(replace(wanted, isr=target))
    removed = set(old.replicas) - set(settled.replicas)
    # A replica that this change removes deletes its log, so it is not eligible. Kafka settles first, and then
    # adds it to the ELR: it was in the ISR, and is no longer in it.
    leaving = {*gone, *removed} if rules.protocol.removed_leave_elr else gone
    elr = next_elr(old, settled.isr, rules, leaving)
    # The ISR shrinks before the election, so the broker that has just left cannot be elected by it.
    elected = elect(replace(settled, elr=elr), rules)
    last = _last_known_leader(old, elected.leader, rules)
    new = replace(elected, last_known_leader=NO_LEADER if last in removed else last)
    if new == old:
        return old
    # The leader epoch stays with the leader. A new one would fence its followers' fetches for an ISR change
    # that concerns none of them (I23).
    bumped = replace(new, partition_epoch=old.partition_epoch + 1)
    # Unless a replica is removed: its fetch may still be in flight when it is added again, without the
    # records that the fetch acknowledges. There is no fetch before the first leader, and no epoch either, by
    # which the controller recognizes that no replica may leave yet.
    if new.leader == old.leader and not (removed and old.leader_epoch != NO_EPOCH):
        return bumped
    return replace(bumped, leader_epoch=old.leader_epoch + 1)


def next_elr(
    old: PartitionImage, isr: tuple[int, ...], rules: Rules, gone: Collection[int]
) -> tuple[int, ...]:
    """Return the eligible leader replicas.

    The replicas that left the ISR while it was, or became, smaller than the minimum (A17).
    """
    # With enough members HW moves again, and former members fall behind it: they are eligible no longer.
    if not rules.protocol.elr or len(isr) >= needed(old, rules):
        return ()
    # A replica that left below the minimum has all committed records: HW has not moved since (B15).
    # `gone` have ended uncleanly and may have lost it.
    kept = {*old.elr, *old.isr} - set(isr) - set(gone)
    return tuple(sorted(kept))


def needed(image: PartitionImage, rules: Rules) -> int:
    """Return the number of members an ISR needs for HW to move: min.insync.replicas, if there are as many."""
    return min(image.min_isr or rules.min_isr, len(image.replicas))


def reconfigure(image: PartitionImage, min_isr: int) -> PartitionImage:
    """Return the image with another min.insync.replicas; unchanged means no change."""
    if min_isr == image.min_isr:
        return image
    # Without a leader HW cannot move, and only eligible replicas are left to lead.
    elr = image.elr if image.leader == NO_LEADER else ()
    return replace(image, min_isr=min_isr, elr=elr, partition_epoch=image.partition_epoch + 1)


def _last_known_leader(old: PartitionImage, leader: int, rules: Rules) -> int:
    """Return the last known leader: none while there is a leader."""
    if leader != NO_LEADER or not rules.protocol.elr:
        return NO_LEADER
    return old.last_known_leader if old.leader == NO_LEADER else old.leader


def elect(image: PartitionImage, rules: Rules) -> PartitionImage:
    """Return the image with the leader that the rules determine; the caller sets the epochs."""
    # A valid leader is kept. Moving leadership costs an epoch, and a new leader's HW has to catch up.
    if image.leader in rules.active and image.leader in image.isr:
        return image
    # Assignment order makes the choice deterministic, and spreads leaders as the assignment meant it.
    for replica in image.replicas:
        if replica in rules.active and replica in image.isr:
            return replace(image, leader=replica)
    # Not while the ISR has a member: it has all that an ELR member has, and perhaps more.
    if not image.isr:
        for replica in image.replicas:
            if replica in rules.active and replica in image.elr:
                led = replace(image, leader=replica, isr=(replica,))
                # It alone may suffice by now: the minimum can have changed while there was no leader.
                return replace(led, elr=next_elr(led, led.isr, rules, ()))
        if not image.elr and image.last_known_leader in rules.active:
            return _lead_alone(image, image.last_known_leader)
    if rules.protocol.unclean_election:
        return elect_unclean(image, rules)
    return replace(image, leader=NO_LEADER)


def elect_unclean(image: PartitionImage, rules: Rules) -> PartitionImage:
    """Return the image led by the first live replica, whatever its log contains (A16)."""
    for replica in image.replicas:
        if replica in rules.active:
            return _lead_alone(image, replica)
    return replace(image, leader=NO_LEADER)


def _lead_alone(image: PartitionImage, replica: int) -> PartitionImage:
    """Return the image led by a replica whose log may lack committed records."""
    return replace(image, leader=replica, isr=(replica,), elr=(), is_recovering=True)


def prefer(image: PartitionImage, rules: Rules) -> PartitionImage:
    """Return the image led by its first replica, if that replica may lead.

    The old leader stays in the ISR (A15).
    """
    first = image.replicas[0]
    if first == image.leader or first not in rules.active or first not in image.isr:
        return image
    return replace(
        image, leader=first, leader_epoch=image.leader_epoch + 1, partition_epoch=image.partition_epoch + 1
    )
