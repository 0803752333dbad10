"""kill -9 of a whole cluster: in any order of return, there is a leader, and no written record is lost."""

from __future__ import annotations

from itertools import permutations
from random import Random

import pytest

from replog.core.messages import FetchReply, FetchRequest, ProduceReply, ProduceRequest
from replog.core.protocol import preset, preset_names
from replog.core.types import CONSUMER, NO_LEADER, Batch, Error
from replog.sim.cluster.options import WorldOptions
from replog.sim.cluster.world import World

CLIENT = -10
SESSION_MS = 9_000
SAFE = ("kafka-4.1", "kafka-4.1-upgraded", "kip320")
"""Presets under which a process that dies cannot cost an acknowledged record in these stories."""


def run_for(world: World, ms: int) -> None:
    end = world.now_ms + ms
    while world.now_ms < end and world.step():
        pass


def led_world(name: str) -> World:
    world = World(WorldOptions(protocol=preset(name), session_timeout_ms=SESSION_MS))
    for broker in world.nodes:
        world.restart(broker)
    run_for(world, 5_000)
    assert world.image.leader != NO_LEADER
    return world


def produce(world: World, *numbers: int) -> set[int]:
    """Send records to the current leader; return the numbers that were acknowledged."""
    for number in numbers:
        batch = Batch(0, -1, 1, body=b"m%d" % number)
        world.send(CLIENT, world.image.leader, ProduceRequest(number, batch, -1, 5_000))
    run_for(world, 6_000)
    replies = [message for _, message in world.replies if isinstance(message, ProduceReply)]
    return {reply.correlation for reply in replies if reply.error is Error.NONE} & set(numbers)


def read(world: World) -> list[bytes]:
    """Return the records that the leader serves to a consumer."""
    world.replies.clear()
    world.send(CLIENT, world.image.leader, FetchRequest(0, CONSUMER, -1, 0))
    run_for(world, 1_000)
    (reply,) = [message for _, message in world.replies if isinstance(message, FetchReply)]
    return [batch.body for batch in reply.batches]


def return_in_order(world: World, order: tuple[int, ...], pause_ms: int) -> None:
    for broker in order:
        world.restart(broker)
        run_for(world, pause_ms)
    run_for(world, 4 * SESSION_MS)


@pytest.mark.parametrize("pause_ms", [0, 4_000, 20_000])
@pytest.mark.parametrize("name", preset_names())
def test_a_killed_cluster_is_led_again_in_every_order_of_return(name, pause_ms):
    """All logs are intact: under every preset there is a leader once all brokers are back."""
    for order in permutations(range(3)):
        world = led_world(name)
        produce(world, 1)
        for broker in world.nodes:
            world.crash(broker)
        run_for(world, 4 * SESSION_MS)
        assert world.image.leader == NO_LEADER
        return_in_order(world, order, pause_ms)
        assert world.image.leader != NO_LEADER, order


@pytest.mark.parametrize("name", SAFE)
def test_nothing_acknowledged_is_lost_when_a_cluster_is_killed_and_producing_goes_on(name):
    """All that was acknowledged before the kill is read back, and so is what is acknowledged after it."""
    for order in permutations(range(3)):
        world = led_world(name)
        before = produce(world, 1, 2, 3)
        assert before == {1, 2, 3}
        world.send(CLIENT, world.image.leader, ProduceRequest(4, Batch(0, -1, 1, body=b"m4"), -1, 5_000))
        for broker in world.nodes:
            world.crash(broker)
        run_for(world, 4 * SESSION_MS)
        return_in_order(world, order, 1_000)
        assert sorted(world.image.isr) == [0, 1, 2]
        after = produce(world, 5, 6)
        assert after == {5, 6}
        assert [body for body in read(world) if body != b"m4"] == [b"m1", b"m2", b"m3", b"m5", b"m6"]


@pytest.mark.parametrize("name", preset_names())
def test_a_cluster_killed_at_random_moments_is_led_again(name):
    """Deaths in any order, some returning before they are fenced, several times over: then all is calm."""
    for seed in range(12):
        random = Random(seed)
        world = led_world(name)
        for _ in range(random.randrange(1, 4)):
            dead = random.sample(range(3), 3)
            for broker in dead:
                if world.nodes[broker].broker is not None:
                    world.crash(broker)
                run_for(world, random.randrange(2 * SESSION_MS))
                if random.random() < 0.5:
                    world.restart(broker)
            run_for(world, random.randrange(SESSION_MS))
        for broker, node in world.nodes.items():
            if node.broker is None:
                world.restart(broker)
        run_for(world, 6 * SESSION_MS)
        assert world.image.leader != NO_LEADER, seed
        assert produce(world, 7) == {7}, seed


@pytest.mark.parametrize("name", preset_names())
def test_brokers_that_die_before_anybody_led_can_lead_later(name):
    """Three unsuccessful registrations leave a partition that the next incarnations lead."""
    world = World(WorldOptions(protocol=preset(name), session_timeout_ms=SESSION_MS))
    for _ in range(2):
        for broker in world.nodes:
            world.restart(broker)
            while world.controller.state.brokers.get(broker) is None and world.step():
                pass
            world.crash(broker)
    run_for(world, 2 * SESSION_MS)
    assert world.image.leader == NO_LEADER
    return_in_order(world, (2, 0, 1), 100)
    assert world.image.leader != NO_LEADER
    assert sorted(world.image.isr) == [0, 1, 2]
