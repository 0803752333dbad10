"""The controller: the order of its checks, elections, fencing, registration, controlled shutdown, ELR."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest
from core_support import PARTITION

from replog.core.controller import Controller, ControllerConfig, ControllerState
from replog.core.effects import Fired, Received, Send, Timer
from replog.core.messages import (
    AlterPartitionReply,
    AlterPartitionRequest,
    ElectReply,
    ElectRequest,
    HeartbeatReply,
    HeartbeatRequest,
    MetadataRequest,
    MetadataUpdate,
    RegisterReply,
    RegisterRequest,
)
from replog.core.protocol import CURRENT
from replog.core.types import NO_LEADER, BrokerState, Error

NOW = 1_000_000


class Cluster:
    """A controller with three registered, active brokers and one partition led by broker 0."""

    def __init__(self, brokers=3, min_isr=2, **rules):
        settings = ControllerConfig(min_isr, session_timeout_ms=9_000)
        self.now = NOW
        self.controller = Controller(ControllerState(settings, replace(CURRENT, **rules)))
        self.controller.create_partition(PARTITION, tuple(range(brokers)))
        self.epochs = {broker: self.register(broker, 1).broker_epoch for broker in range(brokers)}
        for broker in range(brokers):
            self.beat(broker)

    @property
    def image(self):
        return self.controller.state.partitions[PARTITION]

    def tell(self, source, message, kind):
        effects = self.controller.handle(Received(source, message), self.now)
        found = [e.message for e in effects if isinstance(e, Send) and isinstance(e.message, kind)]
        return found[0] if found else None

    def register(self, broker, incarnation, previous=-1):
        return self.tell(broker, RegisterRequest(broker, incarnation, previous), RegisterReply)

    def beat(self, broker, shutdown=False, version=None):
        version = self.controller.state.version if version is None else version
        return self.tell(
            broker, HeartbeatRequest(broker, self.epochs[broker], version, shutdown), HeartbeatReply
        )

    def expire(self, *silent):
        """Let time pass in which only these brokers are silent."""
        for _ in range(6):
            self.now += 2_000
            for broker in self.epochs:
                if broker not in silent:
                    self.beat(broker)
        self.controller.handle(Fired(Timer.SESSION_CHECK), self.now)

    def alter(self, members, **changes):
        request = AlterPartitionRequest(
            1,
            PARTITION,
            0,
            self.epochs[0],
            self.image.leader_epoch,
            self.image.partition_epoch,
            tuple((member, self.epochs.get(member, -1)) for member in members),
        )
        return self.tell(0, replace(request, **changes), AlterPartitionReply)

    def elect(self, unclean=False):
        return self.tell(-9, ElectRequest(1, PARTITION, unclean), ElectReply).error


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
    """A15: the ISR never becomes empty without ELR; nobody leads until it returns."""
    cluster = Cluster()
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
    """KIP-903: heartbeats of an earlier incarnation are of nobody, so the new one is fenced when silent."""
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


def test_unclean_election_needs_to_be_asked_for():
    """A16: never by itself unless enabled; then ISR = {leader}, recovering."""
    cluster = Cluster()
    cluster.alter([0])
    assert cluster.elect(unclean=True) is Error.ELECTION_NOT_NEEDED
    cluster.expire(0)
    assert cluster.image.leader == NO_LEADER
    assert cluster.elect(unclean=True) is Error.NONE
    assert (cluster.image.leader, cluster.image.isr, cluster.image.is_recovering) == (1, (1,), True)
    enabled = Cluster(unclean_election=True)
    enabled.alter([0])
    enabled.expire(0)
    assert enabled.image.leader == 1


def test_a_leaving_broker_is_let_go_when_it_leads_nothing_and_everyone_knows():
    """A29: CONTROLLED_SHUTDOWN takes it out of ISR and leadership, SHUTDOWN_NOW after all have heard."""
    cluster = Cluster()
    assert not cluster.beat(0, shutdown=True).should_shut_down
    assert (cluster.image.leader, cluster.image.isr) == (1, (1, 2))
    cluster.beat(1)
    assert not cluster.beat(0, shutdown=True).should_shut_down
    cluster.beat(2)
    assert cluster.beat(0, shutdown=True).should_shut_down


def test_a_leaving_broker_does_not_wait_for_one_that_is_fenced():
    """A29: who is not active does not hear of anything, and has not to."""
    cluster = Cluster()
    cluster.expire(2)
    assert cluster.controller.state.brokers[2].applied_version < cluster.controller.state.version
    cluster.beat(0, shutdown=True)
    cluster.beat(1)
    assert cluster.beat(0, shutdown=True).should_shut_down


def test_a_broker_that_does_not_leave_is_not_let_go():
    """A29: also if it leads nothing and everyone knows."""
    cluster = Cluster()
    for broker in (0, 2):
        cluster.beat(broker)
    assert not cluster.beat(1).should_shut_down


def test_without_elr_nobody_is_eligible_who_left():
    """Before KIP-966 an ISR below the minimum had no one beside it."""
    cluster = Cluster()
    cluster.alter([0])
    assert (cluster.image.isr, cluster.image.elr) == ((0,), ())


def test_elr_keeps_who_left_below_the_minimum_and_elects_from_it():
    """A17: ELR holds who left; an empty ISR is led from the ELR; an unclean return leaves it."""
    cluster = Cluster(elr=True)
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
    cluster = Cluster(elr=True)
    cluster.alter([0, 1])
    cluster.expire(1)
    cluster.register(1, 2, previous=cluster.epochs[1])
    assert cluster.image.elr == (1,)


def empty(cluster, *order):
    """Let every broker of a cluster fall silent one after the other, and return uncleanly in this order."""
    silent = []
    for broker in (0, 1, 2):
        silent.append(broker)
        cluster.expire(*silent)
    for broker in order:
        cluster.epochs[broker] = cluster.register(broker, 2).broker_epoch


def test_who_led_last_is_remembered_while_nobody_leads_and_only_then():
    """KIP-966: set when the last leader goes, kept while members leave the ELR, gone with the next leader."""
    cluster = Cluster(elr=True)
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
    cluster = Cluster(elr=True)
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
    """KIP-966: who is still eligible has everything, so nobody else leads before its place is lost."""
    cluster = Cluster(elr=True)
    empty(cluster, 2)
    cluster.beat(2)
    assert (cluster.image.elr, cluster.image.leader) == ((1,), NO_LEADER)
    cluster.epochs[1] = cluster.register(1, 2).broker_epoch
    assert (cluster.image.elr, cluster.image.leader) == ((), 2)


def test_a_fenced_last_known_leader_is_not_elected():
    """KAFKA-19522: a broker that is not active cannot lead, also if it led last."""
    cluster = Cluster(elr=True)
    empty(cluster, 0, 1, 2)
    cluster.beat(1)
    assert cluster.controller.state.brokers[2].state is BrokerState.FENCED
    assert (cluster.image.leader, cluster.image.last_known_leader) == (NO_LEADER, 2)


def test_without_elr_nobody_is_remembered():
    """Before KIP-966 the last member of the ISR waits there, and leads when it returns."""
    cluster = Cluster()
    empty(cluster)
    assert (cluster.image.isr, cluster.image.last_known_leader) == ((2,), NO_LEADER)


@pytest.mark.parametrize("elr", [False, True])
def test_nobody_leaves_a_partition_that_was_never_led(elr):
    """Nothing was written, so an unclean end before the first election costs nobody its place."""
    cluster = Cluster(brokers=0, elr=elr)
    cluster.controller.create_partition(PARTITION, (0, 1, 2))
    for incarnation in (1, 2):
        for broker in (0, 1, 2):
            cluster.epochs[broker] = cluster.register(broker, incarnation).broker_epoch
    assert (cluster.image.isr, cluster.image.leader) == ((0, 1, 2), NO_LEADER)
    cluster.beat(1)
    assert (cluster.image.isr, cluster.image.leader) == ((0, 1, 2), 1)


def test_metadata_is_sent_from_where_a_broker_is_or_as_a_snapshot():
    """Consecutive versions if they are remembered, else the latest alone."""
    cluster = Cluster()
    latest = cluster.controller.state.version
    update = cluster.tell(1, MetadataRequest(1, latest - 2), MetadataUpdate)
    assert [image.version for image in update.images] == [latest - 1, latest]
    snapshot = cluster.tell(1, MetadataRequest(1, -1), MetadataUpdate)
    assert [image.version for image in snapshot.images] == [latest]


def test_who_knows_the_first_version_is_sent_all_others():
    """Version 0 is one that a broker may have, and -1 is none."""
    cluster = Cluster()
    update = cluster.tell(1, MetadataRequest(1, 0), MetadataUpdate)
    versions = [image.version for image in update.images]
    assert versions == list(range(1, cluster.controller.state.version + 1))
    assert len(versions) > 1


def test_what_is_forgotten_is_replaced_by_the_latest():
    """A broker that is behind what is remembered gets no gap."""
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


def test_a_broker_is_fenced_once():
    """A23: as long as it stays silent, nothing more is told of it."""
    cluster = Cluster()
    cluster.expire(2)
    assert cluster.controller.state.brokers[2].state is BrokerState.FENCED
    version = cluster.controller.state.version
    cluster.expire(2)
    assert cluster.controller.state.version == version
