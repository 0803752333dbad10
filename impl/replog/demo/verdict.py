"""The verdict on the acknowledged records: the clients' ledgers compared with the leader's log and the disks.

    lost        acknowledged, and the leader does not have it at its offset
    hidden      acknowledged, in the leader's log, not below its HW: there, but not readable yet
    unread      a consumer had read it, and the leader does not have it
    diverged    two disks hold different records at one offset
    behind      a disk whose log ends before an acknowledged record: under-replicated, not lost

Without a leader nothing can be read, and the loss depends on who will lead; what no disk has is
lost whoever that is.  A record is its content; the same content written in two leader epochs is no
divergence to a reader, and is named apart.

Not here: where the ledgers are from (`clients`), and when everything is stopped and read (`story`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from replog.core.types import NO_LEADER

LedgerEntry = tuple[int, bytes]
"""An offset and what is, or was said to be, there."""
Log = Mapping[int, LedgerEntry]
"""A disk: offset to the leader epoch and content of the record there."""
MAX_RANGES = 4


@dataclass(frozen=True, slots=True)
class Ending:
    """The final state of the cluster: its leader, the leader's HW, and the disk of each broker."""

    leader: int
    hw: int
    logs: Sequence[Log]

    def has(self, broker: int, record: LedgerEntry) -> bool:
        """Return whether a broker's disk has a record at its offset."""
        offset, body = record
        return offset in self.logs[broker] and self.logs[broker][offset][1] == body

    def holders(self, record: LedgerEntry) -> int:
        """Return the number of disks that have a record at its offset."""
        return sum(self.has(broker, record) for broker in range(len(self.logs)))


@dataclass(frozen=True, slots=True)
class Verdict:
    """See the module's docstring.

    `kept` of the lost are on another disk, `nowhere` are acknowledged records on no disk.
    """

    leader: int
    promised: int
    brokers: int
    lost: tuple[int, ...] = ()
    kept: int = 0
    nowhere: tuple[int, ...] = ()
    hidden: tuple[int, ...] = ()
    unread: tuple[int, ...] = ()
    diverged: tuple[int, ...] = ()
    epochs_differ: tuple[int, ...] = ()
    behind: tuple[tuple[int, int], ...] = ()

    @property
    def is_well(self) -> bool:
        """Return whether there is a leader with all acknowledged records, and no two brokers disagree."""
        return self.leader != NO_LEADER and not (self.lost or self.unread or self.diverged)


def judge(promised: Iterable[LedgerEntry], read: Iterable[LedgerEntry], end: Ending) -> Verdict:
    """Compare acknowledged records, and records delivered to a consumer, with the final state."""
    promises = sorted(promised)
    brokers = range(len(end.logs))
    offsets = sorted(set().union(*end.logs))
    ends = [max(log, default=-1) + 1 for log in end.logs]
    # By the end of a log alone: what is missing in its middle is lost or diverged, and counted there.
    short = [(broker, sum(offset >= ends[broker] for offset, _ in promises)) for broker in brokers]
    bodies = {o: {log[o][1] for log in end.logs if o in log} for o in offsets}
    epochs = {o: {log[o][0] for log in end.logs if o in log} for o in offsets}
    is_led = end.leader != NO_LEADER
    # Without a leader nothing is lost yet: it depends on who will be elected.
    lost = [record for record in promises if is_led and not end.has(end.leader, record)]
    there = [record for record in promises if is_led and end.has(end.leader, record)]
    return Verdict(
        end.leader,
        len(promises),
        len(end.logs),
        lost=tuple(offset for offset, _ in lost),
        kept=sum(end.holders(record) > 0 for record in lost),
        nowhere=tuple(record[0] for record in promises if not end.holders(record)),
        hidden=tuple(offset for offset, _ in there if offset >= end.hw),
        unread=tuple(r[0] for r in sorted(read) if is_led and not end.has(end.leader, r)),
        diverged=tuple(o for o in offsets if len(bodies[o]) > 1),
        epochs_differ=tuple(o for o in offsets if len(bodies[o]) == 1 < len(epochs[o])),
        behind=tuple((broker, missing) for broker, missing in short if missing and broker != end.leader),
    )


def verdict_lines(verdict: Verdict) -> list[str]:
    """Report whether the promises were kept, in lines of at most 79 columns."""
    lines = _promises(verdict)
    if verdict.hidden:
        lines.append(f"At or above the leader's HW, not readable yet: {_at(verdict.hidden)}.")
    if verdict.unread:
        lines.append(f"A consumer had read {_records(len(verdict.unread))} that the leader does not have.")
    if verdict.diverged:
        lines.append(f"DIVERGED: at {_at(verdict.diverged)} the brokers hold different records.")
    if verdict.epochs_differ:
        lines.append(
            f"At {_at(verdict.epochs_differ)} they hold the same record, written in different leader epochs."
        )
    lines += [f"Broker {b} is behind: its log ends before {count} of them." for b, count in verdict.behind]
    return lines


def _promises(verdict: Verdict) -> list[str]:
    """Report how many acknowledged records the leader has."""
    every = f"{_records(verdict.promised)} acknowledged with acks=all"
    if verdict.leader == NO_LEADER:
        gone = f"LOST: {_of_them(len(verdict.nowhere))} on no disk ({_at(verdict.nowhere)})."
        return [f"NO LEADER: {every} cannot be read.", *([gone] if verdict.nowhere else [])]
    if verdict.lost:
        lines = [f"LOST: {len(verdict.lost)} of {every} ({_at(verdict.lost)})."]
        kept = f"{_of_them(verdict.kept)} still on the disk of another broker."
        return [*lines, kept] if verdict.kept else lines
    if verdict.diverged or verdict.epochs_differ or verdict.behind:
        return [f"Broker {verdict.leader} leads, and has all {every}."]
    return [f"All {every} are on all {_number(verdict.brokers)} disks."]


def _records(count: int) -> str:
    return f"{count} record{'s' * (count != 1)}"


def _of_them(count: int) -> str:
    return f"{count} of them {'is' if count == 1 else 'are'}"


def _number(count: int) -> str:
    return {2: "two", 3: "three"}.get(count, str(count))


def _at(offsets: Sequence[int]) -> str:
    """Return offsets as ranges: `offset 7`, `offsets 3..5, 9`."""
    ranges: list[list[int]] = []
    for offset in sorted(set(offsets)):
        if ranges and ranges[-1][1] == offset - 1:
            ranges[-1][1] = offset
        else:
            ranges.append([offset, offset])
    shown = [str(low) if low == high else f"{low}..{high}" for low, high in ranges[:MAX_RANGES]]
    more = ", ..." if len(ranges) > MAX_RANGES else ""
    return f"offset{'s' * (len(set(offsets)) > 1)} {', '.join(shown)}{more}"
