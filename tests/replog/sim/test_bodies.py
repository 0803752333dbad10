"""Bodies of batches are on disk and not in memory, and outgoing messages have the right ones."""

from __future__ import annotations

import gc
import tracemalloc
from collections import Counter
from itertools import count
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from replog.core.broker.coordinator import GroupReplica
from replog.core.effects import AdvanceStart, Append, Reset, StoreEpochs, Truncate
from replog.core.log.logview import LogView
from replog.core.messages import (
    FetchReply,
    FetchRequest,
    ForPartition,
    Message,
    ProduceRequest,
)
from replog.core.types import CONSUMER, Batch, Error
from replog.demo.files import BrokerFiles
from replog.run.bodies import StoredBody
from replog.run.files import FileStorage
from replog.run.storage import StorageError
from replog.sim.cluster.members import Member
from replog.sim.cluster.node import Network
from replog.sim.cluster.options import WorldOptions
from replog.sim.cluster.storage import MemoryStorage
from replog.sim.cluster.world import World
from replog.sim.disks.stored import KEY, StoreStorage
from replog.sim.oracles.commits import CommitWatch
from replog.store.files.config import LogConfig
from replog.store.files.fs import OsFs

CLIENT = -10
LARGE = 1 << 20


class HandleStorage(StoreStorage):
    """A simulated disk under a broker that keeps handles, as it does on real files."""

    __slots__ = ()

    without_bodies = FileStorage.without_bodies
    _kept = FileStorage._kept


class LargeSegments(BrokerFiles):
    """A broker's real files, with segments of more than one batch."""

    __slots__ = ()

    __init__ = FileStorage.__init__


class Listening(Network):
    """A network that takes a random time, loses some messages, and records all."""

    def __init__(self, seed: int, loss: float = 0.02) -> None:
        self.random, self.loss = Random(seed), loss
        self.heard: list[tuple[int, int, Message]] = []

    def delays(self, source: int, to: int, message: Message) -> tuple[int, ...]:
        """Record the message."""
        self.heard.append((source, to, message))
        return () if self.random.random() < self.loss else (self.random.randrange(1, 20),)


def run_for(world: World, ms: int) -> None:
    end = world.now_ms + ms
    while world.now_ms < end and world.step():
        pass


def started(network: Network, **options) -> World:
    world = World(WorldOptions(**options), network)
    for broker in world.nodes:
        world.restart(broker)
    while world.image.leader < 0:
        run_for(world, 1_000)
    run_for(world, 5_000)
    return world


def growth_of(work) -> int:
    """Return the bytes that are allocated by some work and still held after it."""
    gc.collect()
    tracemalloc.start()
    try:
        work()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("restarts", [False, True])
def test_memory_grows_with_the_number_of_batches_and_not_with_their_bytes(tmp_path, restarts: bool):
    """On real files, of a leader and its followers, and of the state found by a start."""
    paths = (str(tmp_path / f"broker-{number}") for number in count())
    folders = (LargeSegments(OsFs(), path, LogConfig(), KEY) for path in paths)
    world = started(Network(), make_storage=lambda: next(folders))
    batches, body_bytes = 40, 15_000

    def work() -> None:
        for number in range(batches):
            batch = Batch(0, -1, 1, body=bytes([number]) * body_bytes)
            world.send(CLIENT, world.image.leader, ProduceRequest(number, batch, -1, 5_000))
            run_for(world, 100)
        if restarts:
            for broker in world.nodes:
                world.crash(broker)
                world.restart(broker)
            run_for(world, 15_000)

    grown = growth_of(work)
    assert [node.broker and node.broker.state.log.leo for node in world.nodes.values()] == [batches] * 3
    # Three brokers, with the bytes of fewer than eight bodies between them; 120 are on their disks.
    assert grown < 8 * body_bytes, f"{grown} bytes for {3 * batches} batches"
    for broker in world.nodes:
        world.crash(broker)


def test_a_message_that_leaves_has_the_bodies_and_memory_has_not():
    """Produced, read by a consumer, and read again after a start."""
    network = Listening(0, loss=0)
    world = started(network, brokers=1, min_isr=1, make_storage=HandleStorage)
    bodies = [b"first" * 300, b"", b"third"]
    for number, body in enumerate(bodies):
        world.send(CLIENT, 0, ProduceRequest(number, Batch(0, -1, 2, body=body), -1, 5_000))
        run_for(world, 100)
    for _ in range(2):
        broker = world.nodes[0].broker
        assert broker is not None
        assert all(isinstance(batch.body, StoredBody) for batch in broker.state.log.batches)
        world.replies.clear()
        world.send(CLIENT, 0, FetchRequest(9, CONSUMER, -1, 0, max_bytes=LARGE))
        run_for(world, 1_000)
        replies = [message for _, message in world.replies if isinstance(message, FetchReply)]
        assert [batch.content for batch in replies[0].batches] == bodies
        world.crash(0)
        world.restart(0)
        run_for(world, 15_000)


@pytest.mark.parametrize("seed", range(1, 7))
def test_a_broker_with_handles_sends_what_one_with_bodies_does(seed: int):
    """Through losses, crashes inside of steps, truncations and starts, byte for byte."""
    kinds = (MemoryStorage, HandleStorage)
    networks = [Listening(seed) for _ in kinds]
    for kind, network in zip(kinds, networks, strict=True):
        random = Random(seed)
        world = started(network, make_storage=kind)
        for number in range(25):
            leader = world.image.leader if random.random() < 0.8 else random.randrange(3)
            batch = Batch(0, -1, random.randrange(1, 3), body=random.randbytes(random.randrange(1_500)))
            world.send(CLIENT, leader, ProduceRequest(number, batch, random.choice((-1, 1)), 5_000))
            world.send(CLIENT, leader, FetchRequest(number, CONSUMER, -1, random.randrange(number + 1)))
            if random.random() < 0.15 and (node := world.nodes[random.randrange(3)]).broker is not None:
                node.effects_left = random.randrange(6)
            run_for(world, random.randrange(400))
            for broker, node in world.nodes.items():
                if node.broker is None and random.random() < 0.6:
                    world.restart(broker)
        for broker, node in world.nodes.items():
            if node.broker is None:
                world.restart(broker)
        run_for(world, 30_000)
        world.send(CLIENT, world.image.leader, FetchRequest(99, CONSUMER, -1, 0, max_bytes=LARGE))
        run_for(world, 1_000)
    first, second = (network.heard for network in networks)
    assert first == second
    assert sum(len(m.batches) for _, _, m in first if isinstance(m, FetchReply)) > 5


def test_of_several_partitions_each_reads_its_own_files():
    """The bodies of a reply are those of its partition."""
    names = ("t-0", "t-1")
    network = Listening(0, loss=0)
    partitions = dict.fromkeys(names, (0, 1))
    world = started(network, brokers=2, min_isr=1, partitions=partitions, make_storage=HandleStorage)
    for name in names:
        request = ProduceRequest(1, Batch(0, -1, 1, body=name.encode()), -1, 5_000)
        world.send(CLIENT, world.image.leader, ForPartition(name, request))
    run_for(world, 2_000)
    for name in names:
        for node in world.nodes.values():
            assert node.broker is not None
            assert node.broker.replicas[name].state.log.leo == 1
        world.send(CLIENT, world.image.leader, ForPartition(name, FetchRequest(2, CONSUMER, -1, 0)))
    run_for(world, 2_000)
    read = [
        (message.partition, batch.content)
        for _, message in world.replies
        if isinstance(message, ForPartition) and isinstance(message.message, FetchReply)
        for batch in message.message.batches
    ]
    assert sorted(read) == [(name, name.encode()) for name in names]


def test_a_coordinator_loads_its_log_from_the_disk():
    """The next leader of the log of groups has them, with handles in memory as with bodies."""
    partitions = {"t-0": (0, 1, 2), "groups-0": (0, 1, 2)}
    kinds = (MemoryStorage, HandleStorage)
    networks = [Listening(3, loss=0) for _ in kinds]
    for kind, network in zip(kinds, networks, strict=True):
        world = started(network, partitions=partitions, groups="groups-0", make_storage=kind)

        def find(name: str, world: World = world) -> int:
            return world.controller.state.partitions[name].leader

        for number in range(30):
            request = ProduceRequest(number, Batch(0, -1, 1, body=b"%d" % number), -1, 5_000)
            world.send(CLIENT, find("t-0"), ForPartition("t-0", request))
        choose, watch = Random(5).randrange, CommitWatch(Counter())
        for address in (-40, -41):
            member = Member(address, "g", "t-0", "groups-0", find, choose, watch)
            world.start_client(address, member, 10)
        run_for(world, 3_000)
        world.focus = "groups-0"
        dead = world.image.leader
        world.crash(dead)
        run_for(world, 15_000)
        assert world.image.leader != dead
        world.restart(dead)
        run_for(world, 15_000)
    first, second = (network.heard for network in networks)
    assert first == second
    broker = world.nodes[world.image.leader].broker
    assert broker is not None
    replica = broker.replicas["groups-0"]
    assert isinstance(replica, GroupReplica)
    # Its predecessor's records: the disk is where it has them from.
    assert (replica.coordinator.is_loaded, replica.state.leader_epoch > 0) == (True, True)
    assert replica.coordinator.written.groups


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 1_800)),
        st.tuples(st.sampled_from(["truncate", "start"]), st.integers(0, 16)),
        st.tuples(st.sampled_from(["flush", "crash"]), st.just(0)),
    ),
    max_size=16,
)


def reply(*batches: Batch) -> FetchReply:
    return FetchReply(1, Error.NONE, 0, 0, batches)


def act(disk: HandleStorage, log: LogView, name: str, number: int, life: int) -> LogView:
    """Perform one action on a log and its disk, like a broker; return the log, or the recovered one."""
    if name == "append":
        body = Random(life).randbytes(number)
        message = disk.without_bodies(reply(Batch(log.leo, life, 1 + number % 2, body=body)))
        assert isinstance(message, FetchReply)
        if log.append(message.batches[0]):
            disk.perform(StoreEpochs(tuple(log.epochs.entries)))
        disk.perform(Append(message.batches))
    elif name == "start":
        log.raise_hw(number)
        if log.advance_start(number):
            disk.perform(AdvanceStart(log.log_start))
    elif name == "truncate" and number < log.log_start:
        log.reset(number)
        disk.perform(Reset(number))
    elif name == "truncate":
        if log.truncate_to(number):
            disk.perform(Truncate(number))
        if log.epochs.truncate_from_end(log.leo):
            disk.perform(StoreEpochs(tuple(log.epochs.entries)))
    elif name == "flush":
        disk.flush()
    else:
        disk.crash()
        return disk.recover().log
    return log


@settings(deadline=None, max_examples=60)
@given(ACTIONS)
@example([("append", 1), ("append", 1), ("start", 1)])  # the log starts inside of its first batch
def test_what_is_read_is_what_was_written(actions):
    """After truncations, deletions and starts, from each offset, in pieces of each size."""
    disk = HandleStorage()
    log = disk.recover().log
    written: dict[int, bytes] = {}
    for life, (name, number) in enumerate(actions):
        if name == "append":
            written[log.leo] = Random(life).randbytes(number)
        log = act(disk, log, name, number, life)
        for start in range(log.log_start, log.leo):
            for limit in (1, 2_500, LARGE):
                batches = log.read(start, log.leo, limit)
                message = disk.with_bodies(reply(*batches))
                assert isinstance(message, FetchReply)
                assert [b.content for b in message.batches] == [written[b.base_offset] for b in batches]
                assert [b.base_offset for b in message.batches] == [b.base_offset for b in batches]


@pytest.mark.parametrize("body", [b"other", b"longer"])
def test_other_bytes_in_a_segment_are_not_sent(body: bytes):
    """Not even those of a whole batch with a right CRC: the disk has failed."""
    disks = HandleStorage(), HandleStorage()
    logs = [disk.recover().log for disk in disks]
    for disk, log, content in zip(disks, logs, (b"right", body), strict=True):
        for number in range(2):
            message = disk.without_bodies(reply(Batch(number, 0, 1, body=content)))
            assert isinstance(message, FetchReply)
            log.append(message.batches[0])
            disk.perform(Append(message.batches))
    batches = tuple(logs[0].batches)
    disks[0].with_bodies(reply(*batches))
    with pytest.raises(StorageError):
        disks[1].with_bodies(reply(*batches))
