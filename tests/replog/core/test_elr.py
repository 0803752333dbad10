"""Eligible leader replicas (KIP-966): the possible leaders with an empty ISR, then the last known leader."""

from __future__ import annotations

from itertools import permutations

import pytest
from core_cluster import Cluster
from core_support import PARTITION

from replog.core.types import NO_LEADER, BrokerState, Error


def test_without_elr_nobody_is_eligible_who_left():
    """Before KIP-966 an ISR below the minimum had no eligible replicas beside it."""
    cluster = Cluster(elr=False)
    cluster.alter([0])
    assert (cluster.image.isr, cluster.image.elr) == ((0,), ())


def test_elr_keeps_who_left_below_the_minimum_and_elects_from_it():
    """A17: ELR has the replicas that left; an empty ISR is led from the ELR; an unclean return leaves it."""
    cluster = Cluster()
    cluster.alter([0, 1])
    cluster.expire(1)
    assert (cluster.image.isr, cluster.image.elr) == ((0,), (1,))
    cluster.expire(0, 1)
    assert (cluster.image.isr, cluster.image.elr, cluster.image.leader) == ((), (0, 1), NO_LEADER)
    cluster.register(0, 2)
    assert cluster.image.elr == (1,)
    cluster.beat(1)
    assert (cluster.image.leader, cluster.image.isr, cluster.image.elr) == (1, (1,), ())


def test_a_clean_return_keeps_its_place_in_the_elr():
    """A17, KIP-966: the marker's broker epoch shows that nothing was lost."""
    cluster = Cluster()
    cluster.alter([0, 1])
    cluster.expire(1)
    cluster.register(1, 2, previous=cluster.epochs[1])
    assert cluster.image.elr == (1,)


def empty(cluster, *order):
    """Silence every broker of a cluster one after the other, and return them uncleanly in this order."""
    silent = []
    for broker in (0, 1, 2):
        silent.append(broker)
        cluster.expire(*silent)
    for broker in order:
        cluster.epochs[broker] = cluster.register(broker, 2).broker_epoch


def test_who_led_last_is_remembered_while_nobody_leads_and_only_then():
    """KIP-966: set when the last leader leaves, kept while members leave the ELR, removed by an election."""
    cluster = Cluster()
    assert cluster.image.last_known_leader == NO_LEADER
    empty(cluster)
    assert (cluster.image.leader, cluster.image.isr, cluster.image.elr) == (NO_LEADER, (), (1, 2))
    assert cluster.image.last_known_leader == 2
    cluster.beat(1)
    assert (cluster.image.leader, cluster.image.last_known_leader) == (1, NO_LEADER)
    assert not cluster.image.is_recovering


@pytest.mark.parametrize("order", list(permutations((0, 1, 2))))
def test_after_an_unclean_end_of_every_broker_the_last_known_leader_leads(order):
    """KIP-966: ISR and ELR are empty; once it is active it is the whole ISR, recovering, in a new epoch."""
    cluster = Cluster()
    empty(cluster, *order)
    assert (cluster.image.leader, cluster.image.isr, cluster.image.elr) == (NO_LEADER, (), ())
    epoch = cluster.image.leader_epoch
    for broker in (0, 1):
        cluster.beat(broker)
        assert cluster.image.leader == NO_LEADER
    cluster.beat(2)
    assert (cluster.image.leader, cluster.image.isr, cluster.image.elr) == (2, (2,), ())
    assert cluster.image.leader_epoch == epoch + 1
    assert cluster.image.is_recovering
    reply = cluster.alter([2, 0], broker_id=2, broker_epoch=cluster.epochs[2])
    assert reply.error is Error.NONE
    assert not cluster.image.is_recovering


def test_the_last_known_leader_waits_while_a_member_of_the_elr_may_return():
    """KIP-966: an eligible replica has all records, so no other one leads before its place is lost."""
    cluster = Cluster()
    empty(cluster, 2)
    cluster.beat(2)
    assert (cluster.image.elr, cluster.image.leader) == ((1,), NO_LEADER)
    cluster.epochs[1] = cluster.register(1, 2).broker_epoch
    assert (cluster.image.elr, cluster.image.leader) == ((), 2)


def test_a_fenced_last_known_leader_is_not_elected():
    """KAFKA-19522: a broker that is not active cannot lead, also if it led last."""
    cluster = Cluster()
    empty(cluster, 0, 1, 2)
    cluster.beat(1)
    assert cluster.controller.state.brokers[2].state is BrokerState.FENCED
    assert (cluster.image.leader, cluster.image.last_known_leader) == (NO_LEADER, 2)


def test_without_elr_nobody_is_remembered():
    """Before KIP-966 the last member of the ISR waits there, and leads when it returns."""
    cluster = Cluster(elr=False)
    empty(cluster)
    assert (cluster.image.isr, cluster.image.last_known_leader) == ((2,), NO_LEADER)


@pytest.mark.parametrize("elr", [False, True])
def test_nobody_leaves_a_partition_that_was_never_led(elr):
    """Nothing was written, so an unclean end before the first election loses no broker its place."""
    cluster = Cluster(brokers=0, elr=elr)
    cluster.controller.create_partition(PARTITION, (0, 1, 2))
    for incarnation in (1, 2):
        for broker in (0, 1, 2):
            cluster.epochs[broker] = cluster.register(broker, incarnation).broker_epoch
    assert (cluster.image.isr, cluster.image.leader) == ((0, 1, 2), NO_LEADER)
    cluster.beat(1)
    assert (cluster.image.isr, cluster.image.leader) == ((0, 1, 2), 1)


def test_another_minimum_clears_the_elr_of_a_partition_that_is_led():
    """KAFKA-16540: under a smaller minimum HW moves without the eligible replicas."""
    cluster = Cluster()
    cluster.alter([0])
    assert cluster.image.elr == (1, 2)
    epoch = cluster.image.partition_epoch
    assert cluster.configure(1) is Error.NONE
    assert (cluster.image.elr, cluster.image.isr, cluster.image.min_isr) == ((), (0,), 1)
    assert cluster.image.partition_epoch == epoch + 1


def test_another_minimum_leaves_a_partition_without_a_leader_its_candidates():
    """HW cannot move, and only eligible replicas are left; Kafka clears the ELR, and no replica may lead."""
    cluster = Cluster()
    empty(cluster)
    assert cluster.configure(1) is Error.NONE
    assert (cluster.image.elr, cluster.image.last_known_leader) == ((1, 2), 2)
    cluster.beat(1)
    assert (cluster.image.leader, cluster.image.isr) == (1, (1,))
    assert cluster.image.elr == (), "one member is enough by now, so HW moves without broker 2"


def test_a_leader_that_does_not_have_the_minimum_yet_cannot_change_the_isr():
    """Otherwise it would commit by its own minimum, with members eligible by the new one (as Kafka's)."""
    cluster = Cluster(min_isr=1)
    epoch = cluster.image.partition_epoch
    cluster.configure(2)
    assert cluster.alter([0], partition_epoch=epoch).error is Error.INVALID_UPDATE_VERSION
    assert (cluster.image.isr, cluster.image.elr) == ((0, 1, 2), ())
    cluster.alter([0])
    assert (cluster.image.isr, cluster.image.elr) == ((0,), (1, 2))


def test_a_minimum_that_is_none_is_refused_and_the_same_one_changes_nothing():
    """At least one copy; a repeated request is no new version of the metadata."""
    cluster = Cluster()
    assert cluster.configure(0) is Error.INVALID_REQUEST
    cluster.configure(1)
    before = cluster.image
    assert cluster.configure(1) is Error.NONE
    assert cluster.image == before
