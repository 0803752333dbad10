"""The controller: registers brokers, fences silent ones, elects leaders, and decides every ISR change.

Theory: KRaft's ReplicationControlManager and ClusterControlManager; rules A12, A15-A17, A23, A29, A34 of the
project's Kafka reference.  It is one state that does not fail (it may be slow or unreachable), or the state
by which a quorum's active controller decides (`core.quorum`).  Every change makes a `MetadataImage`, sent to
all registered brokers in the same step; they apply it when they can.

Invariants: at most one leader per leader epoch; partition epochs grow by one; only members that are
registered, active and of the proposed incarnation join an ISR (KIP-841, KIP-903); an incarnation registers
only after the session of the one before is over, that is after it left the ISR (unless it was the last:
B11).

Not here: its state (`state`), elections as such (`election`), the changes of a reassignment (`reassignment`),
placement of new partitions (`placement`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace

from replog.core.controller import election, reassignment
from replog.core.controller.election import Rules
from replog.core.controller.state import ControllerState, Registration
from replog.core.effects import Effect, Event, Fired, Received, Send, SetTimer, Timer, TimerOf
from replog.core.messages import (
    AlterPartitionReply,
    AlterPartitionRequest,
    ConfigureReply,
    ConfigureRequest,
    ElectReply,
    ElectRequest,
    ForPartition,
    HeartbeatReply,
    HeartbeatRequest,
    MetadataRequest,
    MetadataUpdate,
    ReassignReply,
    ReassignRequest,
    RegisterReply,
    RegisterRequest,
)
from replog.core.types import (
    NO_EPOCH,
    NO_LEADER,
    BrokerImage,
    BrokerState,
    Error,
    MetadataImage,
    PartitionImage,
)


class Controller:
    """The controller; `handle` takes one event and returns the messages to send."""

    __slots__ = ("state",)

    def __init__(self, state: ControllerState) -> None:
        self.state = state
        if not state.history:
            state.history.append(self._image(0))

    def copy(self) -> Controller:
        """Return a snapshot that can be run on its own."""
        return Controller(self.state.copy())

    def start(self) -> list[Effect]:
        """Arm the session check."""
        return [SetTimer(Timer.SESSION_CHECK, self.state.config.session_check_ms)]

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        """Handle one event; the last effects announce a change of metadata to every broker."""
        assert not isinstance(event, TimerOf), "the timers of partitions are the brokers'"
        out = self._fire(event, now_ms) if isinstance(event, Fired) else self._receive(event, now_ms)
        # One announcement for all changes of an event: brokers never see a state between a fenced leader and
        # its successor.
        if self.state.is_dirty:
            self._announce(out)
        return out

    def _fire(self, event: Fired, now_ms: int) -> list[Effect]:
        if event.timer is not Timer.SESSION_CHECK:
            return []
        for broker_id, broker in sorted(self.state.brokers.items()):
            # In the order of broker ids, so that the outcome of several expired sessions does not depend on a
            # dict.
            if broker.state is not BrokerState.FENCED and self._is_silent(broker, now_ms):
                self.fence(broker_id)
        return [SetTimer(Timer.SESSION_CHECK, self.state.config.session_check_ms)]

    def _receive(self, event: Received, now_ms: int) -> list[Effect]:
        match event.message:
            case ForPartition(name, message):
                answers = self._receive(Received(event.source, message), now_ms)
                return [Send(a.to, ForPartition(name, a.message)) for a in answers if isinstance(a, Send)]
            case HeartbeatRequest() as message:
                return self._heartbeat(event.source, message, now_ms)
            case AlterPartitionRequest() as message:
                return [Send(event.source, self.alter_partition(message))]
            case RegisterRequest() as message:
                return [Send(event.source, self.register(message, now_ms))]
            case MetadataRequest() as message:
                return [Send(event.source, self._updates_after(message.after_version))]
            case ElectRequest() as message:
                return [Send(event.source, ElectReply(message.correlation, self.elect(message)))]
            case ConfigureRequest() as message:
                return [Send(event.source, ConfigureReply(message.correlation, self.configure(message)))]
            case ReassignRequest() as message:
                return [Send(event.source, ReassignReply(message.correlation, self.reassign(message)))]
            case _:
                return []

    def register(self, request: RegisterRequest, now_ms: int) -> RegisterReply:
        """Admit an incarnation as fenced, with a new broker epoch.

        Refuse it while the one before may live (A23).
        """
        old = self.state.brokers.get(request.broker_id)
        # A repeated request, whose reply was lost. It must get the same broker epoch, or the first reply,
        # still in flight, would name one that is refused.
        if old is not None and old.incarnation == request.incarnation:
            return RegisterReply(request.incarnation, Error.NONE, old.broker_epoch)
        leaves_isr = self.state.protocol.restart_leaves_isr
        if old is not None and old.state is not BrokerState.FENCED and leaves_isr:
            # The earlier process may still run, and act as leader. Its session must end first.
            if not self._is_silent(old, now_ms):
                return RegisterReply(request.incarnation, Error.DUPLICATE_BROKER_REGISTRATION, -1)
            self.fence(request.broker_id)
        state = BrokerState.FENCED if old is None or leaves_isr else old.state
        # The version of the metadata that announces it: unique, growing, and a broker that has applied this
        # version has its own registration.
        epoch = self.state.version + 1
        self.state.is_dirty = True
        self.state.brokers[request.broker_id] = Registration(request.incarnation, epoch, state, now_ms)
        # Only the marker of a clean stop proves that the page cache was written. A broker without it may
        # have lost its tail, and with it the right to be elected from the ELR (A17).
        is_unclean = old is not None and request.previous_broker_epoch != old.broker_epoch
        if is_unclean and self.state.protocol.elr:
            self._drop(request.broker_id, {request.broker_id})
        elif old is not None and leaves_isr:
            self._drop(request.broker_id)  # a member since creation may never have been fenced out
        return RegisterReply(request.incarnation, Error.NONE, epoch)

    def fence(self, broker_id: int) -> None:
        """Take a broker out of every ISR and every leadership (A23)."""
        self._set_state(broker_id, BrokerState.FENCED)
        self._drop(broker_id)

    def _heartbeat(self, source: int, request: HeartbeatRequest, now_ms: int) -> list[Effect]:
        """Extend a session, unfence a broker with current metadata, grant a possible shutdown (A29)."""
        broker_id = request.broker_id
        broker = self.state.brokers.get(broker_id)
        # A heartbeat of an earlier incarnation must not keep the session of the present one alive.
        if broker is None or broker.broker_epoch != request.broker_epoch:
            return [Send(source, HeartbeatReply(request.broker_epoch, Error.STALE_BROKER_EPOCH, True, False))]
        seen_ms = max(now_ms, broker.last_seen_ms)
        self.state.brokers[broker_id] = replace(
            broker, last_seen_ms=seen_ms, applied_version=request.metadata_version
        )
        # Not before it has applied its own registration: its view of leaders is older than its process, and
        # it could act on an epoch that is over.
        if broker.state is BrokerState.FENCED and request.metadata_version >= broker.broker_epoch:
            self._unfence(broker_id)
        elif broker.state is BrokerState.ACTIVE and request.wants_shutdown:
            self._set_state(broker_id, BrokerState.SHUTTING_DOWN)
            self._drop(broker_id)
        now = self.state.brokers[broker_id].state
        # In the same step it cannot be granted: the change above is not announced yet (`is_dirty`).
        granted = now is BrokerState.SHUTTING_DOWN and self._has_left(broker_id)
        is_fenced = now is BrokerState.FENCED
        out: list[Effect] = [
            Send(source, HeartbeatReply(request.broker_epoch, Error.NONE, is_fenced, granted))
        ]
        # Announcements may be lost, heartbeats are repeated: each one is an opportunity to send what is
        # missing.
        if request.metadata_version < self.state.version:
            out.append(Send(source, self._updates_after(request.metadata_version)))
        return out

    def _unfence(self, broker_id: int) -> None:
        """Make a broker active again.

        Not in any ISR it left, but as leader where it is the one that may (A23).
        """
        self._set_state(broker_id, BrokerState.ACTIVE)
        for name, image in self.state.partitions.items():
            # Only leaderless partitions change. It does not return to any ISR by itself: it must catch up
            # first, and its leader proposes it.
            if image.leader == NO_LEADER:
                self._replace(name, election.next_image(image, image.isr, self._rules()))

    def _drop(self, broker_id: int, gone: Collection[int] = ()) -> None:
        """Remove a broker from every ISR, and elect new leaders where it led.

        `gone` brokers also lose their place in the ELR. No broker leaves a partition that was never led: no
        record can be missing, and no candidate would be left.
        """
        for name, image in self.state.partitions.items():
            if image.leader_epoch == NO_EPOCH:
                continue
            isr = tuple(member for member in image.isr if member != broker_id)
            self._replace(name, election.next_image(image, isr, self._rules(), gone))

    def _has_left(self, broker_id: int) -> bool:
        """Return whether a leaving broker leads nothing, and every active broker has applied this."""
        if any(image.leader == broker_id for image in self.state.partitions.values()):
            return False
        # Brokers that have not applied the new metadata still send it produces and fetches. Fenced ones do
        # not delay it.
        return not self.state.is_dirty and all(
            broker.applied_version >= self.state.version
            for other, broker in self.state.brokers.items()
            if broker.state is BrokerState.ACTIVE and other != broker_id
        )

    def _is_silent(self, broker: Registration, now_ms: int) -> bool:
        return now_ms - broker.last_seen_ms > self.state.config.session_timeout_ms

    def _set_state(self, broker_id: int, state: BrokerState) -> None:
        self.state.brokers[broker_id] = replace(self.state.brokers[broker_id], state=state)
        self.state.is_dirty = True

    def create_partition(self, name: str, replicas: tuple[int, ...]) -> None:
        """Create a partition whose ISR is all its replicas; it gets a leader when one of them is active."""
        image = PartitionImage(replicas, NO_LEADER, -1, 0, replicas)
        self.state.partitions[name] = election.next_image(image, replicas, self._rules())
        self._remember()

    def create(self, partitions: Mapping[str, tuple[int, ...]]) -> list[Effect]:
        """Create partitions, each with its replicas, and announce them; the ISR has those that are active.

        A replica may have the log of a deleted partition of this name: its broker is away, or has died since
        its last heartbeat.  The first leader epoch is above all of that log's, so that it is truncated.
        """
        rules = self._rules()
        for name, replicas in partitions.items():
            isr = tuple(replica for replica in replicas if replica in rules.active)
            version = self.state.version + 1
            image = PartitionImage(replicas, NO_LEADER, -1, 0, isr or replicas, created=version)
            placed = election.next_image(image, image.isr, rules)
            if isr:
                # Each leader epoch was announced in a version of its own.
                placed = replace(placed, leader_epoch=version)
            self.state.partitions[name] = placed
        return self._announced()

    def delete(self, partitions: Collection[str]) -> list[Effect]:
        """Delete partitions with all their records, and announce it in two versions of the metadata."""
        # First without a replica, so that every leader answers who waits, and every replica deletes its log.
        for name in partitions:
            old = self.state.partitions[name]
            epochs = old.leader_epoch + 1, old.partition_epoch + 1
            self.state.partitions[name] = PartitionImage((), NO_LEADER, *epochs, ())
        out = self._announced()
        for name in partitions:
            del self.state.partitions[name]
        return out + self._announced()

    def _announced(self) -> list[Effect]:
        out: list[Effect] = []
        self._announce(out)
        return out

    def alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionReply:
        """Check a leader's ISR proposal, in Kafka's order of checks, and apply it if it passes (A12)."""
        image = self.state.partitions.get(request.partition)
        error = self.check_proposal(image, request)
        if image is None or error is not Error.NONE:
            return AlterPartitionReply(request.correlation, error)
        isr = tuple(member for member, _ in request.new_isr)
        # An equal ISR is granted without a change: a retry of a proposal that succeeded must succeed too.
        if set(isr) != set(image.isr) or image.is_recovering:
            # In assignment order, since elections prefer earlier replicas.
            ordered = tuple(member for member in image.replicas if member in isr)
            recovered = replace(image, is_recovering=request.is_recovering)
            self._replace(
                request.partition,
                replace(
                    election.next_image(recovered, ordered, self._rules()),
                    # One step, whatever the election adds: the leader compares the reply's epoch with its
                    # own.
                    partition_epoch=image.partition_epoch + 1,
                ),
            )
        new = self.state.partitions[request.partition]
        # The ISR may have completed a reassignment that removes the leader, which learns this by metadata.
        if new.leader != request.broker_id:
            return AlterPartitionReply(request.correlation, Error.NEW_LEADER_ELECTED)
        return AlterPartitionReply(
            request.correlation, Error.NONE, new.leader_epoch, new.partition_epoch, new.isr
        )

    def check_proposal(self, image: PartitionImage | None, request: AlterPartitionRequest) -> Error:
        """Return the first reason to refuse a proposal (A12)."""
        sender = self.state.brokers.get(request.broker_id)
        rules = self.state.protocol
        # The order of the checks is Kafka's, because each error has its own reaction at the leader: roll
        # back, wait for metadata, or retry (A13).
        if sender is None or (rules.checks_broker_epoch and sender.broker_epoch != request.broker_epoch):
            return Error.STALE_BROKER_EPOCH
        if image is None:
            return Error.UNKNOWN_TOPIC_OR_PARTITION
        error = self._check_epochs(image, request)
        if error is not Error.NONE:
            return error
        members = Counter(member for member, _ in request.new_isr)
        is_set = bool(members) and max(members.values()) == 1
        # A leader outside its ISR could be replaced by one that lacks its records.
        if not is_set or not set(members) <= set(image.replicas) or image.leader not in members:
            return Error.INVALID_REQUEST
        # Recovering is left, never entered, by a proposal: only an election can make a log doubtful.
        if request.is_recovering and (len(members) > 1 or not image.is_recovering):
            return Error.INVALID_REQUEST
        if not all(self._may_join(member, epoch) for member, epoch in request.new_isr):
            return Error.INELIGIBLE_REPLICA
        return Error.NONE

    def _check_epochs(self, image: PartitionImage, request: AlterPartitionRequest) -> Error:
        """Compare a proposal's epochs with the partition's: the compare-and-set that excludes zombies."""
        checks = self.state.protocol.checks_partition_epoch
        # A leader with newer metadata than the controller can only mean that this controller is behind.
        is_ahead = request.partition_epoch > image.partition_epoch and checks
        if request.leader_epoch > image.leader_epoch or is_ahead:
            return Error.NOT_CONTROLLER
        if request.leader_epoch < image.leader_epoch:
            return Error.FENCED_LEADER_EPOCH
        if request.broker_id != image.leader:
            return Error.INVALID_REQUEST
        # Computed from an ISR that is no more. Granting it could bring back a member that was removed in
        # between (B19).
        if request.partition_epoch < image.partition_epoch and checks:
            return Error.INVALID_UPDATE_VERSION
        return Error.NONE

    def _may_join(self, member: int, broker_epoch: int) -> bool:
        """Return whether a member's proposed incarnation is registered and active (KIP-841, KIP-903)."""
        broker = self.state.brokers.get(member)
        rules = self.state.protocol
        if broker is None:
            return False
        if rules.checks_fenced and broker.state is not BrokerState.ACTIVE:
            return False
        return not rules.checks_broker_epoch or broker_epoch in (-1, broker.broker_epoch)

    def elect(self, request: ElectRequest) -> Error:
        """Hold the election that an operator requests."""
        image = self.state.partitions.get(request.partition)
        if image is None:
            return Error.UNKNOWN_TOPIC_OR_PARTITION
        if not request.is_unclean:
            # The same object means that nothing can be done, and the error gives the reason.
            preferred = election.prefer(image, self._rules())
            if preferred is image:
                needed = image.leader != image.replicas[0]
                return Error.PREFERRED_LEADER_NOT_AVAILABLE if needed else Error.ELECTION_NOT_NEEDED
            self._replace(request.partition, preferred)
            return Error.NONE
        # An unclean election of a partition that has a leader would only lose records.
        if image.leader != NO_LEADER:
            return Error.ELECTION_NOT_NEEDED
        rules = replace(self._rules(), protocol=replace(self.state.protocol, unclean_election=True))
        self._replace(request.partition, election.next_image(image, image.isr, rules))
        led = self.state.partitions[request.partition].leader != NO_LEADER
        return Error.NONE if led else Error.ELIGIBLE_LEADERS_NOT_AVAILABLE

    def configure(self, request: ConfigureRequest) -> Error:
        """Change min.insync.replicas of a partition, as an operator requests."""
        image = self.state.partitions.get(request.partition)
        if image is None:
            return Error.UNKNOWN_TOPIC_OR_PARTITION
        if request.min_isr < 1:
            return Error.INVALID_REQUEST
        self._replace(request.partition, election.reconfigure(image, request.min_isr))
        return Error.NONE

    def reassign(self, request: ReassignRequest) -> Error:
        """Start, override or cancel a reassignment, as an operator requests (A34)."""
        image = self.state.partitions.get(request.partition)
        if image is None:
            return Error.UNKNOWN_TOPIC_OR_PARTITION
        error = reassignment.check(image, request.target, self.state.brokers, self.state.protocol)
        if error is Error.NONE:
            wanted = reassignment.requested(image, request.target, self.state.protocol)
            self._replace(request.partition, election.changed(image, wanted, self._rules()))
        return error

    def _replace(self, name: str, image: PartitionImage) -> None:
        if image != self.state.partitions[name]:
            self.state.partitions[name] = image
            self.state.is_dirty = True

    def _rules(self) -> Rules:
        active = [b for b, broker in self.state.brokers.items() if broker.state is BrokerState.ACTIVE]
        return Rules(self.state.protocol, self.state.config.min_isr, active)

    def _image(self, version: int) -> MetadataImage:
        brokers = {b: BrokerImage(r.broker_epoch, r.state) for b, r in sorted(self.state.brokers.items())}
        return MetadataImage(version, dict(self.state.partitions), brokers)

    def _remember(self) -> None:
        """Record everything that changed in this step as one metadata version."""
        self.state.history.append(self._image(self.state.version + 1))
        self.state.is_dirty = False
        # A broker that is further behind gets a snapshot, as with KRaft; memory stays bounded.
        del self.state.history[: -self.state.config.metadata_history]

    def _announce(self, out: list[Effect]) -> None:
        """Send the newest version to every broker; a broker that missed one requests it."""
        self._remember()
        update = MetadataUpdate((self.state.history[-1],))
        out.extend(Send(broker_id, update) for broker_id in sorted(self.state.brokers))

    def _updates_after(self, version: int) -> MetadataUpdate:
        """Return the versions after `version`, or only the latest when the older ones are no longer kept."""
        later = tuple(image for image in self.state.history if image.version > version)
        # A gap means that the versions after the broker's own are forgotten: part of a history is worse than
        # a snapshot, because it looks whole.
        if version < 0 or (later and later[0].version != version + 1):
            return MetadataUpdate((self.state.history[-1],))
        return MetadataUpdate(later)
