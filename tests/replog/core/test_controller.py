"""The controller: the order of its checks, elections, fencing, registration, controlled shutdown."""

from __future__ import annotations

from dataclasses import replace

import pytest
from core_cluster import Cluster
from core_support import PARTITION

from replog.core.controller.election import Rules, prefer
from replog.core.effects import Fired, Timer
from replog.core.messages import (
    HeartbeatReply,
    HeartbeatRequest,
    MetadataRequest,
    MetadataUpdate,
)
from replog.core.protocol import Protocol
from replog.core.types import NO_LEADER, BrokerState, Error


def test_an_accepted_shrink_bumps_the_partition_epoch_only():
    """A12: isr changes, partitionEpoch + 1, leaderEpoch unchanged; the reply has the new state."""
    cluster = Cluster()
    before = cluster.image
    reply = cluster.alter([0, 1])
    assert cluster.image == replace(before, isr=(0, 1), partition_epoch=before.partition_epoch + 1)
    assert (reply.error, reply.isr, reply.partition_epoch) == (Error.NONE, (0, 1), before.partition_epoch + 1)


def test_a_proposal_that_changes_nothing_succeeds_without_a_new_epoch():
    """A12: a no-op change is a success and no bump."""
    cluster = Cluster()
    before = cluster.image
    assert cluster.alter([2, 1, 0]).error is Error.NONE
    assert cluster.image == before


CHECKS = [
    ({"broker_epoch": 99}, Error.STALE_BROKER_EPOCH),
    ({"broker_id": 77}, Error.STALE_BROKER_EPOCH),
    ({"partition": "no-0"}, Error.UNKNOWN_TOPIC_OR_PARTITION),
    ({"leader_epoch": 50}, Error.NOT_CONTROLLER),
    ({"partition_epoch": 50}, Error.NOT_CONTROLLER),
    ({"leader_epoch": -1}, Error.FENCED_LEADER_EPOCH),
    ({"broker_id": 1, "broker_epoch": 3}, Error.INVALID_REQUEST),
    ({"partition_epoch": -3}, Error.INVALID_UPDATE_VERSION),
    ({"new_isr": ()}, Error.INVALID_REQUEST),
    ({"new_isr": ((0, 2), (0, 2))}, Error.INVALID_REQUEST),
    ({"new_isr": ((1, 3),)}, Error.INVALID_REQUEST),
    ({"new_isr": ((0, 2), (8, -1))}, Error.INVALID_REQUEST),
    ({"is_recovering": True}, Error.INVALID_REQUEST),
    ({"new_isr": ((0, 2), (1, 77))}, Error.INELIGIBLE_REPLICA),
    ({"new_isr": ((0, 2), (1, 2))}, Error.INELIGIBLE_REPLICA),
]


@pytest.mark.parametrize(("changes", "error"), CHECKS)
def test_a_proposal_is_refused_with_the_error_of_the_first_broken_rule(changes, error):
    """A12: each rule has its error, and nothing changes."""
    cluster = Cluster()
    assert cluster.epochs == {0: 2, 1: 3, 2: 4}
    before = cluster.image
    assert cluster.alter([0, 1], **changes).error is error
    assert cluster.image == before


@pytest.mark.parametrize("rank", range(len(CHECKS) - 1))
def test_the_checks_come_in_kafkas_order(rank):
    """A12: a request that also breaks a later rule gets the error of the earlier one."""
    first, error = CHECKS[rank]
    for later, _ in CHECKS[rank + 1 :]:
        assert Cluster().alter([0, 1], **{**later, **first}).error is error


def test_a_fenced_or_leaving_member_is_not_admitted():
    """KIP-841: INELIGIBLE_REPLICA for members that are not active."""
    cluster = Cluster()
    cluster.expire(2)
    assert cluster.controller.state.brokers[2].state is BrokerState.FENCED
    assert cluster.alter([0, 1, 2]).error is Error.INELIGIBLE_REPLICA


def test_a_fenced_member_was_admitted_under_the_old_rule():
    """B24, before KIP-841."""
    cluster = Cluster(checks_fenced=False)
    cluster.alter([0, 1])
    cluster.expire(2)
    assert cluster.controller.state.brokers[2].state is BrokerState.FENCED
    assert cluster.alter([0, 1, 2]).error is Error.NONE
    assert cluster.image.isr == (0, 1, 2)


def test_a_silent_leader_is_fenced_and_the_next_replica_leads():
    """A15, A23: out of the ISR, leader epoch + 1, first active ISR member in assignment order."""
    cluster = Cluster()
    epoch = cluster.image.leader_epoch
    cluster.expire(0)
    assert (cluster.image.leader, cluster.image.isr) == (1, (1, 2))
    assert cluster.image.leader_epoch == epoch + 1


def test_the_last_member_stays_in_the_isr_without_a_leader():
    """A15: the ISR never becomes empty without ELR; there is no leader until it returns."""
    cluster = Cluster(elr=False)
    cluster.alter([0])
    cluster.expire(0)
    assert (cluster.image.leader, cluster.image.isr) == (NO_LEADER, (0,))
    cluster.beat(0)
    assert (cluster.image.leader, cluster.image.isr) == (0, (0,))


def test_an_unfenced_broker_does_not_return_to_the_isr_by_itself():
    """A23: unfencing makes it a candidate again only by its leader's proposal."""
    cluster = Cluster()
    cluster.expire(2)
    cluster.beat(2)
    assert cluster.controller.state.brokers[2].state is BrokerState.ACTIVE
    assert cluster.image.isr == (0, 1)


def test_a_broker_is_unfenced_only_after_it_knows_of_its_registration():
    """A23: the heartbeat's metadata version must reach the registration."""
    cluster = Cluster()
    cluster.expire(2)
    cluster.epochs[2] = cluster.register(2, 2).broker_epoch
    assert cluster.beat(2, version=cluster.epochs[2] - 1).is_fenced
    assert not cluster.beat(2, version=cluster.epochs[2]).is_fenced


def test_a_new_incarnation_waits_for_the_old_session_and_gets_a_new_epoch():
    """A23: DUPLICATE_BROKER_REGISTRATION while the old one may live; then a later broker epoch."""
    cluster = Cluster()
    assert cluster.register(1, 2).error is Error.DUPLICATE_BROKER_REGISTRATION
    cluster.expire(1)
    reply = cluster.register(1, 2)
    assert reply.error is Error.NONE
    assert reply.broker_epoch > cluster.epochs[1]
    assert cluster.register(1, 2) == reply
    assert cluster.beat(1).error is Error.STALE_BROKER_EPOCH


def test_a_former_life_does_not_keep_the_session_of_the_next_one():
    """KIP-903: heartbeats of an earlier incarnation do not count, so the new one is fenced when silent."""
    cluster = Cluster()
    cluster.expire(2)
    epoch = cluster.register(2, 2).broker_epoch
    newer = HeartbeatRequest(2, epoch, cluster.controller.state.version, False)
    assert not cluster.tell(2, newer, HeartbeatReply).is_fenced
    cluster.expire()
    assert cluster.controller.state.brokers[2].state is BrokerState.FENCED


def test_preferred_election_keeps_the_old_leader_in_the_isr():
    """A15: the first replica leads again, nobody leaves; refused when it may not, or need not."""
    cluster = Cluster()
    assert cluster.elect() is Error.ELECTION_NOT_NEEDED
    cluster.expire(0)
    assert cluster.elect() is Error.PREFERRED_LEADER_NOT_AVAILABLE
    cluster.beat(0)
    reply = cluster.alter(
        [0, 1, 2], broker_id=1, broker_epoch=cluster.epochs[1], partition_epoch=cluster.image.partition_epoch
    )
    assert reply.error is Error.NONE
    assert cluster.elect() is Error.NONE
    assert (cluster.image.leader, cluster.image.isr) == (0, (0, 1, 2))


def test_the_last_member_of_an_isr_is_not_preferred_while_it_is_fenced():
    """KIP-841: without ELR a dead broker may be the whole ISR, and still may not lead."""
    cluster = Cluster(elr=False)
    cluster.alter([0])
    cluster.expire(0)
    assert (cluster.image.leader, cluster.image.isr) == (NO_LEADER, (0,))
    assert cluster.elect() is Error.PREFERRED_LEADER_NOT_AVAILABLE
    assert cluster.image.leader == NO_LEADER


@pytest.mark.parametrize(
    ("change", "active"),
    [({}, (0, 1, 2)), ({"leader": 1}, (1, 2)), ({"leader": 1, "isr": (1, 2)}, (0, 1, 2))],
    ids=["it leads", "it is fenced", "it is not in the ISR"],
)
def test_a_first_replica_that_may_not_lead_is_not_preferred(change, active):
    """A15: the partition stays unchanged, including its epochs."""
    image = replace(Cluster().image, **change)
    assert prefer(image, Rules(Protocol(), 2, active)) is image


def test_unclean_election_needs_to_be_asked_for():
    """A16: never by itself unless enabled; then ISR = {leader}, recovering."""
    cluster = Cluster(elr=False)
    cluster.alter([0])
    assert cluster.elect(unclean=True) is Error.ELECTION_NOT_NEEDED
    cluster.expire(0)
    assert cluster.image.leader == NO_LEADER
    assert cluster.elect(unclean=True) is Error.NONE
    assert (cluster.image.leader, cluster.image.isr, cluster.image.is_recovering) == (1, (1,), True)
    enabled = Cluster(elr=False, unclean_election=True)
    enabled.alter([0])
    enabled.expire(0)
    assert enabled.image.leader == 1


def test_a_recovered_leader_that_is_alone_proposes_the_same_isr():
    """A16: the proposal changes no member, but ends the recovery, in a new version of the partition."""
    cluster = Cluster(elr=False, unclean_election=True)
    cluster.alter([0])
    cluster.expire(0)
    before = cluster.image
    assert (before.isr, before.is_recovering) == ((1,), True)
    reply = cluster.alter([1], broker_id=1, broker_epoch=cluster.epochs[1])
    assert (reply.error, reply.partition_epoch) == (Error.NONE, before.partition_epoch + 1)
    assert cluster.image == replace(before, is_recovering=False, partition_epoch=before.partition_epoch + 1)


def test_a_leaving_broker_is_let_go_when_it_leads_nothing_and_everyone_knows():
    """A29: CONTROLLED_SHUTDOWN takes it out of ISR and leadership, SHUTDOWN_NOW after all are notified."""
    cluster = Cluster()
    assert not cluster.beat(0, shutdown=True).should_shut_down
    assert (cluster.image.leader, cluster.image.isr) == (1, (1, 2))
    cluster.beat(1)
    assert not cluster.beat(0, shutdown=True).should_shut_down
    cluster.beat(2)
    assert cluster.beat(0, shutdown=True).should_shut_down


def test_a_leaving_broker_does_not_wait_for_one_that_is_fenced():
    """A29: an inactive broker receives no metadata, and need not."""
    cluster = Cluster()
    cluster.expire(2)
    assert cluster.controller.state.brokers[2].applied_version < cluster.controller.state.version
    cluster.beat(0, shutdown=True)
    cluster.beat(1)
    assert cluster.beat(0, shutdown=True).should_shut_down


def test_a_broker_that_does_not_leave_is_not_let_go():
    """A29: also if it leads nothing and all are notified."""
    cluster = Cluster()
    for broker in (0, 2):
        cluster.beat(broker)
    assert not cluster.beat(1).should_shut_down


def test_metadata_is_sent_from_where_a_broker_is_or_as_a_snapshot():
    """Consecutive versions if they are remembered, else the latest alone."""
    cluster = Cluster()
    latest = cluster.controller.state.version
    update = cluster.tell(1, MetadataRequest(1, latest - 2), MetadataUpdate)
    assert [image.version for image in update.images] == [latest - 1, latest]
    snapshot = cluster.tell(1, MetadataRequest(1, -1), MetadataUpdate)
    assert [image.version for image in snapshot.images] == [latest]


def test_who_knows_the_first_version_is_sent_all_others():
    """Version 0 is one that a broker may have, and -1 means none."""
    cluster = Cluster()
    update = cluster.tell(1, MetadataRequest(1, 0), MetadataUpdate)
    versions = [image.version for image in update.images]
    assert versions == list(range(1, cluster.controller.state.version + 1))
    assert len(versions) > 1


def test_what_is_forgotten_is_replaced_by_the_latest():
    """A broker that is behind the remembered versions gets no gap."""
    cluster = Cluster()
    del cluster.controller.state.history[:2]
    latest = cluster.controller.state.version
    update = cluster.tell(1, MetadataRequest(1, 0), MetadataUpdate)
    assert [image.version for image in update.images] == [latest]


def test_a_copy_is_independent():
    """A snapshot of the controller does not see later changes."""
    cluster = Cluster()
    twin = cluster.controller.copy()
    cluster.expire(0)
    assert twin.state.partitions[PARTITION].leader == 0
    assert cluster.image.leader == 1


def test_a_session_ends_after_the_timeout_and_not_with_it():
    """A23: longer than session.timeout.ms without a heartbeat."""
    cluster = Cluster()
    for late, state in ((9_000, BrokerState.ACTIVE), (9_001, BrokerState.FENCED)):
        cluster.controller.handle(Fired(Timer.SESSION_CHECK), cluster.now + late)
        assert {broker.state for broker in cluster.controller.state.brokers.values()} == {state}


def test_a_broker_that_dies_in_its_controlled_shutdown_is_fenced():
    """A23, A29: its session ends like any other; otherwise its next process would wait forever."""
    cluster = Cluster()
    cluster.beat(2, shutdown=True)
    assert cluster.controller.state.brokers[2].state is BrokerState.SHUTTING_DOWN
    cluster.expire(2)
    assert cluster.controller.state.brokers[2].state is BrokerState.FENCED
    assert cluster.register(2, 2).error is Error.NONE


def test_a_member_since_creation_leaves_the_isr_when_it_registers_again():
    """A23: it was never active, so nothing fenced it; its next process joins by its leader's proposal."""
    cluster = Cluster(brokers=0)
    cluster.controller.create_partition(PARTITION, (0, 1))
    cluster.epochs = {broker: cluster.register(broker, 1).broker_epoch for broker in (0, 1)}
    cluster.beat(0)
    assert (cluster.image.leader, cluster.image.isr) == (0, (0, 1))
    cluster.register(1, 2, previous=cluster.epochs[1])
    assert cluster.image.isr == (0,)


def test_a_broker_is_fenced_once():
    """A23: as long as it stays silent, no further change is announced."""
    cluster = Cluster()
    cluster.expire(2)
    assert cluster.controller.state.brokers[2].state is BrokerState.FENCED
    version = cluster.controller.state.version
    cluster.expire(2)
    assert cluster.controller.state.version == version


def test_created_and_deleted_partitions_are_announced_to_every_broker():
    """One version of the metadata for all partitions of a request."""
    cluster = Cluster()
    controller = cluster.controller
    version = controller.state.version
    made = controller.create({"u-0": (1, 0), "u-1": (0, 2)})
    assert [send.to for send in made] == [0, 1, 2]
    image = made[0].message.images[-1]
    assert (image.version, image.partitions["u-0"].leader, image.partitions["u-1"].leader) == (
        version + 1,
        1,
        0,
    )
    gone = controller.delete(["u-0", "u-1"])
    first, last = (send.message.images[-1] for send in gone if send.to == 1)
    emptied = first.partitions["u-0"]
    assert (emptied.replicas, emptied.leader, emptied.isr) == ((), NO_LEADER, ())
    old = image.partitions["u-0"]
    assert (emptied.leader_epoch, emptied.partition_epoch) == (old.leader_epoch + 1, old.partition_epoch + 1)
    assert set(last.partitions) == {PARTITION}
    assert (first.version, last.version) == (version + 2, version + 3)


@pytest.mark.parametrize(("fenced", "expected"), [((), (2, (2, 1, 0))), ((2,), (1, (1, 0)))])
def test_a_partition_is_created_in_a_later_epoch_than_any_log_of_its_name(fenced, expected):
    """A replica that is absent, or has died since its last heartbeat, may have a deleted partition's log."""
    cluster = Cluster()
    for broker in fenced:
        cluster.controller.fence(broker)
    made = cluster.controller.create({"u-0": (2, 1, 0)})[0].message.images[-1]
    image = made.partitions["u-0"]
    assert ((image.leader, image.isr), image.leader_epoch) == (expected, made.version)
