"""Reassignment of a partition's replicas (KIP-455, A34): the parts of the controller and the brokers."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest
from core_cluster import Cluster
from core_support import CLIENT, NOW, PARTITION, fetch, leading, log_of, metadata, produce, replica_of, sent

from replog.core.effects import Delete, Send
from replog.core.messages import (
    AlterPartitionRequest,
    FetchReply,
    ProduceReply,
    ReassignReply,
    ReassignRequest,
)
from replog.core.types import NO_LEADER, Error, PartitionImage, Role


def cluster_of(brokers=4, replicas=(0, 1, 2), min_isr=2, **rules):
    """A cluster in which the first `replicas` hold the partition, led by the first of them."""
    cluster = Cluster(brokers, min_isr, **rules)
    image = PartitionImage(replicas, replicas[0], 0, 1, replicas)
    cluster.controller.state.partitions[PARTITION] = image
    return cluster


def reassign(cluster, *target):
    return cluster.tell(-9, ReassignRequest(1, PARTITION, target), ReassignReply).error


def cancel(cluster):
    return cluster.tell(-9, ReassignRequest(1, PARTITION, None), ReassignReply).error


def alter(cluster, *members):
    """The leader proposes an ISR."""
    leader = cluster.image.leader
    return cluster.alter(members, broker_id=leader, broker_epoch=cluster.epochs[leader])


def shape(cluster):
    image = cluster.image
    return (image.replicas, image.adding, image.removing, image.isr, image.leader, image.leader_epoch)


def test_a_reassignment_adds_first_and_changes_neither_leader_nor_isr():
    """A34: the target's replicas first, then the removed ones; leader, ISR and leader epoch remain."""
    cluster = cluster_of()
    before = cluster.image
    assert reassign(cluster, 3, 1) is Error.NONE
    assert shape(cluster) == ((3, 1, 0, 2), (3,), (0, 2), (0, 1, 2), 0, 0)
    assert cluster.image.partition_epoch == before.partition_epoch + 1
    assert cluster.controller.state.history[-1].partitions[PARTITION] == cluster.image


def test_it_ends_in_one_change_when_all_of_the_target_is_in_sync():
    """The removed leave replicas and ISR, a leader among them is replaced, and there is a new epoch."""
    cluster = cluster_of()
    reassign(cluster, 3, 1)
    assert alter(cluster, 0, 1, 2, 3).error is Error.NEW_LEADER_ELECTED
    assert shape(cluster) == ((3, 1), (), (), (3, 1), 3, 1)
    assert cluster.image.elr == ()


def test_it_does_not_end_before_a_replica_that_stays_is_in_sync():
    """KAFKA-15665: the added one alone would be all that has the committed records."""
    cluster = cluster_of()
    alter(cluster, 0, 2)
    reassign(cluster, 3, 1)
    assert alter(cluster, 0, 2, 3).error is Error.NONE
    assert cluster.image.is_reassigning
    alter(cluster, 0, 2, 3, 1)
    assert shape(cluster)[:4] == ((3, 1), (), (), (3, 1))


def test_one_that_only_removes_may_end_at_once_with_a_new_epoch():
    """I23: the leader remains, and a fetch sent by the removed replica no longer counts."""
    cluster = cluster_of()
    reassign(cluster, 0, 1)
    assert shape(cluster) == ((0, 1), (), (), (0, 1), 0, 1)


def test_one_that_only_adds_keeps_the_leader_epoch_to_its_end():
    """No replica is removed, so nothing must be fenced."""
    cluster = cluster_of()
    reassign(cluster, 0, 1, 2, 3)
    assert shape(cluster) == ((0, 1, 2, 3), (3,), (), (0, 1, 2), 0, 0)
    reply = alter(cluster, 0, 1, 2, 3)
    assert (reply.error, reply.isr) == (Error.NONE, (0, 1, 2, 3))
    assert shape(cluster) == ((0, 1, 2, 3), (), (), (0, 1, 2, 3), 0, 0)


def test_the_end_of_one_whose_leader_stays_shows_the_leader_its_new_epoch():
    """The leader ignores a reply of another epoch, and waits for the metadata."""
    cluster = cluster_of()
    reassign(cluster, 0, 3)
    reply = alter(cluster, 0, 1, 2, 3)
    assert (reply.error, reply.leader_epoch, reply.isr) == (Error.NONE, 1, (0, 3))


def test_a_change_by_fencing_may_end_it_too():
    """It is checked with every change of the partition, not only with those of the leader."""
    cluster = cluster_of(min_isr=1)
    alter(cluster, 0, 1)
    image = replace(cluster.image, replicas=(0, 1, 2), removing=(1, 2), isr=(0, 1))
    cluster.controller.state.partitions[PARTITION] = image
    cluster.expire(1)
    assert shape(cluster)[:4] == ((0,), (), (), (0,))


def test_a_reassignment_waits_for_a_fenced_replica():
    """It may be named, as in Kafka, but it cannot join the ISR."""
    cluster = cluster_of()
    cluster.expire(3)
    assert reassign(cluster, 0, 3) is Error.NONE
    assert alter(cluster, 0, 1, 2, 3).error is Error.INELIGIBLE_REPLICA
    assert cluster.image.is_reassigning


@pytest.mark.parametrize("target", [(), (0, 0), (0, 7)])
def test_a_target_that_is_none_is_refused(target):
    """Empty, with repetitions, or with an unknown broker."""
    cluster = cluster_of()
    before = cluster.image
    assert reassign(cluster, *target) is Error.INVALID_REPLICA_ASSIGNMENT
    assert cluster.image == before


def test_a_request_for_an_unknown_partition_is_refused():
    """As for any other request of an operator."""
    request = ReassignRequest(1, "other", (0,))
    assert cluster_of().tell(-9, request, ReassignReply).error is Error.UNKNOWN_TOPIC_OR_PARTITION


def test_the_present_replicas_in_another_order_only_change_the_preferred_leader():
    """Nothing is added or removed."""
    cluster = cluster_of()
    assert reassign(cluster, 2, 1, 0) is Error.NONE
    assert shape(cluster) == ((2, 1, 0), (), (), (0, 1, 2), 0, 0)


def test_a_cancellation_removes_what_was_added():
    """From replicas and ISR, with a new epoch; the replicas to be removed stay."""
    cluster = cluster_of()
    reassign(cluster, 3, 1)
    before = cluster.image
    assert cancel(cluster) is Error.NONE
    assert shape(cluster) == ((1, 0, 2), (), (), (0, 1, 2), 0, 1)
    assert cluster.image.partition_epoch == before.partition_epoch + 1
    assert cancel(cluster) is Error.NO_REASSIGNMENT_IN_PROGRESS


def added_leads(**rules):
    """A cluster in which only an added replica is in sync, and leads."""
    cluster = cluster_of(5, replicas=(0,), min_isr=1, **rules)
    reassign(cluster, 3, 4)
    alter(cluster, 0, 3)
    cluster.expire(0)
    assert shape(cluster) == ((3, 4, 0), (3, 4), (0,), (3,), 3, 1)
    return cluster


def test_a_cancellation_that_would_elect_who_is_not_in_sync_is_refused():
    """KAFKA-12803: the original replica lacks what the added one has committed."""
    cluster = added_leads()
    before = cluster.image
    assert cancel(cluster) is Error.INVALID_REPLICA_ASSIGNMENT
    assert cluster.image == before


def test_with_unclean_elections_such_a_cancellation_is_granted():
    """PartitionReassignmentRevert: the first of the original replicas is the ISR."""
    cluster = added_leads(unclean_election=True)
    assert cancel(cluster) is Error.NONE
    assert shape(cluster)[:4] == ((0,), (), (), (0,))
    assert cluster.image.leader == NO_LEADER, "it is still fenced"


def test_another_request_counts_all_present_replicas_as_original_ones():
    """Also the replicas that the earlier one adds."""
    cluster = cluster_of(5)
    reassign(cluster, 3, 1, 2)
    reassign(cluster, 4, 1, 2)
    assert shape(cluster)[:3] == ((4, 1, 2, 3, 0), (4,), (3, 0))


@pytest.mark.parametrize(("replaces", "left"), [(True, ()), (False, (0,))])
def test_an_override_that_removes_nothing_takes_back_the_earlier_removal(replaces, left):
    """Kafka leaves it marked, and it is removed in the end; `override_replaces` is stricter."""
    cluster = cluster_of(override_replaces=replaces)
    reassign(cluster, 3, 1, 2)
    assert reassign(cluster, 0, 1, 2, 3) is Error.NONE
    assert cluster.image.removing == left
    alter(cluster, 0, 1, 2, 3)
    assert (0 in cluster.image.replicas) is replaces


@pytest.mark.parametrize(("leaves", "elr"), [(True, (1,)), (False, (1, 2))])
def test_who_is_removed_is_not_eligible(leaves, elr):
    """Kafka keeps it: added again, with an empty log, it may lead; `removed_leave_elr` is stricter."""
    cluster = cluster_of(replicas=(0, 1), removed_leave_elr=leaves)
    reassign(cluster, 0, 1, 2, 3)
    alter(cluster, 0, 1, 2)
    alter(cluster, 0)
    assert cluster.image.elr == (1, 2)
    assert cancel(cluster) is Error.NONE
    assert (cluster.image.replicas, cluster.image.isr, cluster.image.elr) == ((0, 1), (0,), elr)


def test_an_isr_that_an_election_makes_completes_nothing_before_the_next_change():
    """PartitionChangeBuilder.build completes a reassignment first, and then elects from the ELR."""
    cluster = cluster_of(brokers=2, replicas=(0, 1))
    alter(cluster, 0)
    assert reassign(cluster, 1) is Error.NONE
    cluster.expire(0)
    assert shape(cluster) == ((1, 0), (), (0,), (1,), 1, 1)
    cluster.beat(0)
    alter(cluster, 1, 0)
    assert shape(cluster) == ((1,), (), (), (1,), 1, 2)


@pytest.mark.parametrize(("alive", "leader", "is_recovering"), [((0, 1), 0, False), ((1,), 1, True)])
def test_an_unclean_cancellation_recovers_only_by_an_unclean_election(alive, leader, is_recovering):
    """PartitionReassignmentRevert makes the first original replica the ISR; it is elected as a member of it.

    So Kafka does not set the recovery state, although the replica may lack records.  Where it is fenced, the
    election is an unclean one, and does.
    """
    cluster = cluster_of(replicas=(0, 1), min_isr=1, unclean_election=True)
    reassign(cluster, 2, 3)
    alter(cluster, 0, 2)
    cluster.expire(0)
    assert shape(cluster) == ((2, 3, 0, 1), (2, 3), (0, 1), (2,), 2, 1)
    for broker in alive:
        cluster.beat(broker)
    assert cancel(cluster) is Error.NONE
    assert shape(cluster) == ((0, 1), (), (), (leader,), leader, 2)
    assert cluster.image.is_recovering is is_recovering


@pytest.mark.parametrize("target", list(permutations((0, 1, 3))))
def test_the_first_of_the_target_in_sync_leads_when_the_leader_goes(target):
    """Assignment order, as given by an operator (A15)."""
    cluster = cluster_of(replicas=(2, 0, 1))
    reassign(cluster, *target)
    alter(cluster, 2, 0, 1, 3)
    assert (cluster.image.replicas, cluster.image.leader) == (target, target[0])


def test_a_broker_that_is_no_replica_any_more_deletes_its_log():
    """It answers like one that never had the partition, and starts again when it is added again."""
    replica = replica_of(1, log_of(0, 0))
    replica.apply(metadata(0, 0), 2, NOW)
    assert replica.state.role is Role.FOLLOWER
    gone = replace(metadata(0, 1, 2, (0,)).partitions[PARTITION], replicas=(0,))
    effects = replica.apply(replace(metadata(0), partitions={PARTITION: gone}), 2, NOW)
    assert effects == [Delete()]
    assert (replica.state.log.leo, replica.state.log.hw, replica.state.role) == (0, 0, Role.NONE)
    assert sent(produce(replica), ProduceReply)[0].error is Error.NOT_LEADER_OR_FOLLOWER
    assert sent(fetch(replica, 0, 1), FetchReply)[0].error is Error.NOT_LEADER_OR_FOLLOWER
    back = replace(gone, replicas=(0, 1), partition_epoch=3, adding=(1,))
    replica.apply(replace(metadata(0), partitions={PARTITION: back}), 2, NOW)
    assert replica.state.following is not None, "the same leader in the same epoch, and yet a new fetcher"


def test_a_broker_that_returns_to_a_partition_it_lost_meanwhile_deletes_its_log():
    """The log was there when it died; the first metadata of its new life names others (KAFKA-14616)."""
    replica = replica_of(1, log_of(0, 0))
    image = replace(metadata(0).partitions[PARTITION], replicas=(0,), isr=(0,))
    assert Delete() in replica.apply(replace(metadata(0), partitions={PARTITION: image}), 2, NOW)
    assert replica.state.log.leo == 0


def test_a_leader_that_is_removed_answers_who_waits_and_deletes_its_log():
    """Its clients search for the new leader at once, not after their timeouts."""
    replica = leading()
    produce(replica)
    image = replace(metadata(1, 1, 2, (1,)).partitions[PARTITION], replicas=(1,))
    effects = replica.apply(replace(metadata(1), partitions={PARTITION: image}), 1, NOW)
    assert [e.message.error for e in effects if isinstance(e, Send) and e.to == CLIENT] == [
        Error.NOT_LEADER_OR_FOLLOWER
    ]
    assert effects[-1] == Delete()


def test_a_fetch_from_before_a_removal_is_of_an_epoch_that_is_over():
    """B25: the follower is removed and added again while its fetch is in flight; only a new one counts."""
    leader = leading(log_of(0), brokers=2, isr=(0,))
    new = metadata(0, 1, 3, (0,), brokers=2)
    leader.apply(new, 1, NOW)
    reply = sent(fetch(leader, 1, epoch=0), FetchReply)[0]
    assert reply.error is Error.FENCED_LEADER_EPOCH
    assert leader.state.leading.remotes[1].leo == -1
    effects = fetch(leader, 1, epoch=1)
    assert sent(effects, AlterPartitionRequest), "a fetch of this epoch lets it join"


def test_a_leader_forgets_who_is_no_replica_any_more():
    """A34: also if the epoch stays, which it does not under today's rules."""
    leader = leading(log_of(0), brokers=2)
    fetch(leader, 1)
    assert leader.state.leading.remotes[1].leo == 1
    alone = replace(metadata(0, 0, 2, (0,)).partitions[PARTITION], replicas=(0,))
    leader.apply(replace(metadata(0), partitions={PARTITION: alone}), 1, NOW)
    assert leader.state.leading.remotes == {}
    leader.apply(metadata(0, 0, 3, (0,), brokers=2), 1, NOW)
    assert leader.state.leading.remotes[1].leo == -1


def test_a_reassignment_of_a_partition_that_nobody_leads_waits():
    """A new broker cannot catch up without a leader."""
    cluster = cluster_of()
    cluster.expire(0, 1, 2)
    assert cluster.image.leader == NO_LEADER
    assert reassign(cluster, 3) is Error.NONE
    assert (cluster.image.leader, cluster.image.isr, cluster.image.adding) == (NO_LEADER, (), (3,))


def test_a_partition_that_was_never_led_stays_so_when_a_replica_is_removed():
    """A23: its members leave no ISR before the first election, or no replica would be left that may lead."""
    cluster = Cluster(4, elr=True)
    cluster.expire(0, 1, 2, 3)
    image = PartitionImage((0, 1, 2, 3), NO_LEADER, -1, 0, (0, 1, 2, 3))
    cluster.controller.state.partitions[PARTITION] = image
    assert reassign(cluster, 0, 1) is Error.NONE
    for broker in (0, 1):  # without the marker of a clean stop
        cluster.epochs[broker] = cluster.register(broker, 2).broker_epoch
    cluster.beat(1)
    assert shape(cluster) == ((0, 1), (), (), (0, 1), 1, 0)
