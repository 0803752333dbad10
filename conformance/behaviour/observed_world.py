"""A simulated cluster that records all outputs of a broker, the controller or a client.

    messages   their receiver, and all of their fields, in the order in which they are sent
    timers     which, after how long, and for what
    disk       every effect on it, the state found by a start, a clean stop; on files, each change of them

Clients are simulated, too, and their messages follow from the answers to them.  Not here: the events
of the cluster (replog's own simulator and stories), and what copies get (`other_events`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import count
from random import Random
from zlib import crc32

from observed_files import ObservedDisk, note_files
from other_events import Core, OtherEvents, receiver

from replog.core.effects import Effect
from replog.core.messages import Message
from replog.core.types import CONTROLLER
from replog.run.storage import Recovered, StorageError
from replog.sim.cluster.node import Alarm, Call, Delivery, Item, Network
from replog.sim.cluster.options import WorldOptions
from replog.sim.cluster.storage import Chooser, MemoryStorage, Storage
from replog.sim.cluster.world import OPERATOR, Observer, World
from replog.sim.disks.stored import CONFIG, DIRECTORY, StoreStorage
from replog.store.files.config import LogConfig
from specchk.conform.contract.behaviours import RunWatch


@cache
def names_of(kind: type) -> tuple[str, ...]:
    """Return the names of a record's fields."""
    return tuple(field.name for field in fields(kind))


def facts(record: object) -> dict[str, object]:
    """Return the fields of a record, by name."""
    return {name: getattr(record, name) for name in names_of(type(record))}


def note_effect(watch: RunWatch, at: str, effect: object) -> None:
    """Record an effect of a core that runs alone, with all of its fields."""
    watch.note(at, type(effect).__name__, **facts(effect))


@cache
def who(address: int) -> str:
    """Return the name of an address in reports."""
    if address == CONTROLLER:
        return "controller"
    return (
        f"broker {address}" if address >= 0 else "operator" if address == OPERATOR else f"client {-address}"
    )


@dataclass(frozen=True, slots=True)
class CopysEvents:
    """Events that a copy of a process gets, as shown in reports."""

    address: int
    events: Sequence[object]

    def __str__(self) -> str:
        return f"a copy of {who(self.address)} gets {', then '.join(map(str, self.events))}"


@dataclass(frozen=True, slots=True)
class Event:
    """An item that happens, as shown in reports."""

    item: Delivery | Alarm

    def __str__(self) -> str:
        if isinstance(self.item, Alarm):
            return f"{who(self.item.owner)}: timer {self.item.timer.value} of token {self.item.token} fires"
        return f"{who(self.item.to)} receives from {who(self.item.source)}: {self.item.message}"


class ObservedStorage:
    """A disk whose effects and starts are noted, and also the changes of files of a real store."""

    def __init__(self, watch: RunWatch, at: str, inner: Storage) -> None:
        self._watch, self._at, self.inner = watch, at, inner

    def _note(self, kind: str, **shown: object) -> None:
        self._watch.note(self._at, kind, **shown)

    def recover(self) -> Recovered:
        """Open the disk, noting the recovered state."""
        try:
            recovered = self.inner.recover()
        except StorageError as error:
            self._note("start fails", error=str(error))
            raise
        log = recovered.log
        records = "".join(map(str, log.cells())).encode()
        self._note(
            "start",
            log_start=log.log_start,
            end=log.leo,
            high_watermark=log.hw,
            epochs=tuple(log.epochs.entries),
            records=f"{crc32(records):08x}",
            previous_broker_epoch=recovered.previous_broker_epoch,
        )
        return recovered

    def with_bodies(self, message: Message) -> Message:
        """Return a message with the bodies from the disk."""
        return self.inner.with_bodies(message)

    def perform(self, effect: Effect) -> None:
        """Perform a disk effect, noting it."""
        kind = type(effect).__name__
        try:
            self.inner.perform(effect)
        except StorageError as error:
            self._note(f"effect {kind}", **facts(effect), error=str(error))
            raise
        self._note(f"effect {kind}", **facts(effect))

    @property
    def hw_checkpoint(self) -> int:
        """Return the last written HW."""
        return self.inner.hw_checkpoint

    def close(self, broker_epoch: int) -> None:
        """Shut down cleanly."""
        try:
            self.inner.close(broker_epoch)
        except StorageError as error:
            self._note("stop fails", error=str(error))
            raise
        self._note("stop", broker_epoch=broker_epoch)

    def crash(self) -> None:
        """Lose the process."""
        self.inner.crash()

    def lose_power(self, choose: Chooser) -> None:
        """Lose the process and unflushed data; the remaining data are noted."""
        self.inner.lose_power(choose)
        self._note("power loss", end=self.inner.end())

    def flush(self) -> None:
        """Make everything durable."""
        self.inner.flush()

    def flushed(self) -> int:
        """Return the durable end."""
        return self.inner.flushed()

    def end(self) -> int:
        """Return the offset after the last record."""
        return self.inner.end()

    def arm(self, occasion: int, kind: int) -> None:
        """Arm a failure of the disk."""
        self.inner.arm(occasion, kind)

    def is_armed(self) -> bool:
        """Return whether a failure is still pending."""
        return self.inner.is_armed()

    def copy(self) -> Storage:
        """Return a copy, which notes nothing."""
        return self.inner.copy()

    def note_end(self) -> None:
        """Note the contents of the disk at the end of a run."""
        if isinstance(self.inner, StoreStorage):
            self.inner.crash()
            if self.inner.fs.exists(DIRECTORY):
                note_files(self._watch, self._at, self.inner.fs, DIRECTORY)
        elif isinstance(self.inner, MemoryStorage):
            self._note("disk", **facts(self.inner))


def disks(watch: RunWatch, is_real: bool, config: LogConfig) -> Callable[[], Storage]:
    """Return a function that creates the next disk of a cluster, in the order of the brokers' ids."""
    names = map(who, count())

    def make() -> Storage:
        at = next(names)
        return ObservedStorage(watch, at, ObservedDisk(watch, at, config) if is_real else MemoryStorage())

    return make


class ObservedWorld(World):
    """A cluster that notes the outputs of its members; an event is a step.

    With `random`, copies of its processes get other events, whose effects are noted, too.
    """

    def __init__(
        self,
        watch: RunWatch,
        options: WorldOptions,
        network: Network | None = None,
        observer: Observer | None = None,
        config: LogConfig = CONFIG,
        random: Random | None = None,
    ) -> None:
        self.watch = watch
        self.others = None if random is None else OtherEvents(random, self._note_copy)
        make_storage = disks(watch, options.make_storage is StoreStorage, config)
        super().__init__(replace(options, make_storage=make_storage), network, observer)

    def _note_copy(
        self, address: int, events: Sequence[object], effects: Sequence[Effect], error: Exception | None
    ) -> None:
        self.watch.step(CopysEvents(address, events))
        at = f"copy of {who(address)}"
        for effect in effects:
            note_effect(self.watch, at, effect)
        if error is not None:
            self.watch.note(at, "raises", error=type(error).__name__, text=str(error))

    def send(self, source: int, to: int, message: Message) -> None:
        """Hand a message to the network."""
        self.watch.note(who(source), f"send {type(message).__name__}", to=who(to), **facts(message))
        if self.others is not None:
            self.others.keep(Delivery(source, to, message, 0))
        super().send(source, to, message)

    def schedule(self, delay_ms: int, item: Item) -> None:
        """Schedule an item; the delay of a message is the network's, and is not noted."""
        if isinstance(item, Alarm):
            self.watch.note(who(item.owner), "timer", timer=item.timer, delay_ms=delay_ms, token=item.token)
            if self.others is not None:
                self.others.keep(item)
        super().schedule(delay_ms, item)

    def _execute(self, item: Item) -> None:
        if not isinstance(item, Call):
            core = None if self.others is None else self._core(item)
            if self.others is not None and core is not None:
                self.others.before(core, item, self.now_ms)
            self.watch.step(Event(item))
        super()._execute(item)

    def _core(self, item: Delivery | Alarm) -> Core | None:
        """Return the process for which an item is, if it is alive."""
        address = receiver(item)
        if address == CONTROLLER and self.quorum is None:
            return self.controller
        host = self.quorum.hosts.get(address) if self.quorum is not None else None
        if host is not None:
            return host.node if item.incarnation == host.incarnation else None
        node = self.nodes.get(address)
        return node.broker if node is not None and item.incarnation == node.incarnation else None

    def note_end(self) -> None:
        """Record the contents of all disks."""
        self.watch.step("the end")
        for _, node in sorted(self.nodes.items()):
            if isinstance(node.storage, ObservedStorage):
                node.storage.note_end()
