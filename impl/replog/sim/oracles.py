"""What must be true of a running cluster, whatever happens to it: Kafka's promises, no specification.

    hw-within-log        HW never passes the LEO                                               (P1)
    hw-monotone          within one leadership HW never falls                                  (I2, P10)
    committed-agree      every replica's prefix below its HW is the committed prefix           (P7)
    committed-copies     what becomes committed is on min.insync.replicas disks                (I16)
    isr-complete         every live member of the controller's ISR holds all that is committed (P2)
    leader-complete      a new leader holds all that is committed                              (P3)
    one-leader           one leader per leader epoch                                           (P14)
    log-matching         same epoch at the same offset: same record, same prefix               (P8)
    ack-after-commit     an acknowledged (acks=all) record is in the committed prefix          (P11)
    reads-committed      a consumer reads only the committed prefix, the same each time        (P9)
    no-duplicate         an idempotent producer's record is in the log once, in order          (P15, P16)
    never-gives-up       a retried batch of an idempotent producer is never refused for good    (A2)
    flushed-survives     a power loss takes nothing that was flushed
    disk-is-log          what a process has in memory is what its disk would give back

The committed prefix is a ghost: the longest prefix any leader ever had below its HW.  A broken oracle raises
`ViolationError`, which names it; `converged` is the liveness half, asked once faults have stopped (P22-P26).

Cost: the checks after each step look only at what changed, the comparisons of whole logs are for elections,
samples and the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from replog.core.logview import LogView
from replog.core.state import FetchPhase, ReplicaState
from replog.core.types import NO_LEADER, Role
from replog.sim.world import Node, Observer, World

Cell = tuple[int, bytes]
"""One record as oracles see it: the epoch it was written in, and its content."""


class ViolationError(Exception):
    """A promise was broken; `oracle` is its name in the table above."""

    def __init__(self, oracle: str, detail: str) -> None:
        super().__init__(f"{oracle}: {detail}")
        self.oracle = oracle


@dataclass(slots=True)
class Seen:
    """What was last seen of one node, to look only at what is new."""

    incarnation: int = -1
    leader_epoch: int = -1
    is_leader: bool = False
    hw: int = 0


@dataclass(slots=True)
class Figures:
    """What the cluster went through, as seen from outside."""

    elections: int = 0
    isr_changes: int = 0
    committed: int = 0
    acknowledged: int = 0
    consumed: int = 0
    truncated_logs: int = 0


def cells(log: LogView, start: int, end: int) -> list[Cell]:
    """Return the records in [start, end) of a log that has them, looking from the end of the log."""
    found: list[list[Cell]] = []
    for batch in reversed(log.batches):
        if batch.next_offset <= start:
            break
        low, high = max(start, batch.base_offset), min(end, batch.next_offset)
        if low < high:
            found.append([(batch.epoch, batch.body)] * (high - low))
    return [cell for group in reversed(found) for cell in group]


@dataclass(slots=True)
class Oracles(Observer):
    """The watch over one world; `lossy` are the nodes that have lost data and are not back in the ISR."""

    min_isr: int
    committed: list[Cell] = field(default_factory=list)
    figures: Figures = field(default_factory=Figures)
    lossy: set[int] = field(default_factory=set)
    seen: dict[int, Seen] = field(default_factory=dict)
    leaders: dict[int, int] = field(default_factory=dict)
    partition_epoch: int = -1

    # -- after every step

    def changed(self, world: World, node: Node) -> None:
        """Check a node that has handled an event."""
        if node.broker is None:
            return
        state = node.broker.replica.state
        log = state.log
        if log.hw > log.leo:
            raise ViolationError("hw-within-log", f"broker {node.broker_id}: HW {log.hw}, LEO {log.leo}")
        seen = self.seen.get(node.broker_id)
        if seen is None or seen.incarnation != node.incarnation:
            seen = self.seen[node.broker_id] = Seen(node.incarnation)
        is_leader = state.role is Role.LEADER
        if is_leader and (not seen.is_leader or seen.leader_epoch != state.leader_epoch):
            self._check_new_leader(world, state)
        elif is_leader and log.hw < seen.hw:
            raise ViolationError("hw-monotone", f"leader {node.broker_id}: HW {seen.hw} -> {log.hw}")
        if log.hw != seen.hw:
            self._check_hw(world, state, seen)
        seen.is_leader, seen.leader_epoch, seen.hw = is_leader, state.leader_epoch, log.hw

    def decided(self, world: World) -> None:
        """Check the controller's decision, if there is a new one."""
        image = world.image
        if image.partition_epoch == self.partition_epoch:
            return
        self.partition_epoch = image.partition_epoch
        self.figures.isr_changes += 1
        self.lossy -= {member for member in image.isr if self.is_current(world, member)}
        if image.leader != NO_LEADER:
            known = self.leaders.setdefault(image.leader_epoch, image.leader)
            if known != image.leader:
                raise ViolationError("one-leader", f"epoch {image.leader_epoch}: {known} and {image.leader}")
            self.figures.elections = len(self.leaders)
        self._check_isr(world)

    def _check_new_leader(self, world: World, state: ReplicaState) -> None:
        """Check that the leader of the controller's current epoch begins with everything committed."""
        if world.image.leader_epoch != state.leader_epoch:
            return
        if cells(state.log, 0, len(self.committed)) != self.committed:
            raise ViolationError(
                "leader-complete",
                f"leader {state.broker_id} of epoch {state.leader_epoch} has LEO {state.log.leo},"
                f" {len(self.committed)} records are committed{self._difference(state.log)}",
            )

    def _check_hw(self, world: World, state: ReplicaState, seen: Seen) -> None:
        """Compare what a replica newly believes committed, and let a leader extend the committed prefix.

        Who led before this step counts as a leader: it may have applied two metadata versions at once.
        """
        log, known = state.log, len(self.committed)
        start = min(seen.hw, log.hw, known)
        new = cells(log, start, log.hw)
        if new[: known - start] != self.committed[start : log.hw]:
            raise ViolationError("committed-agree", f"broker {state.broker_id}{self._difference(log)}")
        if log.hw <= known:
            return
        if state.role is not Role.LEADER and not seen.is_leader:
            raise ViolationError(
                "committed-agree", f"follower {state.broker_id}: HW {log.hw}, only {known} are committed"
            )
        self.committed.extend(new[known - start :])
        self.figures.committed = len(self.committed)
        self._check_copies(world)
        self._check_isr(world)

    def _check_copies(self, world: World) -> None:
        """Count the disks that hold the whole committed prefix; one that lost it later did hold it."""
        holders = 0
        for node in world.nodes.values():
            end = node.storage.end() if node.broker is None else node.broker.replica.state.log.leo
            holders += end >= len(self.committed) or node.broker_id in self.lossy
        if holders < self.min_isr:
            raise ViolationError(
                "committed-copies", f"{holders} of {self.min_isr} disks hold the committed prefix"
            )

    def _check_isr(self, world: World) -> None:
        """Check that whoever may be elected next, and lives, has everything."""
        for member in world.image.isr:
            if not self.is_current(world, member):
                continue
            broker = world.nodes[member].broker
            assert broker is not None
            log = broker.replica.state.log
            if log.leo < len(self.committed):
                raise ViolationError(
                    "isr-complete",
                    f"ISR member {member} has LEO {log.leo}, {len(self.committed)} records are committed",
                )

    def is_current(self, world: World, member: int) -> bool:
        """Tell whether a member runs, as the incarnation the controller means."""
        broker = world.nodes[member].broker
        known = world.controller.state.brokers.get(member)
        return (
            broker is not None and known is not None and broker.membership.broker_epoch == known.broker_epoch
        )

    def _difference(self, log: LogView) -> str:
        """Return, for a message, the first committed record that a log does not have."""
        own = cells(log, 0, log.leo)
        for offset, (mine, theirs) in enumerate(zip(own, self.committed, strict=False)):
            if mine != theirs:
                return f"; offset {offset} is {mine}, committed is {theirs}"
        return ""

    # -- clients

    def acknowledged(self, base_offset: int, count: int, body: bytes) -> None:
        """Check a positive answer to acks=all."""
        self.figures.acknowledged += count
        for offset in range(base_offset, base_offset + count):
            if offset >= len(self.committed) or self.committed[offset][1] != body:
                raise ViolationError("ack-after-commit", f"{body!r} acknowledged at {offset}")

    def consumed(self, offset: int, cell: Cell) -> None:
        """Check one record given to a consumer."""
        self.figures.consumed += 1
        if offset >= len(self.committed):
            raise ViolationError("reads-committed", f"a consumer read offset {offset}, not committed")
        if self.committed[offset] != cell:
            raise ViolationError(
                "reads-committed",
                f"a consumer read {cell} at {offset}, committed is {self.committed[offset]}",
            )

    # -- whole logs

    def compare_logs(self, world: World) -> None:
        """Compare every two logs.

        Where they have the same epoch at an offset, they agree up to there (P8).
        """
        logs = [
            (n.broker_id, cells(n.broker.replica.state.log, 0, n.broker.replica.state.log.leo))
            for n in world.running()
            if n.broker is not None
        ]
        for i, (left, ours) in enumerate(logs):
            for right, theirs in logs[i + 1 :]:
                _match(left, ours, right, theirs)

    def check_disks(self, world: World) -> None:
        """Check that every disk would give back what its process holds; reads copies, changes nothing."""
        for node in world.running():
            assert node.broker is not None
            log = node.broker.replica.state.log
            disk = node.storage.copy()
            disk.crash()
            found = disk.recover().log
            if cells(found, 0, found.leo) != cells(log, 0, log.leo):
                raise ViolationError(
                    "disk-is-log", f"broker {node.broker_id}: LEO {log.leo}, disk {found.leo}"
                )
            epochs = [
                entry for entry in log.epochs.entries if entry[1] < log.leo
            ]  # A28: a start drops the rest
            if found.epochs.entries != epochs:
                raise ViolationError("disk-is-log", f"broker {node.broker_id}: {epochs}, disk {found.epochs}")

    def durable(self, node: Node) -> list[Cell]:
        """Return the records that a power loss now must not take: those a running process has flushed."""
        if node.broker is None:
            return []
        log = node.broker.replica.state.log
        return cells(log, 0, min(node.storage.flushed(), log.leo))

    def check_kept(self, node: Node, kept: list[Cell]) -> None:
        """Check that a disk, re-opened after a power loss, begins with what was flushed."""
        found = node.storage.copy().recover().log
        if cells(found, 0, len(kept)) != kept:
            raise ViolationError(
                "flushed-survives",
                f"broker {node.broker_id}: {len(kept)} records flushed, LEO now {found.leo}",
            )

    def check_producers(self, log: LogView) -> None:
        """Check that idempotent batches (body b"...-<number>") are in the committed log once, in order."""
        last: dict[int, int] = {}
        for batch in log.batches:
            if batch.producer_id < 0 or batch.next_offset > len(self.committed):
                continue
            number = int(batch.body.rpartition(b"-")[2])
            if number <= last.get(batch.producer_id, -1):
                raise ViolationError("no-duplicate", f"{batch.body!r} after number {last[batch.producer_id]}")
            last[batch.producer_id] = number


def converged(world: World) -> str:
    """Return what is still missing until every replica is in the ISR with the same committed log.

    "" if nothing.
    """
    image = world.image
    if image.leader == NO_LEADER:
        return "no leader"
    if sorted(image.isr) != sorted(image.replicas):
        return f"ISR {image.isr}"
    leader = world.nodes[image.leader].broker
    if leader is None or leader.replica.state.role is not Role.LEADER:
        return f"{image.leader} does not lead yet"
    log = leader.replica.state.log
    for node in world.running():
        assert node.broker is not None
        state = node.broker.replica.state
        if state.leader_epoch != image.leader_epoch or state.log.hw != log.leo:
            return f"broker {node.broker_id}: epoch {state.leader_epoch}, HW {state.log.hw} of {log.leo}"
        if state.log.batches != log.batches:
            return f"the logs of {node.broker_id} and {image.leader} differ"
        if state.following is not None and state.following.phase is not FetchPhase.FETCHING:
            return f"broker {node.broker_id} is {state.following.phase.value}"
    return ""


def _match(left: int, ours: list[Cell], right: int, theirs: list[Cell]) -> None:
    for offset in range(min(len(ours), len(theirs)) - 1, -1, -1):
        if ours[offset][0] == theirs[offset][0]:
            if ours[: offset + 1] != theirs[: offset + 1]:
                raise ViolationError(
                    "log-matching", f"brokers {left} and {right} differ at or before offset {offset}"
                )
            return
