"""Requests of clients, followers and an operator in a walk, valid or slightly invalid.

Requests name offsets near the ends that answers have shown, epochs beside the leader's, and numbers of
producers that repeat, skip, wrap, or belong to another epoch: a walk reads no internal state of a broker.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from random import Random

from lying_network import LyingNetwork

from replog.core.log.producer import SEQUENCE_LIMIT, WINDOW
from replog.core.messages import (
    LATEST,
    ConfigureRequest,
    DeleteRecordsRequest,
    ElectRequest,
    EpochEndRequest,
    FetchRequest,
    ListOffsetsRequest,
    Message,
    ProduceRequest,
    ReassignRequest,
)
from replog.core.types import CONTROLLER, NO_EPOCH, NO_LEADER, Batch
from replog.sim.cluster.world import OPERATOR, PARTITION, World

CLIENT = -10
PRODUCERS = (7, 8, 9)


class WalkClients:
    """The clients of one walk."""

    def __init__(self, world: World, network: LyingNetwork, random: Random) -> None:
        self.world, self.network, self.random = world, network, random
        self.correlation = 0
        # Of one the numbers are about to wrap.
        self.sequences = {producer: (0, 0 if producer != 9 else SEQUENCE_LIMIT - 5) for producer in PRODUCERS}
        self.asked: dict[int, tuple[int, int, int, int]] = {}
        self.accepted = {producer: deque([(0, 0, 1)], WINDOW + 2) for producer in PRODUCERS}

    def broker(self) -> int:
        """Return a random broker."""
        return self.random.randrange(len(self.world.nodes))

    def leader(self) -> int:
        """Return the leader, or sometimes another broker."""
        leader = self.world.image.leader
        return self.broker() if leader == NO_LEADER or self.random.random() < 0.15 else leader

    def near(self) -> int:
        """Return an offset near the observed ends."""
        return max(self.random.choice((0, 0, self.network.end // 2, *[self.network.end] * 3))
                   + self.random.choice((0, 0, 0, 1, -1, 2, -2)), -2)  # fmt: skip

    def epoch(self) -> int:
        """Return the leader epoch, or one next to it, or none."""
        epoch = self.world.image.leader_epoch
        return self.random.choice((-1, *[epoch] * 4, epoch - 1, epoch + 1))

    def _request(self, to: int, make: Callable[[int], Message]) -> None:
        self.correlation += 1
        self.world.send(CLIENT - self.random.randrange(2), to, make(self.correlation))

    def produce(self) -> None:
        """Send a few batches, usually to the leader."""
        for _ in range(self.random.choice((1, 2, 3))):
            self.produce_to(self.leader())

    def produce_to(self, broker: int) -> None:
        """Send a batch to a broker."""
        random = self.random
        count = random.choice((1, 1, 2, 3))
        producer, epoch, first = -1, -1, -1
        if random.random() < 0.6:
            producer, epoch, first, count = self._numbered(count)
        body = b"%d" % self.correlation * random.choice((1, 1, 4, 30))
        base = 0 if random.random() < 0.98 else 3
        if random.random() < 0.01:
            count = 0
        batch = Batch(base, -1, count, producer, epoch, first, body)
        acks = random.choice((-1, -1, -1, 1, 1, 0, 2 if random.random() < 0.1 else -1))
        timeout_ms = random.choice((40, 300, 2_000))
        self._request(broker, lambda number: ProduceRequest(number, batch, acks, timeout_ms))

    def _numbered(self, count: int) -> tuple[int, int, int, int]:
        """Return producer id, epoch, first number and count: the next ones, old ones, or wrong ones."""
        self._learn()
        random = self.random
        producer = random.choice(PRODUCERS)
        epoch, following = self.sequences[producer]
        draw = random.random()
        if draw < 0.25:
            # Of the last ones, which are in the window, and of those before.
            return (producer, *random.choice(self.accepted[producer]))
        if draw < 0.31:
            return producer, epoch, (following - random.randrange(9)) % SEQUENCE_LIMIT, count
        if draw < 0.34:
            return producer, max(epoch - 1, -1), following, count
        if draw < 0.38:
            epoch, following = epoch + 1, random.choice((0, 0, 0, 1))
        elif draw < 0.42:
            following += 1
        self.asked[self.correlation + 1] = producer, epoch, following, count
        return producer, epoch, following, count

    def _learn(self) -> None:
        """Continue the numbering after the accepted batches, like a producer that repeats the others."""
        for correlation in self.network.take_accepted():
            if correlation in self.asked:
                producer, epoch, first, count = self.asked.pop(correlation)
                self.sequences[producer] = epoch, (first + count) % SEQUENCE_LIMIT
                self.accepted[producer].append((epoch, first, count))

    def consume(self) -> None:
        """Fetch as a consumer, sometimes as a follower."""
        random = self.random
        to = self.broker() if random.random() < 0.4 else self.leader()
        epoch, offset = self.epoch(), self.near()
        wait_ms, most = random.choice((0, 0, 50, 400)), random.choice((1, 150, 300, 1 << 20))
        replica = -1 if random.random() < 0.85 else self.broker()
        self._request(
            to,
            lambda number: FetchRequest(
                number, replica, epoch, offset, random.choice((-1, epoch, epoch - 1)),
                max_wait_ms=wait_ms, max_bytes=most,
            ),
        )  # fmt: skip

    def look_up(self) -> None:
        """Request an end of the log, or the end of an epoch."""
        epoch, of = self.epoch(), self.epoch()
        if self.random.random() < 0.5:
            which = self.random.choice((-1, -2, -1, -2, 5))
            replica = self.random.choice((-1, self.broker()))
            self._request(self.leader(), lambda number: ListOffsetsRequest(number, replica, epoch, which))
        else:
            of -= self.random.choice((0, 0, 1, 2, 3))
            replica = self.broker()
            self._request(self.leader(), lambda number: EpochEndRequest(number, replica, epoch, of))

    def delete_all(self) -> None:
        """Delete all committed records."""
        self._request(self.leader(), lambda number: DeleteRecordsRequest(number, LATEST, 300))

    def delete_records(self) -> None:
        """Delete records before some offset."""
        offset, timeout_ms = (
            self.random.choice((-1, self.near(), self.near() // 2)),
            self.random.choice((30, 900)),
        )
        self._request(self.leader(), lambda number: DeleteRecordsRequest(number, offset, timeout_ms))

    def wait(self) -> None:
        """Make requests wait at the leader: fetches at the end, produces with acks=all, a deletion."""
        leader, end = self.leader(), self.network.end
        for _ in range(self.random.choice((1, 2, 3))):
            at = end + self.random.choice((0, 0, 1))
            epoch = self.random.choice((NO_EPOCH, NO_EPOCH, self.epoch()))
            fetch = partial(FetchRequest, replica_id=-1, leader_epoch=epoch, fetch_offset=at, max_wait_ms=900)
            self._request(leader, fetch)
        batch, timeout_ms = Batch(0, -1, 1, body=b"waits"), self.random.choice((500, 2_000))
        self._request(leader, lambda number: ProduceRequest(number, batch, -1, timeout_ms))
        if self.random.random() < 0.3:
            self.delete_records()

    def prefer(self) -> None:
        """Request the preferred leader."""
        self.correlation += 1
        self.world.send(OPERATOR, CONTROLLER, ElectRequest(self.correlation, PARTITION))

    def elect_any(self) -> None:
        """Request any live leader."""
        self.correlation += 1
        self.world.send(OPERATOR, CONTROLLER, ElectRequest(self.correlation, PARTITION, is_unclean=True))

    def configure(self, min_isr: int) -> None:
        """Request another min.insync.replicas."""
        self.correlation += 1
        self.world.send(OPERATOR, CONTROLLER, ConfigureRequest(self.correlation, PARTITION, min_isr))

    def operate(self) -> None:
        """Request an election, another minimum, other replicas, or a cancellation of their change."""
        random = self.random
        name = PARTITION if random.random() < 0.96 else "none-0"
        self.correlation += 1
        draw, number = random.random(), self.correlation
        if draw < 0.35:
            message: Message = ElectRequest(number, name, random.random() < 0.3)
        elif draw < 0.55:
            message = ConfigureRequest(number, name, random.choice((0, 1, 2, 2, 3, 4)))
        else:
            every = [*self.world.nodes, *([9] if random.random() < 0.05 else [])]
            target = tuple(random.sample(every, random.choice((1, 2, 3, 3))))
            message = ReassignRequest(number, name, None if draw < 0.65 else target)
        self.world.send(OPERATOR, CONTROLLER, message)
