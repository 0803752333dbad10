"""The world: deterministic, and controllable step by step."""

from __future__ import annotations

import pytest

from replog.core.effects import Timer
from replog.core.messages import AlterPartitionReply, AlterPartitionRequest, ProduceReply, ProduceRequest
from replog.core.types import Batch, Error, Role
from replog.sim.cluster.node import Alarm, Delivery
from replog.sim.cluster.options import WorldOptions
from replog.sim.cluster.storage import MemoryStorage
from replog.sim.cluster.world import World
from replog.sim.disks.stored import StoreStorage

CLIENT = -10


def run_for(world: World, ms: int) -> None:
    end = world.now_ms + ms
    while world.now_ms < end and world.step():
        pass


def led_world(**options) -> World:
    """Three brokers, registered, with a leader, followers fetching."""
    world = World(WorldOptions(**options))
    for broker in world.nodes:
        world.restart(broker)
    run_for(world, 5_000)
    return world


def produce(world: World, number: int, acks: int = -1) -> None:
    batch = Batch(0, -1, 1, body=b"m%d" % number)
    world.send(CLIENT, world.image.leader, ProduceRequest(number, batch, acks, 5_000))


@pytest.mark.parametrize("storage", [MemoryStorage, StoreStorage])
def test_a_clean_stop_stores_the_high_watermark(storage: type[MemoryStorage | StoreStorage]):
    """A25: at shutdown, and not only every five seconds; on values as in files."""
    world = led_world(make_storage=storage)
    produce(world, 1)
    run_for(world, 1_000)
    for node in world.nodes.values():
        assert node.broker is not None
        high_watermark = node.broker.state.log.hw
        assert high_watermark == 1
        assert node.storage.hw_checkpoint < high_watermark
        world.stop(node.broker_id)
        assert node.storage.recover().log.hw == high_watermark


def test_a_stop_whose_disk_fails_ends_the_process_all_the_same():
    """Its lock is released with it: the next start is not refused, and treats the stop as unclean."""
    world = led_world(make_storage=StoreStorage)
    produce(world, 1)
    run_for(world, 1_000)
    node = world.nodes[0]
    assert isinstance(node.storage, StoreStorage)
    node.storage.fs.faults.fail_fsync_in = 0
    world.stop(0)
    assert node.broker is None
    assert (world.counters.disk_failures, world.counters.stops) == (1, 0)
    assert node.storage.recover().previous_broker_epoch == -1


def test_a_cluster_elects_a_leader_and_acknowledges():
    """Without faults one leader serves, and acks=all is answered."""
    world = led_world()
    assert world.image.leader == 0
    produce(world, 1)
    run_for(world, 2_000)
    assert (CLIENT, ProduceReply(1, Error.NONE, 0)) in world.replies


def test_a_dead_leader_is_replaced_and_returns_as_a_follower():
    """Crash, session timeout, election, restart, catching up, and the record is everywhere."""
    world = led_world()
    produce(world, 1)
    run_for(world, 2_000)
    world.crash(0)
    run_for(world, 12_000)
    assert world.image.leader == 1
    world.restart(0)
    run_for(world, 20_000)
    broker = world.nodes[0].broker
    assert broker is not None
    assert broker.state.role is Role.FOLLOWER
    assert broker.state.log.cells() == ((0, b"m1"),)
    assert set(world.image.isr) == {0, 1, 2}


def test_any_pending_item_can_be_taken_or_dropped():
    """The caller decides the next event: a lost message never arrives, a selected one arrives now."""
    world = led_world()
    produce(world, 1, acks=1)
    (entry,) = [e for e in world.pending() if isinstance(e[2], Delivery) and e[2].source == CLIENT]
    now = world.now_ms
    world.take(entry)
    leader = world.nodes[0].broker
    assert leader is not None
    assert (leader.state.log.leo, world.now_ms) == (1, now)
    produce(world, 2, acks=1)
    (entry,) = [e for e in world.pending() if isinstance(e[2], Delivery) and e[2].source == CLIENT]
    world.drop(entry)
    run_for(world, 2_000)
    assert leader.state.log.leo == 1


def test_a_node_can_die_between_any_two_effects():
    """effects_left = k permits exactly k more: append, two answers to waiting followers, the client's."""
    for left, on_disk, answered in ((0, 0, False), (1, 1, False), (3, 1, False), (4, 1, True)):
        world = led_world()
        produce(world, 1, acks=1)
        (entry,) = [e for e in world.pending() if isinstance(e[2], Delivery) and e[2].source == CLIENT]
        world.nodes[0].effects_left = left
        world.take(entry)
        replies = [m for _, m in world.replies] + [
            e[2].message for e in world.pending() if isinstance(e[2], Delivery) and e[2].to == CLIENT
        ]
        assert (world.nodes[0].storage.end(), bool(replies)) == (on_disk, answered)


def test_messages_to_a_dead_incarnation_are_lost():
    """A connection dies with the process: messages in flight to it do not reach the next one."""
    world = led_world()
    produce(world, 1, acks=1)
    world.crash(0)
    world.restart(0)
    (entry,) = [e for e in world.pending() if isinstance(e[2], Delivery) and e[2].source == CLIENT]
    world.take(entry)
    assert world.replies == []


def test_no_copy_of_a_proposal_arrives_after_a_later_one_was_refused():
    """Connections keep their order: what was sent no later is lost, what was sent later is in flight."""
    world = led_world()
    for correlation in (5, 6, 6, 7):
        world.send(0, -1, AlterPartitionRequest(correlation, "t-0", 0, 2, 0, 1, ((0, 2),)))
    world.send(1, -1, AlterPartitionRequest(5, "t-0", 1, 3, 0, 1, ((0, 2),)))

    def under_way():
        items = [entry[2] for entry in world.pending()]
        return [
            (item.source, item.message.correlation)
            for item in items
            if isinstance(item, Delivery) and isinstance(item.message, AlterPartitionRequest)
        ]

    world.send(-1, 0, AlterPartitionReply(6, Error.NOT_CONTROLLER))
    assert len(under_way()) == 5
    world.send(-1, 0, AlterPartitionReply(6, Error.INELIGIBLE_REPLICA))
    assert under_way() == [(0, 7), (1, 5)]


def test_a_paused_process_handles_everything_when_it_wakes():
    """A pause delays events, it does not lose them."""
    world = led_world()
    world.pause(0)
    produce(world, 1, acks=1)
    run_for(world, 1_000)
    assert world.replies == []
    world.resume(0)
    run_for(world, 1_000)
    assert [message for _, message in world.replies] == [ProduceReply(1, Error.NONE, 0)]


def test_timers_of_a_dead_process_do_not_ring():
    """An alarm belongs to an incarnation."""
    world = led_world()
    alarms = [e for e in world.pending() if isinstance(e[2], Alarm) and e[2].owner == 0]
    assert {Timer.ISR_CHECK, Timer.HEARTBEAT} <= {e[2].timer for e in alarms}
    world.crash(0)
    steps = world.counters.steps
    for entry in alarms:
        world.take(entry)
    assert world.counters.steps == steps


def test_a_controlled_shutdown_moves_the_leader_first_and_loses_nothing():
    """A29: leadership ends before the process does; the clean start finds everything."""
    world = led_world()
    produce(world, 1, acks=1)
    run_for(world, 2_000)
    world.shut_down(0)
    run_for(world, 8_000)
    assert world.nodes[0].broker is None
    assert world.image.leader == 1
    assert world.nodes[0].storage.flushed() == world.nodes[0].storage.end() == 1


def test_the_real_store_and_the_model_of_it_run_alike():
    """The same steps on files and on values give the same states, through a crash and a restart."""
    worlds = [led_world(make_storage=kind) for kind in (MemoryStorage, StoreStorage)]
    for world in worlds:
        for number in range(5):
            produce(world, number)
            run_for(world, 700)
        world.crash(1)
        run_for(world, 12_000)
        produce(world, 9)
        world.restart(1)
        run_for(world, 20_000)
    ends = [[node.broker and node.broker.state for node in world.nodes.values()] for world in worlds]
    assert ends[0] == ends[1]
    assert {state and state.log.leo for state in ends[0]} == {6}
