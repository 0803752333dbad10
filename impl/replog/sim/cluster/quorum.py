"""The controllers of a simulated cluster that has several: processes, disks, and their decisions.

    quorum = Quorum((-1, -2, -3), config, protocol, first, send, schedule, now_ms)
    quorum.execute(item)                      # a delivery or an alarm of one of them
    quorum.crash(-2); quorum.restart(-2)

A process dies between two effects when its `effects_left` runs out, like a broker's.  The disk keeps what
`StoreVote` and `StoreRecords` wrote, whole and flushed: it is a value, and no file of replog's store.

What the cluster has decided, for all who read the world's `controller`, is what is committed: the longest
log below the HW of a controller, of any time.

Not here: what the controllers do (`core.quorum`), and what is right (`sim.oracles.quorum`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from replog.core.broker.contact import Contact
from replog.core.controller.controller import Controller
from replog.core.controller.state import ControllerConfig, expire_session
from replog.core.effects import (
    Effect,
    Event,
    Fired,
    Received,
    Send,
    SetTimer,
    StoreRecords,
    StoreVote,
    Timer,
)
from replog.core.messages import Message
from replog.core.protocol import Protocol
from replog.core.quorum import records
from replog.core.quorum.node import NOBODY, ControllerNode
from replog.core.types import CONTROLLER, MetadataRecord
from replog.sim.cluster.node import Alarm, Delivery, event_of


@dataclass(slots=True)
class ControllerDisk:
    """The files of a controller, all of them flushed."""

    term: int
    vote: int
    log: list[MetadataRecord]

    def perform(self, effect: StoreVote | StoreRecords) -> None:
        """Perform a disk effect."""
        if isinstance(effect, StoreVote):
            self.term, self.vote = effect.term, effect.vote
        else:
            self.log[effect.start :] = effect.records


@dataclass(slots=True)
class ControllerHost:
    """One machine: its disk, and a controller process if one runs."""

    address: int
    disk: ControllerDisk
    node: ControllerNode | None = None
    incarnation: int = 0
    effects_left: int = -1
    held: list[Delivery | Alarm] | None = None


def addresses(controllers: int) -> tuple[int, ...]:
    """Return the addresses of this many controllers."""
    return tuple(CONTROLLER - number for number in range(controllers))


@dataclass(slots=True)
class Quorum:
    """All controllers at one moment."""

    voters: tuple[int, ...]
    config: ControllerConfig
    protocol: Protocol
    first: MetadataRecord
    """The metadata that the cluster begins with, as if an earlier active controller had committed it."""
    send: Callable[[int, int, Message], None]
    """Of the world: from an address, to another one."""
    schedule: Callable[[int, Alarm], None]
    """Of the world: an alarm after so many milliseconds."""
    now_ms: Callable[[], int]
    """The clock of the world, read anew each time."""
    hosts: dict[int, ControllerHost] = field(default_factory=dict)
    committed: list[MetadataRecord] = field(default_factory=list)
    crashes: int = 0

    def __post_init__(self) -> None:
        self.committed = [self.first]
        for address in self.voters:
            disk = ControllerDisk(self.first.term, NOBODY, [self.first])
            self.hosts[address] = ControllerHost(address, disk)

    def start(self) -> None:
        """Start all processes."""
        for address in self.voters:
            self.restart(address)

    def view(self) -> Controller:
        """Return a controller that has just restored the committed state, for observers."""
        last = self.committed[-1]
        return Controller(records.restored(last, self.config, self.protocol, self.now_ms()))

    def active(self) -> ControllerHost | None:
        """Return the active controller of the newest term that decides, if there is one."""
        deciding = [host for host in self.hosts.values() if host.node is not None and host.node.decides]
        return max(deciding, key=lambda host: host.node.term if host.node else 0, default=None)

    def contact(self) -> Contact:
        """Return a broker process's view of the controllers when it starts."""
        return Contact(self.voters, self.protocol.newest_only)

    def execute(self, item: Delivery | Alarm) -> None:
        """Deliver a message, or let an alarm ring, if the receiving process is alive."""
        host = self.hosts[item.to if isinstance(item, Delivery) else item.owner]
        if host.node is None or item.incarnation != host.incarnation:
            return
        if host.held is not None:
            host.held.append(item)
            return
        self.handle(host, event_of(item))

    def handle(self, host: ControllerHost, event: Event) -> None:
        """Let a living process handle an event."""
        if host.node is not None:
            self.act(host, host.node.handle(event, self.now_ms()))

    def operate(self, received: Received) -> None:
        """Deliver an operator's request to the active controller."""
        host = self.active()
        if host is not None:
            self.handle(host, received)

    def fence(self, broker_id: int) -> None:
        """Let a broker's session at the active controller expire now, and no other."""
        host, now_ms = self.active(), self.now_ms()
        if host is None or host.node is None or host.node.controller is None:
            return
        if expire_session(host.node.controller.state, broker_id, now_ms):
            effects = host.node.handle(Fired(Timer.SESSION_CHECK, host.node.term), now_ms)
            # The periodic check is armed already.
            self.act(host, [effect for effect in effects if not isinstance(effect, SetTimer)])

    def restart(self, address: int) -> None:
        """Start a process on the contents of its disk."""
        host = self.hosts[address]
        if host.node is not None:
            return
        host.incarnation += 1
        host.effects_left, host.held = -1, None
        disk = host.disk
        host.node = ControllerNode(
            address, self.voters, self.config, self.protocol, disk.term, [*disk.log], disk.vote
        )
        self.act(host, host.node.start(self.now_ms()))

    def crash(self, address: int) -> None:
        """Kill a process; messages in flight to it are lost."""
        host = self.hosts[address]
        self.crashes += host.node is not None
        host.node, host.held, host.effects_left = None, None, -1
        host.incarnation += 1

    def pause(self, address: int) -> None:
        """Freeze a process: messages and alarms for it wait."""
        host = self.hosts[address]
        if host.node is not None and host.held is None:
            host.held = []

    def resume(self, address: int) -> None:
        """Thaw a process; it handles waiting messages at once."""
        host = self.hosts[address]
        held, host.held = host.held or [], None
        for item in held:
            self.execute(item)

    def act(self, host: ControllerHost, effects: list[Effect]) -> None:
        """Perform a process's effects in order; it may die between any two of them."""
        for effect in effects:
            if host.effects_left == 0:
                self.crash(host.address)
                return
            host.effects_left -= host.effects_left > 0
            if isinstance(effect, Send):
                self.send(host.address, effect.to, effect.message)
            elif isinstance(effect, SetTimer):
                alarm = Alarm(host.address, effect.timer, effect.token, host.incarnation)
                self.schedule(effect.delay_ms, alarm)
            else:
                assert isinstance(effect, StoreVote | StoreRecords), effect
                host.disk.perform(effect)
        node = host.node
        if node is not None and node.hw > len(self.committed):
            self.committed.extend(node.log[len(self.committed) : node.hw])
