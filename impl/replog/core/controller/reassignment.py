"""The replacement of the replicas of a partition by others, as functions of values.

    replicas 0,1,2   --target 2,3,4-->   2,3,4,0,1   adding 3,4   removing 0,1
                     --all of 2,3,4 in the ISR-->    replicas 2,3,4, in one change
                     --cancelled-->                  replicas 2,0,1

Theory: KIP-455, PartitionReassignmentReplicas and PartitionReassignmentRevert; rule A34 of the project's
Kafka reference.  What is added follows and joins the ISR like any replica.  A reassignment is complete, with
any change of the partition, if all of its target is in the ISR (since 3.8, KAFKA-15665; those that are added,
alone, would leave committed records on fewer replicas than min.insync.replicas).

Invariants: `adding` and `removing` are disjoint parts of `replicas`; without a reassignment both are empty.
Not here: who is eligible, who leads and which epochs follow from a change (`election`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from replog.core.protocol import Protocol
from replog.core.types import Error, PartitionImage


def check(
    image: PartitionImage, target: tuple[int, ...] | None, registered: Collection[int], rules: Protocol
) -> Error:
    """Return the first reason to refuse a request for these replicas, or a cancellation (None)."""
    if target is not None:
        is_set = bool(target) and len(set(target)) == len(target)
        # Fenced ones may be named: they hold the reassignment up until they return.
        is_known = all(replica in registered for replica in target)
        return Error.NONE if is_set and is_known else Error.INVALID_REPLICA_ASSIGNMENT
    if not image.is_reassigning:
        return Error.NO_REASSIGNMENT_IN_PROGRESS
    # Who was added may lead an ISR without any original replica; one of those would have to lead, whatever it
    # has (KAFKA-12803).
    is_clean = any(member not in image.adding for member in image.isr)
    return Error.NONE if is_clean or rules.unclean_election else Error.INVALID_REPLICA_ASSIGNMENT


def requested(old: PartitionImage, target: tuple[int, ...] | None, rules: Protocol) -> PartitionImage:
    """Return the partition with the assignment that a request starts with; the rest is unchanged.

    None cancels the reassignment in progress.
    """
    if target is None:
        return _reverted(old)
    # All that there are count as original ones, those of an earlier request that are still to be added too.
    adding = tuple(replica for replica in target if replica not in old.replicas)
    removing = tuple(replica for replica in old.replicas if replica not in target)
    new = replace(old, replicas=(*target, *removing), adding=adding, removing=removing)
    if rules.override_replaces:
        return new
    return replace(new, adding=adding or old.adding, removing=removing or old.removing)


def _reverted(old: PartitionImage) -> PartitionImage:
    """Return the partition without the replicas that its reassignment adds, and with those it removes."""
    replicas = tuple(replica for replica in old.replicas if replica not in old.adding)
    isr = tuple(member for member in old.isr if member not in old.adding)
    return replace(old, replicas=replicas, isr=isr or replicas[:1], adding=(), removing=())


def completed(image: PartitionImage) -> PartitionImage:
    """Return the partition without the removed replicas, if all remaining ones are in its ISR."""
    target = tuple(replica for replica in image.replicas if replica not in image.removing)
    if not image.is_reassigning or not target or not set(target) <= set(image.isr):
        return image
    # In one change with its completion: the target never appears without its ISR, or a leader from it.
    isr = tuple(member for member in image.isr if member not in image.removing)
    return replace(image, replicas=target, isr=isr, adding=(), removing=())
