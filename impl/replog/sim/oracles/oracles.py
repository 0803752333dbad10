"""The oracles of a simulated cluster: every promise in `promises`, checked after each event.

A broken one raises `ViolationError`.  `checks` counts how often each was checked with something to compare:
an oracle that was never checked has not held.

Cost: the checks after each step read only the changes, the comparisons of whole logs are for elections,
samples and the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from replog.core.broker.state import ReplicaState
from replog.core.log.logview import LogView
from replog.core.types import NO_LEADER, Batch, PartitionImage, Role
from replog.sim.cluster.clients import ClientObserver
from replog.sim.cluster.views import AnyNode, AnyWorld, is_current
from replog.sim.cluster.world import Observer
from replog.sim.oracles.logs import Cell, cells, compare
from replog.sim.oracles.metadata import MetadataWatch
from replog.sim.oracles.promises import ViolationError


@dataclass(slots=True)
class LastState:
    """The last known state of one node, so that only changes are checked; `log` outlives the process.

    `batches` are those of the log, and outlive its deletion.
    """

    log: LogView
    incarnation: int = -1
    leader_epoch: int = -1
    is_leader: bool = False
    hw: int = 0
    batches: list[Batch] = field(default_factory=list)


@dataclass(slots=True)
class Figures:
    """The history of the cluster, as observed from outside.

    `elections` are leader epochs with a leader, `elr_elections` those of a member of the ELR,
    `unclean_elections` those of a broker outside ISR and ELR; `isr_changes` are changes of the set.
    `acknowledged` are records acknowledged with acks=all, `consumed` records given to consumers, those that
    were read again too.
    """

    elections: int = 0
    elr_elections: int = 0
    unclean_elections: int = 0
    isr_changes: int = 0
    committed: int = 0
    acknowledged: int = 0
    consumed: int = 0


@dataclass(slots=True)
class Oracles(Observer, ClientObserver):
    """The oracles of one world.

    `lossy` are the nodes that have lost data and are not back in the ISR, with the LEO they had before.
    """

    min_isr: int
    committed: list[Cell] = field(default_factory=list)
    figures: Figures = field(default_factory=Figures)
    checks: Counter[str] = field(default_factory=Counter)
    lossy: dict[int, int] = field(default_factory=dict)
    seen: dict[int, LastState] = field(default_factory=dict)
    leaders: dict[int, int] = field(default_factory=dict)
    removed: dict[int, LogView] = field(default_factory=dict)
    """The log that a broker deleted, as a reassignment requires."""
    may_start: int = 0
    """Where a log may start: as far as anybody has requested that records go."""
    deleted: int = 0
    """Where every log starts that may be led, as clients have the answer."""
    image: PartitionImage | None = None
    metadata: MetadataWatch = field(default_factory=MetadataWatch)

    def changed(self, world: AnyWorld, node: AnyNode) -> None:
        """Check a node that has handled an event."""
        if node.broker is None:
            return
        state = node.broker.replica.state
        log = state.log
        self.checks["hw-within-log"] += 1
        if log.hw > log.leo:
            raise ViolationError("hw-within-log", f"broker {node.broker_id}: HW {log.hw}, LEO {log.leo}")
        self._check_start(world, node.broker_id, log)
        seen = self.seen.get(node.broker_id)
        if seen is None or seen.incarnation != node.incarnation:
            seen = self.seen[node.broker_id] = LastState(log, node.incarnation)
        if state.role is not Role.NONE:
            self.removed.pop(node.broker_id, None)
        elif state.partition_epoch >= 0 and node.broker_id not in self.removed:
            self.removed[node.broker_id] = LogView(seen.batches)
        is_leader = state.role is Role.LEADER
        if is_leader and (not seen.is_leader or seen.leader_epoch != state.leader_epoch):
            self._check_new_leader(world, state)
        elif is_leader:
            self.checks["hw-monotone"] += 1
            if log.hw < seen.hw:
                raise ViolationError("hw-monotone", f"leader {node.broker_id}: HW {seen.hw} -> {log.hw}")
        # Only on a change. Comparing whole prefixes after each event would make a run quadratic.
        if log.hw != seen.hw:
            self._check_hw(world, state, seen)
        seen.is_leader, seen.leader_epoch, seen.log = is_leader, state.leader_epoch, log
        seen.hw, seen.batches = log.hw, log.batches

    def _check_start(self, world: AnyWorld, broker: int, log: LogView) -> None:
        """Compare the start of a log with the requests, and with acknowledged deletions."""
        self.checks["log-start"] += 1
        may_lead = broker in {*world.image.isr, *world.image.elr} and is_current(world, broker)
        least = self.deleted if may_lead else 0
        if not least <= log.log_start <= self.may_start:
            wrong = f"broker {broker} starts at {log.log_start}, not in {least} to {self.may_start}"
            raise ViolationError("log-start", wrong)

    def decided(self, world: AnyWorld) -> None:
        """Check the controller's decision, if there is a new one, and the logs of several controllers."""
        if world.quorum is not None:
            self.metadata.decided(world.quorum, self.checks)
        old, image = self.image, world.image
        # By identity: images are frozen, and every change makes a new one.
        if image is old:
            return
        self.image = image
        # Back in the ISR it has everything again; what it lost no longer excuses a missing copy.
        for member in [m for m in self.lossy if m in image.isr and is_current(world, m)]:
            del self.lossy[member]
        if image.leader != NO_LEADER:
            self._check_one_leader(image.leader_epoch, image.leader)
        self._check_assignment(image)
        if old is not None:
            self.figures.isr_changes += set(old.isr) != set(image.isr)
            is_alone = image.isr == (image.leader,)  # else the change that put it in the ISR elected it, too
            is_new = image.leader_epoch != old.leader_epoch and image.leader not in {NO_LEADER, *old.isr}
            if is_new and is_alone:
                is_eligible = image.leader in old.elr
                self.figures.elr_elections += is_eligible
                self.figures.unclean_elections += not is_eligible
        self._check_isr(world)

    def _check_assignment(self, image: PartitionImage) -> None:
        self.checks["in-assignment"] += 1
        replicas, adding, removing = set(image.replicas), set(image.adding), set(image.removing)
        named = {*image.isr, *image.elr, *adding, *removing, *({image.leader} - {NO_LEADER})}
        is_led_well = image.leader in {NO_LEADER, *image.isr}
        if not named <= replicas or adding & removing or set(image.isr) & set(image.elr) or not is_led_well:
            raise ViolationError("in-assignment", str(image))

    def _check_one_leader(self, epoch: int, leader: int) -> None:
        self.checks["one-leader"] += 1
        known = self.leaders.setdefault(epoch, leader)
        if known != leader:
            raise ViolationError("one-leader", f"epoch {epoch}: {known} and {leader}")
        self.figures.elections = len(self.leaders)

    def _check_new_leader(self, world: AnyWorld, state: ReplicaState) -> None:
        """Check that a leader is that of its epoch, and that the current one has all committed records."""
        self._check_one_leader(state.leader_epoch, state.broker_id)
        # A leader of an old epoch may lack records of newer ones. It is fenced, and nothing of it counts.
        if world.image.leader_epoch != state.leader_epoch:
            return
        self.checks["leader-complete"] += bool(self.committed)
        start = state.log.log_start
        if cells(state.log, start, len(self.committed)) != self.committed[start:]:
            raise ViolationError(
                "leader-complete",
                f"leader {state.broker_id} of epoch {state.leader_epoch} has LEO {state.log.leo},"
                f" {len(self.committed)} records are committed{self._difference(state.log)}",
            )

    def _check_hw(self, world: AnyWorld, state: ReplicaState, seen: LastState) -> None:
        """Compare the records below a replica's new HW; for a leader, extend the committed prefix.

        Who led before this step counts as a leader: it may have applied two metadata versions at once.
        """
        log, known = state.log, len(self.committed)
        # From the lower of both: a follower's HW may fall, and rise again over other records.
        start = max(min(seen.hw, log.hw, known), log.log_start)
        new = cells(log, start, log.hw)
        self.checks["committed-agree"] += log.hw > start
        if new[: max(known - start, 0)] != self.committed[start : log.hw]:
            raise ViolationError("committed-agree", f"broker {state.broker_id}{self._difference(log)}")
        if log.hw <= known:
            return
        if state.role is not Role.LEADER and not seen.is_leader:
            raise ViolationError(
                "committed-agree", f"follower {state.broker_id}: HW {log.hw}, only {known} are committed"
            )
        # The ghost grows here only: committed is whatever a leader ever had below its HW, whoever leads now.
        self.committed.extend(new[known - start :])
        self.figures.committed = len(self.committed)
        self._check_copies(world)
        self._check_isr(world)

    def _check_copies(self, world: AnyWorld) -> None:
        """Count the disks with the committed prefix; a disk that lost it later counts as having had it."""
        self.checks["committed-copies"] += 1
        known = len(self.committed)
        holders = sum(
            self._holds(node)
            # Who had it and lost it later did hold it.
            or self.lossy.get(node.broker_id, -1) >= known
            # So did who deleted it. By content: its log may have had other records at the end, and would
            # count as a copy of whatever is committed there later.
            or self._has_last(self.removed.get(node.broker_id))
            for node in world.nodes.values()
        )
        if holders < self.min_isr:
            raise ViolationError(
                "committed-copies", f"{holders} of {self.min_isr} disks hold the committed prefix"
            )

    def _holds(self, node: AnyNode) -> bool:
        """Return whether a node, dead or alive, has the last committed record; the log implies the rest."""
        known = len(self.committed)
        if node.broker is not None:
            return self._has_last(node.broker.replica.state.log)
        seen = self.seen.get(node.broker_id)
        return seen is not None and node.storage.end() >= known and self._has_last(seen.log)

    def _has_last(self, log: LogView | None) -> bool:
        """Return whether a log has the last committed record."""
        known = len(self.committed)
        if log is None or log.log_start >= known:
            return log is not None
        return cells(log, known - 1, known) == self.committed[-1:]

    def _check_isr(self, world: AnyWorld) -> None:
        """Check that all live replicas that may be elected next have all committed records."""
        if not self.committed:
            return
        for member in (*world.image.isr, *world.image.elr):
            # A dead member is checked when it is back: what counts is what it has when it may be elected.
            if not is_current(world, member):
                continue
            self.checks["isr-complete"] += 1
            broker = world.nodes[member].broker
            assert broker is not None
            log = broker.replica.state.log
            group = "ISR" if member in world.image.isr else "ELR"
            self._check_start(world, member, log)
            if not self._holds(world.nodes[member]):
                raise ViolationError(
                    "isr-complete",
                    f"{group} member {member} has LEO {log.leo}, {len(self.committed)} records are committed"
                    f"{self._difference(log)}",
                )

    def _difference(self, log: LogView) -> str:
        """Return, for a message, the first committed record that a log lacks."""
        start = log.log_start
        pairs = zip(cells(log, start, log.leo), self.committed[start:], strict=False)
        for offset, (mine, theirs) in enumerate(pairs, start):
            if mine != theirs:
                return f"; offset {offset} is {mine}, committed is {theirs}"
        return ""

    def acknowledged(self, base_offset: int, count: int, body: bytes) -> None:
        """Check a positive answer to a produce with acks=all."""
        self.figures.acknowledged += count
        self.checks["ack-after-commit"] += 1
        for offset in range(base_offset, base_offset + count):
            if offset >= len(self.committed) or self.committed[offset][1] != body:
                raise ViolationError("ack-after-commit", f"{body!r} acknowledged at {offset}")

    def requested(self, offset: int) -> None:
        """Note that records before `offset` may be deleted from now on."""
        self.may_start = max(self.may_start, offset)

    def gone(self, low_watermark: int) -> None:
        """Note the answer that records before an offset are deleted in every log that may be read later."""
        self.deleted = max(self.deleted, low_watermark)

    def consumed(self, offset: int, cell: Cell) -> None:
        """Check one record delivered to a consumer."""
        self.figures.consumed += 1
        self.checks["reads-committed"] += 1
        if offset >= len(self.committed):
            raise ViolationError("reads-committed", f"a consumer read offset {offset}, not committed")
        if self.committed[offset] != cell:
            raise ViolationError(
                "reads-committed",
                f"a consumer read {cell} at {offset}, committed is {self.committed[offset]}",
            )

    def compare_logs(self, world: AnyWorld) -> None:
        """Compare all pairs of logs.

        Where they have the same epoch at an offset, they agree up to there (P8).
        """
        logs = [(n.broker_id, n.broker.replica.state.log) for n in world.running() if n.broker is not None]
        for i, ours in enumerate(logs):
            for theirs in logs[i + 1 :]:
                self.checks["log-matching"] += compare(ours, theirs)

    def check_disks(self, world: AnyWorld) -> None:
        """Check that every disk would recover the state of its process; reads copies, changes nothing."""
        for node in world.running():
            assert node.broker is not None
            log = node.broker.replica.state.log
            disk = node.storage.copy()
            # The handles of the copy are those of a running process; a start begins without any.
            disk.crash()
            recovered = disk.recover().log
            self.checks["disk-is-log"] += log.leo > 0
            start = log.log_start
            is_same = cells(recovered, start, recovered.leo) == cells(log, start, log.leo)
            if recovered.log_start != start or not is_same:
                raise ViolationError(
                    "disk-is-log",
                    f"broker {node.broker_id}: {start} to {log.leo},"
                    f" disk {recovered.log_start} to {recovered.leo}",
                )
            epochs = [
                entry for entry in log.epochs.entries if entry[1] < log.leo
            ]  # A28: a start drops the rest
            if recovered.epochs.entries != epochs:
                raise ViolationError(
                    "disk-is-log", f"broker {node.broker_id}: {epochs}, disk {recovered.epochs.entries}"
                )

    def promise_of(self, node: AnyNode) -> Callable[[], None]:
        """Return the check that an imminent power loss loses no flushed record."""
        kept = self.durable(node)
        return lambda: self.check_kept(node, kept)

    def durable(self, node: AnyNode) -> tuple[int, list[Cell]]:
        """Return the records that a power loss now must not lose, and the offset of the first one.

        They are those flushed, also by a dead process.
        """
        broker = node.broker
        log = node.storage.copy().recover().log if broker is None else broker.replica.state.log
        return log.log_start, cells(log, log.log_start, min(node.storage.flushed(), log.leo))

    def check_kept(self, node: AnyNode, durable: tuple[int, list[Cell]]) -> None:
        """Check that a disk, reopened after a power loss, begins with the flushed records."""
        start, kept = durable
        recovered = node.storage.copy().recover().log
        self.checks["flushed-survives"] += bool(kept)
        if recovered.log_start > start or cells(recovered, start, start + len(kept)) != kept:
            raise ViolationError(
                "flushed-survives",
                f"broker {node.broker_id}: {len(kept)} records flushed, LEO now {recovered.leo}",
            )

    def check_producers(self, log: LogView) -> None:
        """Check that idempotent batches (body b"...-<number>") are in the committed log once, in order."""
        last: dict[int, int] = {}
        for batch in log.batches:
            if batch.producer_id < 0 or batch.next_offset > len(self.committed):
                continue
            self.checks["no-duplicate"] += 1
            number = int(batch.content.rpartition(b"-")[2])
            if number <= last.get(batch.producer_id, -1):
                raise ViolationError("no-duplicate", f"{batch.body!r} after number {last[batch.producer_id]}")
            last[batch.producer_id] = number
