"""The oracles by hand: what is a copy, the subject of a promise, the flushed records of a dead process."""

from __future__ import annotations

import pytest

from replog.core.messages import ProduceRequest
from replog.core.protocol import preset
from replog.core.types import Batch
from replog.sim.cluster.options import WorldOptions
from replog.sim.cluster.storage import MemoryStorage
from replog.sim.cluster.world import World
from replog.sim.disks.stored import StoreStorage
from replog.sim.oracles.oracles import Oracles
from replog.sim.oracles.promises import ViolationError


def run_for(world: World, ms: int) -> None:
    end = world.now_ms + ms
    while world.now_ms < end and world.step():
        pass


def watched_world(protocol: str = "kafka-4.1", **options) -> tuple[World, Oracles]:
    """Three brokers in the ISR with two committed records, and the oracles that watched."""
    oracles = Oracles(2)
    world = World(WorldOptions(protocol=preset(protocol), **options), observer=oracles)
    for broker in world.nodes:
        world.restart(broker)
    run_for(world, 5_000)
    for number in range(2):
        batch = Batch(0, -1, 1, body=b"m%d" % number)
        world.send(-10, world.image.leader, ProduceRequest(number, batch, -1, 5_000))
        run_for(world, 2_000)
    assert len(oracles.committed) == 2
    return world, oracles


def spoil(world: World, broker: int) -> None:
    """Give a broker another last record, at the same offset."""
    running = world.nodes[broker].broker
    assert running is not None
    running.state.log.batches[-1] = Batch(1, 0, 1, body=b"other")


def test_a_member_with_another_record_at_the_right_offset_is_not_complete():
    """isr-complete is about content, not about the LEO."""
    world, oracles = watched_world()
    oracles._check_isr(world)
    spoil(world, 1)
    with pytest.raises(ViolationError, match=r"isr-complete: ISR member 1 has LEO 2.*offset 1 is"):
        oracles._check_isr(world)


def test_a_member_of_the_elr_is_held_to_the_same():
    """A replica that may be elected when the ISR is empty needs everything, too."""
    world, oracles = watched_world("kafka-4.1")
    world.crash(2)
    world.fence(2)
    world.crash(1)
    world.fence(1)
    run_for(world, 100)
    assert world.image.elr == (1,)
    oracles._check_isr(world)
    state = world.controller.state.brokers[1]
    world.restart(1)
    running = world.nodes[1].broker
    assert running is not None
    running.membership.broker_epoch = state.broker_epoch
    oracles._check_isr(world)
    spoil(world, 1)
    with pytest.raises(ViolationError, match="isr-complete: ELR member 1"):
        oracles._check_isr(world)


def test_a_broker_that_lost_data_counts_as_a_copy_of_what_it_had_and_of_nothing_later():
    """committed-copies: records committed before a power loss were on that disk, later ones were not."""
    world, oracles = watched_world()
    for broker in (1, 2):
        world.lose_power(broker, lambda _: 0)
    oracles.lossy = {1: 2}
    oracles._check_copies(world)
    oracles.lossy = {1: 1, 2: 1}
    with pytest.raises(ViolationError, match="committed-copies: 1 of 2 disks"):
        oracles._check_copies(world)


@pytest.mark.parametrize("has_other_records", [False, True])
def test_a_removed_broker_counts_as_a_copy_of_what_it_deleted(has_other_records):
    """committed-copies: by content, since its log may have been as long with other records at its end."""
    world, oracles = watched_world()
    stays = world.image.leader
    goes, loses = (broker for broker in world.nodes if broker != stays)
    world.reassign((stays, loses))
    if has_other_records:
        spoil(world, goes)
    run_for(world, 2_000)
    assert world.nodes[goes].storage.end() == 0
    world.lose_power(loses, lambda _: 0)
    if not has_other_records:
        oracles._check_copies(world)
        return
    with pytest.raises(ViolationError, match="committed-copies: 1 of 2 disks"):
        oracles._check_copies(world)


def test_a_dead_process_is_a_copy_if_its_disk_has_the_record():
    """A kill keeps the page cache, and its contents count."""
    world, oracles = watched_world()
    for broker in (1, 2):
        world.crash(broker)
    oracles._check_copies(world)
    for broker in (1, 2):
        oracles.seen[broker].log.batches[-1] = Batch(1, 0, 1, body=b"other")
    with pytest.raises(ViolationError, match="committed-copies"):
        oracles._check_copies(world)


@pytest.mark.parametrize("kind", [MemoryStorage, StoreStorage])
@pytest.mark.parametrize("is_dead", [False, True])
def test_what_was_flushed_is_owed_also_by_a_dead_process(kind, is_dead):
    """flushed-survives compares as many records after a kill as under a running process."""
    world, oracles = watched_world(make_storage=kind)
    node = world.nodes[1]
    assert oracles.durable(node) == (0, [])
    node.storage.flush()
    if is_dead:
        world.crash(1)
    start, kept = oracles.durable(node)
    assert (start, kept) == (0, oracles.committed)
    world.lose_power(1, lambda _: 0)
    oracles.check_kept(node, (start, kept))
    assert oracles.checks["flushed-survives"] == 1
    with pytest.raises(ViolationError, match="flushed-survives: broker 1: 3 records flushed, LEO now 2"):
        oracles.check_kept(node, (start, [*kept, (0, b"m2")]))


def test_two_brokers_that_lead_one_epoch_are_a_violation_whatever_the_controller_says():
    """one-leader is about brokers acting as leaders, not only about the controller's decisions."""
    world, oracles = watched_world()
    running = world.nodes[1].broker
    assert running is not None
    running.state.role = world.nodes[0].broker.state.role
    with pytest.raises(ViolationError, match="one-leader: epoch 0: 0 and 1"):
        oracles.changed(world, world.nodes[1])


def test_an_election_from_the_elr_is_counted_as_one():
    """An empty ISR led again by an eligible member is not unclean."""
    world, oracles = watched_world("kafka-4.1")
    for broker in (2, 1):
        world.fence(broker)
    world.crash(0)
    world.fence(0)
    assert (world.image.isr, world.image.leader) == ((), -1)
    run_for(world, 20_000)
    assert world.image.leader == 1
    assert (oracles.figures.elr_elections, oracles.figures.unclean_elections) == (1, 0)


def test_only_a_change_of_the_set_is_an_isr_change_and_only_an_outsider_an_unclean_leader():
    """A preferred election and an election from the ISR are neither; an ELR member may lead."""
    world, oracles = watched_world("kafka-4.1")
    before = oracles.figures.isr_changes
    world.crash(0)
    world.fence(0)
    run_for(world, 100)
    assert (oracles.figures.isr_changes - before, oracles.figures.unclean_elections) == (1, 0)
    for broker in (1, 2):
        world.crash(broker)
        world.fence(broker)
    run_for(world, 20_000)
    for broker in (0, 1, 2):
        world.restart(broker)
    run_for(world, 20_000)
    assert world.image.leader == 2
    assert oracles.figures.unclean_elections == 1
