"""Copies of a cluster's processes that are given other events than the processes themselves.

A simulated cluster behaves: its clients ask what they should, its brokers answer what they have.  A copy of a
process has the same state, but gets what only a process in error would send: old messages of any kind,
messages with a field or two changed, refusals, answers about a log that the leader does not have, another
leader, and timers that are not due.  Its true events come in between, so that what waits is completed.  Its
effects are noted, and nobody performs them: the run goes on as if there were no copy.

Not here: what is noted, and how (`observed_world`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, is_dataclass, replace
from random import Random
from typing import Any

from replog.core import messages
from replog.core.broker.broker import Broker
from replog.core.controller.controller import Controller
from replog.core.effects import Append, Effect, Event, Send
from replog.core.quorum.node import ControllerNode
from replog.core.types import (
    CONTROLLER,
    Batch,
    BrokerImage,
    BrokerState,
    EpochEnd,
    Error,
    MetadataImage,
    PartitionImage,
)
from replog.sim.cluster.node import Alarm, Delivery, event_of
from replog.sim.cluster.world import OPERATOR

CLIENT = -10
ENDS = messages.LATEST, messages.EARLIEST, 5
REFUSALS = (
    Error.NOT_LEADER_OR_FOLLOWER, Error.OPERATION_NOT_ATTEMPTED, Error.FENCED_LEADER_EPOCH,
    Error.UNKNOWN_LEADER_EPOCH, Error.STALE_BROKER_EPOCH, Error.INVALID_UPDATE_VERSION,
    Error.UNKNOWN_TOPIC_ID, Error.INELIGIBLE_REPLICA, Error.NEW_LEADER_ELECTED,
)  # fmt: skip
"""Errors on which a broker decides, so half of the changed ones."""
SEQUENCES = 1 << 31
KINDS = 5
"""Of requests that are made up."""
NEAR = (0, 0, 0, 0, -3, -2, -1, 1, 2, 3)
OLD = 12
"""Of each kind and receiver, so that messages which are rare are repeated as often as others."""
Core = Broker | Controller | ControllerNode
Item = Delivery | Alarm
EPOCH, VERSION, END = "leader_epoch", "version", "high_watermark"


def receiver(item: Item) -> int:
    """Return the address that gets an item."""
    return item.to if isinstance(item, Delivery) else item.owner


def copied(core: Core) -> Core:
    """Return a copy of a process."""
    if not isinstance(core, Broker):
        return core.copy()
    contact = None if core.contact is None else core.contact.copy()
    replicas = [each.copy() for each in core.replicas.values()]
    for replica in replicas:
        assert replica.state.log == core.replicas[replica.state.partition].state.log
    return Broker(copy(core.membership), *replicas, contact=contact)


@dataclass(slots=True)
class Copy:
    """A copy of a process, which ends after so many more events."""

    core: Core
    left: int
    asked: deque[messages.AlterPartitionRequest] = field(default_factory=lambda: deque(maxlen=4))
    """Its latest requests, which nobody but `OtherEvents` answers."""
    numbers: tuple[int, int] = (0, 0)
    """The epoch and the next sequence number of a made-up producer."""
    end: int = 0
    """The end of its log, as its effects show it."""
    kinds: tuple[int, ...] = ()
    """The kinds of requests made up for it: few, so that they meet (swarm testing, Groce and others 2012)."""
    image: PartitionImage | None = None
    """The partition in the last made-up metadata."""


@dataclass
class OtherEvents:
    """The copies of one run, by address.

    `note` gets the events of a copy, all of its effects, and the error that it ends with, if any.
    """

    random: Random
    note: Callable[[int, Sequence[Event], Sequence[Effect], Exception | None], None]
    every: int = 5
    """On average, events of a process without a copy before it is copied."""
    copies: dict[tuple[int, int], Copy] = field(default_factory=dict)
    """By address and incarnation."""
    sent: dict[int, dict[str, deque[Delivery]]] = field(default_factory=dict)
    timers: dict[int, deque[Alarm]] = field(default_factory=dict)
    asked: dict[int, deque[messages.AlterPartitionRequest]] = field(default_factory=dict)
    seen: dict[str, int] = field(default_factory=lambda: {EPOCH: 0, VERSION: 0, END: 0})

    def keep(self, item: Item) -> None:
        """Keep a message or a timer of the run, to be given to a copy later."""
        if isinstance(item, Alarm):
            self.timers.setdefault(item.owner, deque(maxlen=OLD)).append(item)
            return
        inner = getattr(item.message, "message", item.message)
        if isinstance(item.message, messages.AlterPartitionRequest):
            self.asked.setdefault(item.source, deque(maxlen=2)).append(item.message)
        kinds = self.sent.setdefault(item.to, {})
        kinds.setdefault(type(inner).__name__, deque(maxlen=OLD)).append(item)
        for name in self.seen:
            self.seen[name] = max(self.seen[name], getattr(inner, name, 0))
        if isinstance(inner, messages.MetadataUpdate) and inner.images:
            self.seen[VERSION] = max(self.seen[VERSION], inner.images[-1].version)

    def before(self, core: Core, item: Item, now_ms: int) -> None:
        """Give a copy of a process other events, and sometimes what the process itself receives now."""
        random, address = self.random, receiver(item)
        process = address, item.incarnation
        twin = self.copies.get(process)
        if twin is None:
            if random.randrange(self.every):
                return
            twin = self.copies[process] = Copy(copied(core), random.choice((2, 5, 12, 30, 60)))
            twin.numbers = 0, random.choice((0, 0, SEQUENCES - 2))
            twin.kinds = tuple(random.sample(range(KINDS), random.choice((1, 2, 3, KINDS))))
        items = [self._other(address, item, twin) for _ in range(random.choice((0, 1, 2, 4)))]
        if random.random() < 0.8 or not items:
            items.append(item)
        events, effects, error = [event_of(each) for each in items], list[Effect](), None
        for event in events:
            try:
                effects += twin.core.handle(event, now_ms)
            except Exception as raised:  # of any kind, it is an output of the implementation
                error, twin.left = raised, 0
                break
        ends = [effect.batches[-1].next_offset for effect in effects if isinstance(effect, Append)]
        twin.end = max((twin.end, *ends))
        sent = (effect.message for effect in effects if isinstance(effect, Send))
        twin.asked.extend(message for message in sent if isinstance(message, messages.AlterPartitionRequest))
        self.note(address, events, effects, error)
        twin.left -= 1
        if twin.left < 0:
            del self.copies[process]

    def _other(self, address: int, item: Item, twin: Copy) -> Item:
        """Return an event that the process does not get now."""
        random, draw = self.random, self.random.random()
        proposals = twin.asked or self.asked.get(address)
        if proposals and random.random() < 0.2:
            return Delivery(CONTROLLER, address, self._decided(random.choice(proposals)), 0)
        if draw < 0.2 and address in self.timers:
            return random.choice(self.timers[address])
        if draw < 0.4 and address in self.sent:
            kinds = self.sent[address]
            old = random.choice(kinds[random.choice(list(kinds))])
            return self._changed(old, random.choice((0, 1, 1, 2)))
        if draw < 0.75 and address >= 0:
            return Delivery(*self._made(address, item, twin), 0)
        if draw < 0.55:
            return Delivery(OPERATOR, address, self._operated(), 0)
        if isinstance(item, Delivery):
            inner = getattr(item.message, "message", item.message)
            if isinstance(inner, messages.FetchReply) and random.random() < 0.5:
                return self._as(item, self._records(inner))
            return self._changed(item, random.choice((1, 1, 2)))
        return item

    def _changed(self, item: Delivery, times: int) -> Delivery:
        message = item.message
        for _ in range(times):
            message = altered(message, self.random)
        return replace(item, message=message)

    def _as(self, item: Delivery, inner: Any) -> Delivery:
        """Return a delivery with another message inside of what names its partition or term."""
        outer = item.message
        is_inside = isinstance(outer, messages.ForPartition | messages.OfTerm)
        return replace(item, message=replace(outer, message=inner) if is_inside else inner)

    def _near(self) -> int:
        end = self.seen[END]
        return max(self.random.choice((0, end // 2, end, end)) + self.random.choice(NEAR), -1)

    def _records(self, reply: messages.FetchReply) -> messages.FetchReply:
        """Return an answer with batches of a few epochs, or with the end of one."""
        random = self.random
        epoch = self.seen[EPOCH] - random.choice((0, 0, 1, 2))
        if random.random() < 0.4:
            return replace(reply, batches=(), diverging=EpochEnd(epoch, max(self._near(), 0)))
        base, batches = reply.batches[0].base_offset if reply.batches else self.seen[END], []
        for _ in range(random.choice((1, 1, 2, 3))):
            batches.append(Batch(base, max(epoch, 0), random.choice((1, 2, 3)), body=b"of %d" % base))
            base, epoch = batches[-1].next_offset, epoch + random.choice((0, 0, 1))
        start = random.choice((0, 0, self._near()))
        return replace(reply, batches=tuple(batches), high_watermark=self._near(), log_start=start)

    def _made(self, address: int, item: Item, twin: Copy) -> tuple[int, int, messages.Message]:
        """Return the sender, the receiver and the message of a request, or another decision on leaders."""
        random = self.random
        epoch = self.seen[EPOCH] + random.choice((0, 0, 0, 0, -1, 1))
        near = random.choice((self._near(), twin.end))
        number, of = random.randrange(99), epoch - random.randrange(-1, 4)
        count = random.choice((1, 2, 3))
        batch = Batch(0, -1, count, *random.choice(((), self._numbered(twin, count))), body=b"made")
        follower = random.choice((0, 1, 2, -1))
        kinds: tuple[messages.Message, ...] = (
            messages.ProduceRequest(number, batch, random.choice((0, 1, -1, 2)), 50),
            messages.FetchRequest(
                number, follower, epoch, near, random.choice((-1, of)), max_wait_ms=random.choice((0, 100)),
                log_start=random.choice((0, self._near())),
            ),
            messages.EpochEndRequest(number, 1, epoch, of),
            messages.ListOffsetsRequest(number, follower, epoch, random.choice(ENDS)),
            messages.DeleteRecordsRequest(number, random.choice((near, near // 2, messages.LATEST)), 100),
        )  # fmt: skip
        if random.random() < 0.2:
            return CONTROLLER, address, messages.MetadataUpdate((self._elected(twin),))
        source = follower if follower >= 0 and follower != address else CLIENT
        inner = kinds[random.choice(twin.kinds)]
        named = item if isinstance(item, Alarm) else item.message
        name = named.partition if isinstance(named, Alarm | messages.ForPartition) else ""
        return source, address, messages.ForPartition(name, inner) if name else inner

    def _operated(self) -> messages.Message:
        """Return a request of an operator."""
        random, number = self.random, self.random.randrange(99)
        name = "t-0" if random.random() < 0.95 else "t-9"
        target = tuple(random.sample(range(4), random.choice((1, 2, 3, 3))))
        kinds = (
            messages.ElectRequest(number, name, random.random() < 0.4),
            messages.ConfigureRequest(number, name, random.choice((0, 1, 2, 2, 3, 4))),
            messages.ReassignRequest(number, name, random.choice((target, target, None))),
        )
        return random.choice(kinds)

    def _decided(self, proposal: messages.AlterPartitionRequest) -> messages.Message:
        """Return an answer to a proposal of an ISR."""
        random = self.random
        version = proposal.partition_epoch + random.choice((0, 1, 1, 2))
        isr = tuple(sorted(each for each, _ in proposal.new_isr))
        error = random.choice(REFUSALS) if random.random() < 0.7 else Error.NONE
        reply = messages.AlterPartitionReply
        return reply(proposal.correlation, error, proposal.leader_epoch, version, isr)

    def _numbered(self, twin: Copy, count: int) -> tuple[int, int, int]:
        """Return producer, epoch and first number of a batch: the next one, again, or of a new epoch."""
        (epoch, number), draw = twin.numbers, self.random.random()
        if draw < 0.15:
            number = max(number - count, 0)
        elif draw < 0.3:
            epoch, number = epoch + 1, 0
        elif draw < 0.4:
            number = max(self._near(), 0)
        twin.numbers = epoch, (number + count) % SEQUENCES
        return 7, epoch, number

    def _elected(self, twin: Copy) -> MetadataImage:
        """Return metadata of another leader and another ISR, or of another ELR alone."""
        random = self.random
        version = self.seen[VERSION] + random.choice((1, 1, 1, 2))
        epoch = self.seen[EPOCH] + random.choice((0, 1, 1, 2))
        leader = random.choice((0, 1, 2, -1))
        isr = tuple(each for each in (0, 1, 2) if each == leader or random.random() < 0.6)
        elr = tuple(each for each in (0, 1, 2) if each not in isr and random.random() < 0.5)
        least = random.choice((0, 0, 2))
        image = PartitionImage((0, 1, 2), leader, epoch, version, isr, elr=elr, min_isr=least)
        if twin.image is not None and random.random() < 0.3:
            image = replace(twin.image, elr=elr)
        twin.image = image
        states = random.choices((BrokerState.ACTIVE, BrokerState.FENCED), (5, 1), k=3)
        brokers = {at: BrokerImage(version, states[at]) for at in range(3)}
        return MetadataImage(version, {"t-0": image}, brokers)


def altered(value: Any, random: Random) -> Any:
    """Return a message, or a value in one, with one number, flag or member changed."""
    if isinstance(value, Error):
        return random.choice(REFUSALS if random.random() < 0.5 else tuple(Error))
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + random.choice((-1, 1, 1, 2))
    if isinstance(value, tuple) and value:
        at = random.randrange(len(value))
        item = value[at]
        if isinstance(item, tuple) and item:  # a pair stays one
            place = random.randrange(len(item))
            item = (*item[:place], altered(item[place], random), *item[place + 1 :])
        else:
            item = altered(item, random)
        changed = random.choice(((), (value[at],) * 2, (item,)))
        return (*value[:at], *changed, *value[at + 1 :])
    if isinstance(value, dict) and value:
        key = random.choice(list(value))
        return value | {key: altered(value[key], random)}
    if is_dataclass(value) and not isinstance(value, type):
        # A longer wait would only be waited for.
        names = [each.name for each in fields(value) if each.name != "max_wait_ms"]
        name = "error" if "error" in names and random.random() < 0.5 else random.choice(names)
        return replace(value, **{name: altered(getattr(value, name), random)})
    return value
