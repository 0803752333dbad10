"""Runs of one broker alone: the controller, its leader, its followers and its clients may answer anything.

In a cluster answers follow from another broker's log.  Here a seed determines them: batches of several
records and of several epochs, ends of epochs inside a batch, any leader, any ISR, any error.  What the broker
has kept is visible in what it stores, requests and answers, in this and the later lives of its process.
"""

from __future__ import annotations

from random import Random

from observed_world import note_effect

from replog.core.broker.broker import Broker
from replog.core.broker.membership import Membership
from replog.core.broker.replica import Replica
from replog.core.broker.state import Config, ReplicaState
from replog.core.effects import Effect, Event, Fired, Received, Send, SetTimer, ShutDown
from replog.core.messages import (
    EARLIEST,
    LATEST,
    AlterPartitionReply,
    AlterPartitionRequest,
    DeleteRecordsRequest,
    EpochEndReply,
    EpochEndRequest,
    FetchReply,
    FetchRequest,
    ListOffsetsReply,
    ListOffsetsRequest,
    MetadataUpdate,
    ProduceRequest,
    RegisterReply,
)
from replog.core.protocol import preset
from replog.core.types import (
    CONTROLLER,
    UNDEFINED,
    Batch,
    BrokerImage,
    BrokerState,
    EpochEnd,
    Error,
    MetadataImage,
    PartitionImage,
)
from replog.sim.cluster.storage import MemoryStorage
from specchk.conform.contract.behaviours import RunWatch

ME, NAME, CLIENT = 0, "t-0", -10
REPLICAS = (0, 1, 2)


class LoneBroker:
    """One run: `end` is the last log end that the broker has shown, `epoch` the last leader epoch."""

    def __init__(self, watch: RunWatch, seed: int, protocol: str) -> None:
        self.watch, self.protocol = watch, preset(protocol)
        self.random = Random(seed)  # noqa: S311  # chance that must be repeatable
        choice = self.random.choice
        self.config = Config(
            lag_ms=900, fetch_max_bytes=choice((1, 400)), flush_messages=choice((0, 1, 3)),
            follower_read=choice((False, True)), retention_bytes=choice((-1, 300)), min_isr=choice((1, 2)),
        )  # fmt: skip
        self.storage = MemoryStorage()
        self.now_ms = self.epoch = self.version = self.end = self.lives = 0
        self.leads = False
        self.waiting: list[tuple[int, object]] = []  # requests of the broker, with their receivers
        self.timers: list[Fired] = []

    def run(self, actions: int) -> None:
        """Give the broker this many events."""
        self._start()
        ways, weights = zip(
            (self._answer, 45), (self._fire, 14), (self._produce, 10), (self._fetch, 12), (self._ask, 6),
            (self._elect, 9), (self._restart, 2), strict=True,
        )  # fmt: skip
        for way in self.random.choices(ways, weights, k=actions):
            way()

    def _start(self) -> None:
        """Begin a new incarnation of the process, which the controller knows at once."""
        recovered = self.storage.recover()
        self.lives += 1
        state = ReplicaState(
            ME, NAME, self.config, self.protocol, recovered.log, correlation=self.lives * 1_000
        )
        member = Membership(ME, self.lives, recovered.previous_broker_epoch)
        self.broker = Broker(member, Replica(state))
        self.waiting, self.timers = [], []
        self._perform(self.broker.start())
        self._give(Received(CONTROLLER, RegisterReply(self.lives, Error.NONE, self.version + 1)))
        self._elect()

    def _restart(self) -> None:
        """End the process, with or without its page cache."""
        if self.random.random() < 0.5:
            self.storage.lose_power(self.random.randrange)
        self._start()

    def _give(self, event: Event) -> None:
        self.watch.step(event)
        self._perform(self.broker.handle(event, self.now_ms))

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            note_effect(self.watch, "broker", effect)
            if isinstance(effect, Send):
                self.waiting = [*self.waiting[-5:], (effect.to, effect.message)]
            elif isinstance(effect, SetTimer):
                self.timers = [*self.timers[-8:], Fired(effect.timer, effect.token)]
            elif not isinstance(effect, ShutDown):
                self.storage.perform(effect)
        self.end = self.storage.end()

    def _elect(self) -> None:
        """Announce metadata: another leader, another ISR, or an epoch that was skipped."""
        random = self.random
        self.version += 1
        self.epoch += random.choice((0, 1, 1, 2))
        leader = random.choice((ME, 1, 1, 2, 2, -1))
        isr = tuple(member for member in REPLICAS if member == leader or random.random() < 0.6)
        image = PartitionImage(
            REPLICAS, leader, self.epoch, self.version, isr, min_isr=random.choice((0, 0, 2))
        )
        states = random.choices((BrokerState.ACTIVE, BrokerState.FENCED), (5, 1), k=3)
        brokers = {
            member: BrokerImage(self.version, state) for member, state in zip(REPLICAS, states, strict=True)
        }
        self.leads = leader == ME
        update = MetadataUpdate((MetadataImage(self.version, {NAME: image}, brokers),))
        self._give(Received(CONTROLLER, update))

    def _fire(self) -> None:
        """Fire one of the last timers, whether or not it is due."""
        self.now_ms += self.random.choice((0, 1, 300, 1_000))
        if self.timers:
            self._give(self.random.choice((self.timers[-1], self.random.choice(self.timers))))

    def _answer(self) -> None:
        """Answer one of the last requests, usually without an error."""
        random = self.random
        if not self.waiting:
            self._fire()
            return
        # Mostly the last one, which it waits for; the others are answered late, or again.
        fetches = [pair for pair in self.waiting if isinstance(pair[1], FetchRequest | EpochEndRequest)]
        to, request = random.choice((random.choice(self.waiting), *fetches[-1:] * 3))
        error = Error.NONE if random.random() < 0.92 else random.choice(tuple(Error))
        if isinstance(request, FetchRequest):
            self._give(Received(to, self._records(request, error)))
        elif isinstance(request, EpochEndRequest):
            end = EpochEnd(request.epoch - random.choice((0, 0, 1)), self._near())
            reply = EpochEndReply(request.correlation, error, random.choice((end, end, UNDEFINED)))
            self._give(Received(to, reply))
        elif isinstance(request, ListOffsetsRequest):
            self._give(Received(to, ListOffsetsReply(request.correlation, error, self._near())))
        elif isinstance(request, AlterPartitionRequest):
            isr = tuple(member for member, _ in request.new_isr)
            epoch = request.partition_epoch + random.choice((1, 1, 1, 0))
            self._give(Received(to, AlterPartitionReply(request.correlation, error, self.epoch, epoch, isr)))
        else:
            self._fire()

    def _records(self, request: FetchRequest, error: Error) -> FetchReply:
        """Return a few batches from the broker's position, or the end of an epoch, in a batch or not."""
        random, base = self.random, request.fetch_offset
        high = self._near()
        if error is not Error.NONE:
            return FetchReply(request.correlation, error)
        if random.random() < 0.25:
            end = EpochEnd(max(request.last_fetched_epoch - random.choice((0, 0, 1, 2)), -1), self._near())
            return FetchReply(request.correlation, error, high, 0, diverging=end)
        batches, epoch = [], max(request.last_fetched_epoch, 0)
        for _ in range(random.choice((0, 1, 1, 2, 3))):
            epoch = min(epoch + random.choice((0, 0, 1)), max(request.leader_epoch, 0))
            batches.append(Batch(base, epoch, random.choice((1, 2, 3)), body=b"of %d" % base))
            base = batches[-1].next_offset
        return FetchReply(
            request.correlation, error, high, random.choice((0, 0, 0, self._near())), tuple(batches)
        )

    def _near(self) -> int:
        """Return an offset in the log, or just outside it."""
        return max(
            self.random.randrange(-3, 3) + self.random.choice((0, self.end // 2, self.end, self.end)), 0
        )

    def _produce(self) -> None:
        random = self.random
        batch = Batch(0, -1, random.choice((1, 2, 3)), body=b"a record")
        self._give(
            Received(CLIENT, ProduceRequest(random.randrange(99), batch, random.choice((0, 1, -1)), 50))
        )

    def _fetch(self) -> None:
        """Fetch as a follower or a consumer, with any offset and any last epoch."""
        random = self.random
        source = random.choice((1, 2, 2, -1))
        epoch = self.epoch + random.choice((0, 0, 0, 0, -1, 1))
        last = random.choice((-1, self.epoch, self.epoch - 1, self.epoch - 2))
        request = FetchRequest(
            random.randrange(99), source, epoch, self._near(), last, random.choice((-1, self.version)),
            random.choice((0, 100)),
        )  # fmt: skip
        self._give(Received(source if source > 0 else CLIENT, request))

    def _ask(self) -> None:
        """Request the ends of epochs and of the log, and delete records."""
        random = self.random
        number = random.randrange(99)
        epoch = self.epoch - random.randrange(-1, 4)
        requests = (
            EpochEndRequest(number, 1, self.epoch + random.choice((0, 0, 1, -1)), epoch),
            ListOffsetsRequest(number, random.choice((1, -1)), self.epoch, random.choice((LATEST, EARLIEST))),
            DeleteRecordsRequest(number, self._near() - random.choice((0, 1)), 100),
        )
        self._give(Received(random.choice((1, CLIENT)), random.choice(requests)))
