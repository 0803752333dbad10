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
from dataclasses import dataclass, replace
from itertools import count
from typing import TypeVar

from replog.core.broker.broker import Broker, named
from replog.core.broker.coordinator import GroupReplica
from replog.core.broker.membership import Membership
from replog.core.broker.replica import Replica
from replog.core.broker.state import Config, ReplicaState
from replog.core.controller.controller import Controller
from replog.core.controller.state import ControllerConfig
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
    TimerOf,
)
from replog.core.messages import ForPartition, GroupLog, Message, MetadataUpdate
from replog.core.protocol import CURRENT
from replog.core.quorum.records import record_of, restored
from replog.core.types import CONTROLLER, MetadataImage, Role
from replog.run.partitions import PartitionFiles
from replog.run.serve.catalog import METADATA_FILE, Catalog, load, new_catalog
from replog.store.directory import LogDirectory
from replog.store.files.errors import CorruptFileError, StoreError
from replog.store.files.fs import Fs

T = TypeVar("T")

GROUPS = "__consumer_offsets-0"
"""The partition with generations and offsets of consumer groups, the first replica of every broker."""
OPERATOR = -99
"""The address of operators, who are answered from the metadata."""
CLIENTS = -1_000
"""The address of the first client; each has one below the last."""
CORRELATIONS_PER_START = 1_000_000
EPOCH_MS = 1_000_000
"""What the clock shows at the start: 0 would look like "never"."""
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


class Host:
    """A running broker with the controller of its cluster; made by `start`."""

    def __init__(
        self, settings: Settings, files: PartitionFiles, catalog: Catalog, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.settings = settings
        self.files = files
        self.catalog = catalog
        self.image = MetadataImage(-1, {}, {})
        """The metadata that the broker has applied."""
        self.stopped: asyncio.Future[None] = loop.create_future()
        """Done when the broker has stopped; with an exception if its disk has failed."""
        self._loop = loop
        self._began = loop.time()
        self._numbers = count(1)
        self._clients = count(CLIENTS, -1)
        self._waiting: dict[int, asyncio.Future[Message]] = {}
        self._events: deque[tuple[int, Event]] = deque()
        self._is_busy = False
        config = ControllerConfig(min_isr=settings.min_isr)
        # Before a session's length ago: the processes of all sessions have ended with the last controller.
        past = self.now_ms() - config.session_timeout_ms - 1
        self.controller = Controller(restored(catalog.record, config, CURRENT, past))
        marker = files.directory.broker_epoch
        membership = Membership(settings.broker_id, catalog.starts, -1 if marker is None else marker)
        self.broker = Broker(membership, self._replica(GROUPS))

    def now_ms(self) -> int:
        """Return the time of the process in milliseconds."""
        return EPOCH_MS + int((self._loop.time() - self._began) * 1_000)

    def number(self) -> int:
        """Return a correlation for a message of a client."""
        return next(self._numbers)

    def client(self) -> int:
        """Return the address of a new client."""
        return next(self._clients)

    def begin(self) -> None:
        """Create the partition of groups in a new cluster, register, and arm the timers."""
        if GROUPS not in self.controller.state.partitions:
            self.decide(self.controller.create({GROUPS: self.settings.cluster}))
        self._take(CONTROLLER, self.controller.start())
        self._take(self.settings.broker_id, self.broker.start())
        self._drain()
        self._loop.call_later(CHECKPOINT_S, self._checkpoint)

    def decide(self, effects: list[Effect]) -> None:
        """Perform effects of the controller that no message has caused, after its change is durable."""
        try:
            self._save()
        except OSError as error:
            self.fail(error)
            return
        self._take(CONTROLLER, effects)
        self._drain()

    def operate(self, message: Message) -> None:
        """Hand an operator's request to the controller, and let the broker follow its decision."""
        self._events.append((CONTROLLER, Received(OPERATOR, message)))
        self._drain()

    def fail(self, error: Exception) -> None:
        """Stop because of an error of the disk."""
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
        self._events.append((self.settings.broker_id, Received(source, ForPartition(partition, message))))
        self._drain()

    def has(self, partition: str) -> bool:
        """Return whether the broker has a replica of a partition."""
        return partition in self.broker.replicas and partition in self.image.partitions

    def shut_down(self) -> None:
        """Begin a controlled shutdown, which ends with `stopped`."""
        self._take(self.settings.broker_id, self.broker.shut_down())
        self._drain()
        # The grant is in the answer to the next heartbeat, which need not wait for its timer.
        self._take(self.settings.broker_id, self.broker.shut_down())
        self._drain()

    def _drain(self) -> None:
        """Handle all events, unless this is called while one is handled."""
        if self._is_busy:
            return
        self._is_busy = True
        try:
            while self._events and not self.stopped.done():
                self._handle(*self._events.popleft())
        except (StoreError, OSError) as error:
            self.fail(error)
        finally:
            self._is_busy = False

    def _handle(self, owner: int, event: Event) -> None:
        if owner == CONTROLLER:
            version = self.controller.state.version
            effects = self.controller.handle(event, self.now_ms())
            if self.controller.state.version != version:
                self._save()
            self._take(CONTROLLER, effects)
            return
        update = event.message if isinstance(event, Received) else None
        if isinstance(update, MetadataUpdate):
            self._admit(update.images[-1])
        effects = self.broker.handle(event, self.now_ms())
        for effect in effects:
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
                for effect in replica.start():
                    self._perform(named(name, effect))

    def _follow(self, image: MetadataImage) -> None:
        """Take applied metadata as current, and forget the replicas of partitions that are deleted."""
        if image.version != self.broker.membership.metadata_version:
            return
        self.image = image
        for name in [
            name for name in self.broker.replicas if name not in image.partitions and name != GROUPS
        ]:
            del self.broker.replicas[name]
            # Deleted already, unless the version that said so was skipped.
            self.files.perform(name, Delete())

    def _is_damaged(self, name: str) -> bool:
        return any(f"{topic}-{number}" == name for topic, number in self.files.directory.damaged)

    def _replica(self, name: str) -> Replica:
        settings = self.settings
        config = Config(
            min_isr=settings.min_isr, max_batch_bytes=LARGEST_BATCH, flush_messages=settings.flush_messages
        )
        first = self.catalog.starts * CORRELATIONS_PER_START
        log = self.files.recover(name)
        state = ReplicaState(settings.broker_id, name, config, CURRENT, log, correlation=first)
        return GroupReplica(state) if name == GROUPS else Replica(state)

    def _save(self) -> None:
        self.catalog.record = record_of(self.controller.state, self.catalog.starts)
        self.catalog.save()

    def _take(self, owner: int, effects: list[Effect]) -> None:
        for effect in effects:
            if owner != CONTROLLER:
                self._perform(effect)
            elif isinstance(effect, Send):
                self._send(CONTROLLER, effect)
            elif isinstance(effect, SetTimer):
                self._arm(effect, CONTROLLER)

    def _perform(self, effect: Effect) -> None:
        """Perform an effect of the broker."""
        assert not isinstance(effect, StoreVote | StoreRecords), "a broker is no controller"
        match effect:
            case Send():
                self._send(self.settings.broker_id, effect)
            case ShutDown():
                self._stop()
            case Of(name, inner):
                self._perform_for(name, inner)
            # Of a broker with one replica: that of the partition of groups.
            case SetTimer():
                self._arm(effect, self.settings.broker_id)
            case _:
                self.files.perform(GROUPS, effect)

    def _perform_for(self, name: str, effect: PartitionEffect) -> None:
        if isinstance(effect, SetTimer):
            self._arm(effect, self.settings.broker_id, name)
        else:
            self.files.perform(name, effect)

    def _arm(self, timer: SetTimer, owner: int, partition: str = "") -> None:
        fired = Fired(timer.timer, timer.token)

        def fire() -> None:
            # The partition may have been deleted meanwhile.
            if not partition or partition in self.broker.replicas:
                self._events.append((owner, TimerOf(partition, fired) if partition else fired))
                self._drain()

        self._loop.call_later(timer.delay_ms / 1_000, fire)

    def _send(self, source: int, effect: Send) -> None:
        to, message = effect.to, effect.message
        if to == CONTROLLER or to >= 0:
            self._events.append((to, Received(source, self._own_log(message))))
            return
        inner = message.message if isinstance(message, ForPartition) else message
        answer = self._waiting.pop(correlation_of(inner), None)
        # The connection may have ended meanwhile.
        if answer is not None and not answer.done():
            answer.set_result(inner)

    def _own_log(self, message: Message) -> Message:
        """Return a message of the broker to itself with the bytes of the log of groups."""
        inner = message.message if isinstance(message, ForPartition) else message
        if not isinstance(inner, GroupLog):
            return message
        full = replace(inner, batches=self.files.with_values(GROUPS, inner.batches))
        return replace(message, message=full) if isinstance(message, ForPartition) else full

    def _checkpoint(self) -> None:
        if self.stopped.done():
            return
        try:
            self.files.checkpoint()
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


def start(fs: Fs, path: str, settings: Settings, loop: asyncio.AbstractEventLoop) -> Host:
    """Open a directory, created if it is missing, and start the broker and controller in it.

    Raises `StoreError`, also for a directory with logs of other programs.
    """
    directory = LogDirectory.open(fs, path)
    try:
        catalog = load(fs, path)
        if catalog is None and directory.logs:
            raise CorruptFileError(
                f"{path} has {len(directory.logs)} partitions, but no {METADATA_FILE}: it was not made by"
                " `replog serve`; choose another directory"
            )
        catalog = catalog or new_catalog(fs, path)
        catalog.starts += 1
        catalog.save()
        # Left over by a crash between the decision to delete a topic and the deletion.
        for topic, number in [key for key in directory.logs if f"{key[0]}-{key[1]}" != GROUPS]:
            if f"{topic}-{number}" not in catalog.record.image.partitions:
                directory.delete(topic, number)
        host = Host(settings, PartitionFiles(directory), catalog, loop)
        host.begin()
    except (StoreError, OSError):
        directory.abandon()
        raise
    return host
