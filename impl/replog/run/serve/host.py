"""A broker that serves: the core of one process on its files, its timers, and the requests that wait.

    connection --ask--> event -> core -> effects -> files, timers, other processes, --> answer to the request

Events are handled one at a time, each with all its effects, before the next one; what a core sends to itself
or to the controller in the same process is handled in the same call, in order.  So an answer that needs
nothing else is there when `ask` returns.

Invariants: a change of the metadata is on the disk before a broker sees it; an effect that fails ends the
process (`stopped`), as in Kafka when the last log directory fails: nothing that follows it is performed.

Not here: bytes on the wire (`frames`), what a request means (`service`), and what the core decides.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import Protocol, TypeVar

from replog.core.broker.broker import Broker, named
from replog.core.broker.coordinator import GroupReplica
from replog.core.broker.membership import Membership
from replog.core.broker.replica import Replica
from replog.core.broker.state import Config, ReplicaState
from replog.core.effects import (
    Delete,
    Effect,
    Event,
    Fired,
    Of,
    PartitionEffect,
    Received,
    Send,
    SetTimer,
    ShutDown,
    StoreHighWatermark,
    StoreRecords,
    StoreVote,
    Timer,
    TimerOf,
)
from replog.core.messages import ForPartition, GroupLog, Message, MetadataUpdate
from replog.core.protocol import CURRENT
from replog.core.types import CONTROLLER, MetadataImage, Role
from replog.run.partitions import PartitionFiles, key_of
from replog.run.serve.catalog import METADATA_FILE, load, new_catalog
from replog.run.serve.controlling import Clock, Controlling, Order, started
from replog.store.checkpoints.root import Root
from replog.store.directory import LogDirectory
from replog.store.files.errors import CorruptFileError, StoreError
from replog.store.files.fs import Fs

T = TypeVar("T")
Wish = Callable[[MetadataImage], bool]
"""Whether metadata are as a client wants them."""

GROUPS = "__consumer_offsets-0"
"""The partition with generations and offsets of consumer groups, the first replica of every broker."""
CLIENTS = -1_000
"""The address of the first client; each has one below the last."""
CORRELATIONS_PER_START = 1_000_000
DECISION_S = 5.0
"""How long a client waits for the controller's decision."""
SHUTDOWN_S = 0.1
REARMED = frozenset({Timer.PRODUCE_TIMEOUT, Timer.DELETE_TIMEOUT})
"""Timers that mean the first deadline of a queue: who handles one arms the next."""
CHECKPOINT_S = 5.0
LARGEST_BATCH = 1_048_588
"""Kafka's message.max.bytes."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What an operator chooses for a broker and its cluster."""

    broker_id: int = 0
    cluster: tuple[int, ...] = (0,)
    min_isr: int = 1
    flush_messages: int = 0
    cluster_id: str = ""


class Watcher(Protocol):
    """Who records what a broker does; `message` is the name of the request that it is handed next."""

    message: str

    def handle(self, event: Event, now_ms: int, perform: Callable[[Effect], None]) -> None:
        """Have the broker handle an event, and perform all effects."""

    def recovered(self, replica: Replica) -> None:
        """Learn of a replica whose log was just read from the disk."""

    def checkpointed(self) -> None:
        """Learn that the high watermarks are on the disk."""


class Host:
    """A running broker.

    `control` hands a message to its controller, `send` one to another broker; their answers come by
    `receive`.  `start` differs from start to start.
    """

    def __init__(
        self,
        settings: Settings,
        files: PartitionFiles,
        start: int,
        control: Callable[[Order], None],
        send: Callable[[int, Message], None],
    ) -> None:
        self.settings = settings
        self.files = files
        self.image = MetadataImage(-1, {}, {})
        """The metadata that the broker has applied."""
        self._loop = asyncio.get_running_loop()
        self.stopped: asyncio.Future[None] = self._loop.create_future()
        """Done when the broker has stopped; with an exception if its disk has failed, or by a bug."""
        self._control = control
        self._send_to_peer = send
        self._start = start
        self._clock = Clock(self._loop)
        self._numbers = count(1)
        self._clients = count(CLIENTS, -1)
        self._waiting: dict[int, asyncio.Future[Message]] = {}
        self._changes: set[asyncio.Future[None]] = set()
        self._events: deque[Event] = deque()
        self._is_busy = False
        self._due: dict[tuple[str, Timer], float] = {}
        self.watcher: Watcher | None = None
        marker = files.directory.broker_epoch
        membership = Membership(settings.broker_id, start, -1 if marker is None else marker)
        self.broker = Broker(membership, self._replica(GROUPS))

    def now_ms(self) -> int:
        """Return the time of the process in milliseconds."""
        return self._clock.now_ms()

    def number(self) -> int:
        """Return a correlation for a message of a client."""
        return next(self._numbers)

    def client(self) -> int:
        """Return the address of a new client."""
        return next(self._clients)

    def begin(self) -> None:
        """Register, and arm the timers."""
        for effect in self.broker.start():
            self._perform(effect)
        self._drain()
        self._loop.call_later(CHECKPOINT_S, self._checkpoint)

    async def decide(self, orders: Iterable[Order], wishes: Sequence[Wish]) -> list[bool]:
        """Have the controller do what a client wants; return which wishes the broker has seen fulfilled.

        There is one time for all of them.
        """
        for order in orders:
            self._control(order)
        fulfilled = [False] * len(wishes)

        def are_all_fulfilled(image: MetadataImage) -> bool:
            # Each at any time: a leader that was elected may have gone when the last is.
            fulfilled[:] = [known or wish(image) for known, wish in zip(fulfilled, wishes, strict=True)]
            return all(fulfilled)

        with suppress(TimeoutError):
            async with asyncio.timeout(DECISION_S):
                await self.until(are_all_fulfilled)
        return fulfilled

    async def until(self, is_done: Callable[[MetadataImage], bool]) -> None:
        """Wait until the applied metadata are as wanted."""
        while not is_done(self.image):
            change: asyncio.Future[None] = self._loop.create_future()
            self._changes.add(change)
            try:
                await change
            finally:
                self._changes.discard(change)

    def receive(self, source: int, message: Message) -> None:
        """Take a message of the controller or of another broker."""
        if isinstance(message, MetadataUpdate):
            # One by one: a partition may be deleted in one of them, and be a new one in the next.
            self._events += [Received(source, MetadataUpdate((image,))) for image in message.images]
        else:
            self._events.append(Received(source, message))
        self._drain()

    def beat(self) -> None:
        """Tell a controller that has come back of this broker, before the timer does."""
        for effect in self.broker.membership.beat():
            if isinstance(effect, Send):
                self._perform(effect)

    @staticmethod
    def named(message: Message) -> tuple[str, Message]:
        """Return the partition that a message is about, and the message."""
        if isinstance(message, ForPartition):
            return message.partition, message.message
        # A broker with one replica does not name it.
        return GROUPS, message

    def needs(self, task: asyncio.Task[None]) -> None:
        """Stop if an exception ends a task, without which the broker would go on half deaf."""

        def ended(task: asyncio.Task[None]) -> None:
            error = None if task.cancelled() else task.exception()
            if isinstance(error, Exception):
                self.fail(error)

        task.add_done_callback(ended)

    def fail(self, error: Exception) -> None:
        """Stop because of an error of the disk, or a bug."""
        if not self.stopped.done():
            self.stopped.set_exception(error)

    def ask(self, source: int, partition: str, message: Message) -> asyncio.Future[Message]:
        """Hand a client's request to the replica of a partition; the answer has the same `correlation`."""
        answer: asyncio.Future[Message] = self._loop.create_future()
        correlation = correlation_of(message)
        self._waiting[correlation] = answer
        answer.add_done_callback(lambda _: self._waiting.pop(correlation, None))
        self.tell(source, partition, message)
        return answer

    def now(self, source: int, partition: str, message: Message, kind: type[T]) -> T:
        """Return the answer to a request that the core answers in the same step.

        Raises `ConnectionError` when the broker has stopped.
        """
        answer = self.ask(source, partition, message)
        if not answer.done():
            raise ConnectionError("the broker has stopped")
        reply = answer.result()
        assert isinstance(reply, kind)
        return reply

    def tell(self, source: int, partition: str, message: Message) -> None:
        """Hand over a request that has no answer."""
        self.receive(source, ForPartition(partition, message))

    def has(self, partition: str) -> bool:
        """Return whether the broker has a replica of a partition."""
        return partition in self.broker.replicas and partition in self.image.partitions

    def shut_down(self) -> None:
        """Request a controlled shutdown until it is granted, which ends with `stopped`."""
        if not self.stopped.done():
            for effect in self.broker.shut_down():
                self._perform(effect)
            self._drain()
            # The grant is in the answer to a later request.
            self._loop.call_later(SHUTDOWN_S, self.shut_down)

    def _drain(self) -> None:
        """Handle all events, unless this is called while one is handled."""
        if self._is_busy:
            return
        self._is_busy = True
        try:
            while self._events and not self.stopped.done():
                self._handle(self._events.popleft())
        except (StoreError, OSError) as error:
            self.fail(error)
        except Exception as error:
            # The core may have changed what is not on the disk, and never will be.
            self.fail(error)
            raise
        finally:
            self._is_busy = False

    def _handle(self, event: Event) -> None:
        update = event.message if isinstance(event, Received) else None
        if isinstance(update, MetadataUpdate):
            self._admit(update.images[-1])
        if self.watcher is not None:
            self.watcher.handle(event, self.now_ms(), self._perform)
        else:
            for effect in self.broker.handle(event, self.now_ms()):
                self._perform(effect)
        if isinstance(update, MetadataUpdate):
            self._follow(update.images[-1])

    def _admit(self, image: MetadataImage) -> None:
        """Make a replica of each partition that this broker is a new replica of."""
        if self.broker.membership.broker_epoch < 0:
            return
        for name, partition in image.partitions.items():
            is_here = self.settings.broker_id in partition.replicas
            if is_here and name not in self.broker.replicas and not self._is_damaged(name):
                self.broker.replicas[name] = replica = self._replica(name)
                if self.watcher is not None:
                    self.watcher.recovered(replica)
                for effect in replica.start():
                    self._perform(named(name, effect))

    def _follow(self, image: MetadataImage) -> None:
        """Take applied metadata as current, and forget the replicas of partitions that are deleted."""
        if image.version != self.broker.membership.metadata_version:
            return
        is_first, self.image = self.image.version < 0, image
        if is_first:
            self._clear(image)
        for change in self._changes:
            if not change.done():
                change.set_result(None)
        for name in [
            name for name in self.broker.replicas if name not in image.partitions and name != GROUPS
        ]:
            del self.broker.replicas[name]
            # Deleted already, unless the version that said so was skipped.
            self.files.perform(name, Delete())

    def _clear(self, image: MetadataImage) -> None:
        """Delete what a stop has left of partitions that were deleted, or moved to other brokers."""
        here = {n for n, each in image.partitions.items() if self.settings.broker_id in each.replicas}
        for name in self.files.names():
            if name not in here and name not in self.broker.replicas:
                self.files.perform(name, Delete())

    def _is_damaged(self, name: str) -> bool:
        return key_of(name) in self.files.directory.damaged

    def _replica(self, name: str) -> Replica:
        settings = self.settings
        config = Config(
            min_isr=settings.min_isr, max_batch_bytes=LARGEST_BATCH, flush_messages=settings.flush_messages
        )
        first = self._start * CORRELATIONS_PER_START
        log = self.files.recover(name)
        state = ReplicaState(settings.broker_id, name, config, CURRENT, log, correlation=first)
        return GroupReplica(state) if name == GROUPS else Replica(state)

    def _perform(self, effect: Effect) -> None:
        """Perform an effect of the broker."""
        assert not isinstance(effect, StoreVote | StoreRecords), "a broker is no controller"
        match effect:
            case Send():
                self._send(effect.to, effect.message)
            case ShutDown():
                self._stop()
            case Of(name, inner):
                self._perform_for(name, inner)
            # Of a broker with one replica: that of the partition of groups.
            case SetTimer():
                self._arm(effect)
            case _:
                self.files.perform(GROUPS, effect)

    def _perform_for(self, name: str, effect: PartitionEffect) -> None:
        if isinstance(effect, SetTimer):
            self._arm(effect, name)
        else:
            self.files.perform(name, effect)

    def _arm(self, timer: SetTimer, partition: str = "") -> None:
        fired = Fired(timer.timer, timer.token)
        due = self._loop.time() + timer.delay_ms / 1_000
        place = partition, timer.timer
        if timer.timer in REARMED:
            # One for each request would outlive it, and arm another.
            if self._due.get(place, due + 1) <= due:
                return
            self._due[place] = due

        def fire() -> None:
            if self._due.get(place) == due:
                del self._due[place]
            # The partition may have been deleted meanwhile.
            if not partition or partition in self.broker.replicas:
                self._events.append(TimerOf(partition, fired) if partition else fired)
                self._drain()

        self._loop.call_at(due, fire)

    def _send(self, to: int, message: Message) -> None:
        if to == CONTROLLER:
            self._control(message)
            return
        if to == self.settings.broker_id:
            self._events.append(Received(to, self._own_log(message)))
            return
        if to >= 0:
            self._send_to_peer(to, message)
            return
        _, inner = self.named(message)
        answer = self._waiting.pop(correlation_of(inner), None)
        # The connection may have ended meanwhile.
        if answer is not None and not answer.done():
            answer.set_result(inner)

    def _own_log(self, message: Message) -> Message:
        """Return a message of the broker to itself with the bytes of the log of groups."""
        _, inner = self.named(message)
        if not isinstance(inner, GroupLog):
            return message
        full = replace(inner, batches=self.files.with_values(GROUPS, inner.batches))
        return replace(message, message=full) if isinstance(message, ForPartition) else full

    def _checkpoint(self) -> None:
        if self.stopped.done():
            return
        try:
            self.files.checkpoint()
            if self.watcher is not None:
                self.watcher.checkpointed()
        except StoreError as error:
            self.fail(error)
            return
        self._loop.call_later(CHECKPOINT_S, self._checkpoint)

    def _stop(self) -> None:
        """End the broker cleanly."""
        for name, replica in self.broker.replicas.items():
            if replica.state.role is not Role.NONE:
                self.files.perform(name, StoreHighWatermark(replica.state.log.hw))
        self.files.close(self.broker.membership.broker_epoch)
        self.stopped.set_result(None)


def correlation_of(message: Message) -> int:
    """Return the number that pairs a message with its answer, -1 if it has none."""
    number: int = getattr(message, "correlation", -1)
    return number


Watch = Callable[[Host | Controlling], None]
"""Called with what runs in a process, before it begins."""


def start(fs: Fs, path: str, settings: Settings, watch: Watch = lambda _: None) -> Host:
    """Open a directory, created if it is missing, and start a broker and its controller in it.

    Raises `StoreError`, also for a directory with logs of other programs.
    """
    catalog = load(fs, path)
    # To open the directory of another program would change it.
    others = Root(fs, path).partitions() if catalog is None and fs.exists(path) else []
    if others:
        raise CorruptFileError(
            f"{path} has {len(others)} partitions, but no {METADATA_FILE}: it was not made by"
            " `replog serve`; choose another directory"
        )
    directory = LogDirectory.open(fs, path)
    try:
        catalog = started(catalog or new_catalog(fs, path))
        settings = replace(settings, cluster_id=catalog.cluster_id)
        # Each has the other: both begin when both are made.
        hosts: list[Host] = []
        controlling = Controlling(
            catalog,
            settings.min_isr,
            asyncio.get_running_loop(),
            lambda to, message: hosts[0].receive(CONTROLLER, message) if to == settings.broker_id else None,
            lambda error: hosts[0].fail(error),
        )
        broker_id = settings.broker_id
        host = Host(
            settings,
            PartitionFiles(directory),
            catalog.starts,
            lambda order: controlling.receive(broker_id, order),
            lambda to, message: None,
        )
        hosts.append(host)
        watch(controlling)
        watch(host)
        controlling.begin({GROUPS: settings.cluster})
        host.begin()
    except (StoreError, OSError):
        directory.abandon()
        raise
    return host
