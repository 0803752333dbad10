"""The membership of a broker process: registration, heartbeats, metadata in order."""

from __future__ import annotations

from core_cluster import Cluster
from core_support import NOW, PARTITION, metadata, sent

from replog.core.broker.broker import Broker
from replog.core.broker.membership import Membership
from replog.core.broker.replica import Replica
from replog.core.broker.state import ReplicaState
from replog.core.effects import Fired, Received, SetTimer, ShutDown, Timer
from replog.core.messages import (
    HeartbeatReply,
    HeartbeatRequest,
    MetadataRequest,
    MetadataUpdate,
    RegisterReply,
    RegisterRequest,
)
from replog.core.types import METADATA_HISTORY, Error, Role


def broker(**fields) -> Broker:
    return Broker(Membership(1, 4, **fields), Replica(ReplicaState(1)))


def registered(**fields) -> Broker:
    process = broker(**fields)
    process.handle(Received(-1, RegisterReply(4, Error.NONE, 7)), NOW)
    return process


def update(process: Broker, *versions: int):
    images = tuple(metadata(0, v, v, version=v) for v in versions)
    return process.handle(Received(-1, MetadataUpdate(images)), NOW)


def test_a_start_registers_and_keeps_trying():
    """The first message is a registration with the incarnation; the heartbeat timer repeats it."""
    process = broker(previous_broker_epoch=3)
    assert sent(process.start()) == [RegisterRequest(1, 4, 3)]
    assert sent(process.handle(Fired(Timer.HEARTBEAT), NOW)) == [RegisterRequest(1, 4, 3)]


def test_a_refused_or_foreign_registration_changes_nothing():
    """Errors, and replies to another incarnation, are ignored."""
    process = broker()
    process.handle(Received(-1, RegisterReply(4, Error.DUPLICATE_BROKER_REGISTRATION, -1)), NOW)
    process.handle(Received(-1, RegisterReply(3, Error.NONE, 9)), NOW)
    assert process.membership.broker_epoch == -1


def test_a_registered_broker_asks_for_metadata_and_heartbeats():
    """The registration's answer leads to a metadata request and a heartbeat with the broker epoch."""
    process = broker()
    out = process.handle(Received(-1, RegisterReply(4, Error.NONE, 7)), NOW)
    assert sent(out) == [MetadataRequest(1, -1), HeartbeatRequest(1, 7, -1)]


def test_a_broker_behind_all_that_is_remembered_takes_the_newest():
    """The controller no longer has the missing versions, and answers each request with only the newest."""
    cluster = Cluster(3)
    known = cluster.controller.state.version
    for number in range(METADATA_HISTORY + 1):
        cluster.configure(2 + number % 2)
        answer = cluster.controller._updates_after(known)
        process = registered()
        process.membership.metadata_version = known
        images, requests = process.membership.next_images(answer)
        assert not requests
        assert images[-1].version == cluster.controller.state.version == process.membership.metadata_version
        # All of them as long as they are remembered: a version may have an epoch to truncate by.
        is_whole = number < METADATA_HISTORY
        assert len(images) == (number + 1 if is_whole else 1)


def test_metadata_is_applied_in_order_after_a_first_snapshot():
    """The first version may be any; a gap requests the missing versions and applies nothing."""
    process = registered()
    update(process, 5)
    assert process.state.leader_epoch == 5
    assert sent(update(process, 7)) == [MetadataRequest(1, 5)]
    assert process.state.leader_epoch == 5
    update(process, 6, 7)
    assert (process.state.leader_epoch, process.membership.metadata_version) == (7, 7)
    update(process, 6)
    assert process.state.leader_epoch == 7


def test_a_coalescing_broker_jumps_to_the_latest():
    """With `coalesces`, versions in between are never seen."""
    process = registered(coalesces=True)
    update(process, 2)
    update(process, 4, 9)
    assert (process.state.leader_epoch, process.membership.metadata_version) == (9, 9)


def test_an_unregistered_broker_applies_no_metadata():
    """Without a broker epoch a process has no role."""
    process = broker()
    update(process, 1)
    assert process.state.role is Role.NONE
    assert process.state.partition == PARTITION


def test_a_stale_broker_epoch_makes_it_register_again():
    """STALE_BROKER_EPOCH ends the membership of this registration."""
    process = registered()
    process.handle(Received(-1, HeartbeatReply(7, Error.STALE_BROKER_EPOCH, True, False)), NOW)
    assert sent(process.handle(Fired(Timer.HEARTBEAT), NOW)) == [RegisterRequest(1, 4, -1)]


def test_a_fenced_broker_reports_new_metadata_at_once_and_keeps_one_timer():
    """A23: the heartbeat that unfences it is an extra one; a second timer would double the rate."""
    process = registered()
    out = update(process, 5)
    assert sent(out) == [HeartbeatRequest(1, 7, 5)]
    assert not [e for e in out if isinstance(e, SetTimer) and e.timer is Timer.HEARTBEAT]


def test_a_shutdown_is_granted_only_to_who_asked():
    """A29: heartbeats carry the request; the grant gives the ShutDown effect."""
    process = registered()
    grant = Received(-1, HeartbeatReply(7, Error.NONE, False, True))
    assert process.handle(grant, NOW) == []
    (wish,) = sent(process.shut_down())
    assert wish.wants_shutdown
    assert process.handle(grant, NOW) == [ShutDown()]
