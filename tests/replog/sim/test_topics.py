"""Several topics and partitions on the same brokers: each keeps every promise by itself."""

from __future__ import annotations

import pytest

from replog.core.broker.broker import Broker, named
from replog.core.broker.membership import Membership
from replog.core.broker.replica import Replica
from replog.core.broker.state import ReplicaState
from replog.core.controller.controller import Controller
from replog.core.controller.placement import assign
from replog.core.controller.state import ControllerState
from replog.core.effects import Of, Received, Send
from replog.core.messages import ElectReply, ElectRequest, FetchRequest, ForPartition, ProduceRequest
from replog.core.types import Batch, Error
from replog.sim.cluster.options import WorldOptions
from replog.sim.cluster.several import SeveralStorage
from replog.sim.cluster.views import PartitionView
from replog.sim.cluster.world import World
from replog.sim.faults.profiles import profile
from replog.sim.run import Simulation
from specchk.conform.contract.known_bad import BadCode, planted

TWO = {"t-0": (0, 1), "t-1": (1, 2)}


def settled(partitions: dict[str, tuple[int, ...]]) -> World:
    world = World(WorldOptions(brokers=3, min_isr=1, partitions=partitions))
    for broker in world.nodes:
        world.restart(broker)
    while world.now_ms < 1_020_000:
        world.step()
    return world


def broker_of(*partitions: str) -> Broker:
    return Broker(Membership(0, 1), *(Replica(ReplicaState(0, name)) for name in partitions))


def test_effects_name_their_partition_where_there_are_several():
    """For one partition nothing is named; for several each message, timer and disk effect is."""
    alone, several = broker_of("t-0").start(), broker_of("t-0", "t-1").start()
    assert not any(isinstance(effect, Of) for effect in alone)
    assert {effect.partition for effect in several if isinstance(effect, Of)} == {"t-0", "t-1"}
    request = FetchRequest(1, 0, 0, 0)
    assert named("t-1", Send(2, request)) == Send(2, ForPartition("t-1", request))


def test_a_message_for_a_partition_that_is_not_here_is_ignored():
    """Neither an answer nor an exception."""
    broker = broker_of("t-0", "t-1")
    request = ForPartition("u-0", ProduceRequest(1, Batch(0, -1, 1), -1, 100))
    assert broker.handle(Received(-10, request), 0) == []


def test_the_controller_answers_for_the_partition_that_it_was_asked_about():
    """A request that names its partition gets an answer that does."""
    controller = Controller(ControllerState())
    controller.create_partition("t-1", (0, 1))
    asked = Received(-99, ForPartition("t-1", ElectRequest(7, "t-1")))
    replies = [effect for effect in controller.handle(asked, 0) if isinstance(effect, Send)]
    expected = ElectReply(7, Error.PREFERRED_LEADER_NOT_AVAILABLE)
    assert replies == [Send(-99, ForPartition("t-1", expected))]


def test_each_partition_has_its_own_leader_and_log():
    """Records of one partition are on its replicas, and nowhere in another partition."""
    world = settled(TWO)
    leaders = {name: PartitionView(world, name).image.leader for name in TWO}
    assert leaders == {"t-0": 0, "t-1": 1}
    world.send(-10, 1, ForPartition("t-1", ProduceRequest(1, Batch(0, -1, 1, body=b"x"), -1, 1_000)))
    for _ in range(400):
        world.step()
    ends = {
        (name, node.broker_id): node.broker.replica.state.log.hw
        for name in TWO
        for node in PartitionView(world, name).running()
        if node.broker is not None
    }
    assert {key for key, hw in ends.items() if hw} == {("t-1", 1), ("t-1", 2)}


def test_partitions_share_a_broker_and_its_power():
    """With a broker each of its leaderships ends, and every unflushed tail may be lost."""
    world = settled({"t-0": (0, 1), "t-1": (0, 2)})
    for name in world.partitions:
        world.send(-10, 0, ForPartition(name, ProduceRequest(1, Batch(0, -1, 1, body=b"x"), 1, 1_000)))
    while not all(part.end() for part in storage_of(world, 0).parts.values()):
        world.step()
    world.lose_power(0, lambda _: 0)
    assert [part.end() for part in storage_of(world, 0).parts.values()] == [0, 0]
    world.fence(0)
    assert {PartitionView(world, name).image.leader for name in world.partitions} == {1, 2}


def storage_of(world: World, broker: int) -> SeveralStorage:
    storage = world.nodes[broker].storage
    assert isinstance(storage, SeveralStorage)
    return storage


@pytest.mark.parametrize("seed", range(3))
def test_partitions_are_placed_by_the_rule_of_the_spec(seed):
    """Each topic is Kafka's assignment from some broker and shift, which placement.spec has (F7)."""
    partitions = Simulation(seed, profile("topics")).partitions
    assert list(partitions) == [f"{topic}-{number}" for topic in "tu" for number in range(3)]
    for topic in "tu":
        placed = tuple(partitions[f"{topic}-{number}"] for number in range(3))
        assert placed in {assign(range(4), 3, 3, start, shift) for start in range(4) for shift in range(4)}
        assert len({replicas[0] for replicas in placed}) == 3


FIRST = "next(iter(self.parts.values()))"
ALL_REPLICAS, ALL_PARTITIONS = "self.replicas.items()", "self.state.partitions.items()"
FLAWS = {
    "messages reach the first replica": (Broker._receive, "replica.receive(", "self.replica.receive("),
    "timers ring at the first replica": (Broker._handle, "replica.fire(fired", "self.replica.fire(fired"),
    "metadata reaches the first replica": (Broker._update, ALL_REPLICAS, f"[*{ALL_REPLICAS}][:1]"),
    "one disk for all partitions": (SeveralStorage.perform, "self.parts[effect.partition]", FIRST),
    "a start recovers one disk for all": (SeveralStorage.recover_all, "part.recover()", f"{FIRST}.recover()"),
    "who returns leads one partition": (Controller._unfence, ALL_PARTITIONS, f"[*{ALL_PARTITIONS}][:1]"),
}  # fmt: skip


@pytest.mark.parametrize("flaw", FLAWS)
def test_a_flaw_between_partitions_breaks_a_promise(flaw):
    """A flaw visible only with several partitions is detected by the oracles of one of them."""
    function, was, now = FLAWS[flaw]
    with planted(BadCode(flaw, function, was, now, "")):
        reports = (Simulation(seed, profile("topics"), max_events=100_000).run() for seed in range(8))
        assert any(report.is_failure for report in reports)
