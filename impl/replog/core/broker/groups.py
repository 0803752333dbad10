"""Consumer groups, reduced to delivery guarantees: one owner, a generation, committed offsets.

Theory: S59-S64, A31, A32 and example F6 of the project's Kafka reference.  A commit is itself a record of a
replicated log (`__consumer_offsets`), and so is a new generation: a group is a function of these records in
order, and moves to another coordinator by replaying them.

    poll, commit, process, crash  -> restart after m, m never processed   (at most once)
    poll, process, commit, crash  -> restart at m, m processed twice      (at least once)

Not here: assignment of partitions to members, heartbeats of members, and writing the log (`coordinator`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from replog.core.types import Batch, Error


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit: the group will continue at `offset` in `partition`."""

    group: str
    partition: str
    offset: int
    leader_epoch: int = -1

    def to_body(self) -> bytes:
        """Return the body of this commit's record in the log of groups."""
        return json.dumps(["commit", self.group, self.partition, self.offset, self.leader_epoch]).encode()


@dataclass(frozen=True, slots=True)
class Generation:
    """A group has a new owner, which fences every earlier one."""

    group: str
    number: int
    member: int

    def to_body(self) -> bytes:
        """Return the body of this generation's record in the log of groups."""
        return json.dumps(["generation", self.group, self.number, self.member]).encode()


def from_body(body: bytes) -> Commit | Generation:
    """Decode a record of the log of groups; ValueError if it is invalid."""
    match json.loads(body):
        case ["commit", str(group), str(partition), int(offset), int(leader_epoch)]:
            return Commit(group, partition, offset, leader_epoch)
        case ["generation", str(group), int(number), int(member)]:
            return Generation(group, number, member)
    raise ValueError(f"not a record of groups: {body!r}")


def records_of(batches: Iterable[Batch]) -> Iterator[tuple[int, Commit | Generation]]:
    """Yield the records of a log of groups, one a batch, each with the offset after it.

    What means nothing is ignored, as in Kafka: a newer broker may have written it.
    """
    for batch in batches:
        with suppress(ValueError):
            yield batch.next_offset, from_body(batch.content)


@dataclass(slots=True)
class Group:
    """A group's generation, its only member (-1: none), and the offset committed for each partition."""

    generation: int = 0
    member: int = -1
    committed: dict[str, Commit] = field(default_factory=dict)


@dataclass(slots=True)
class Groups:
    """All groups of one coordinator."""

    groups: dict[str, Group] = field(default_factory=dict)

    def copy(self) -> Groups:
        """Return an independent copy."""
        twins = {n: Group(g.generation, g.member, dict(g.committed)) for n, g in self.groups.items()}
        return Groups(twins)

    def join(self, name: str, member: int) -> Generation:
        """Make `member` the owner; return the new generation, for the log."""
        record = self.next_generation(name, member)
        self.take(record)
        return record

    def next_generation(self, name: str, member: int) -> Generation:
        """Return the generation in which `member` becomes the owner, once its record is in the log."""
        # Even for the same member: a restarted consumer must not commit what its earlier self had polled.
        group = self.groups.get(name)
        return Generation(name, 1 if group is None else group.generation + 1, member)

    def commit(self, commit: Commit, member: int, generation: int) -> Error:
        """Check a commit and apply it."""
        error = self.check(commit, member, generation)
        if error is Error.NONE:
            self.take(commit)
        return error

    def check(self, commit: Commit, member: int, generation: int) -> Error:
        """Return the reason to refuse a commit, before it is written: the log decides.

        A former owner gets ILLEGAL_GENERATION, a stranger UNKNOWN_MEMBER_ID.
        """
        error = self.owner_error(commit.group, member, generation)
        if error is not Error.NONE:
            return error
        return Error.INVALID_REQUEST if commit.offset < 0 else Error.NONE

    def owner_error(self, name: str, member: int, generation: int) -> Error:
        """Return why `member` is not the owner of a group in this generation, or `NONE` if it is."""
        group = self.groups.get(name)
        if group is None or member != group.member:
            return Error.UNKNOWN_MEMBER_ID
        if generation != group.generation:
            return Error.ILLEGAL_GENERATION
        return Error.NONE

    def position(self, name: str, partition: str) -> int | None:
        """Return where the next owner starts, None if nothing was committed."""
        group = self.groups.get(name)
        commit = None if group is None else group.committed.get(partition)
        return None if commit is None else commit.offset

    @classmethod
    def replay(cls, records: Iterable[Commit | Generation]) -> Groups:
        """Return the groups that a log describes."""
        rebuilt = cls()
        for record in records:
            rebuilt.take(record)
        return rebuilt

    def take(self, record: Commit | Generation) -> None:
        """Apply a record that was read from the log of groups, or was written to it after `check`."""
        group = self.groups.setdefault(record.group, Group())
        if isinstance(record, Commit):
            # Backwards is allowed: a new owner may rewind on purpose.
            group.committed[record.partition] = record
        else:
            # Counted from 1 again, a former owner's commit could have the new owner's number.
            group.generation, group.member = record.number, record.member
