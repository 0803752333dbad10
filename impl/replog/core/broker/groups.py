"""Consumer groups, as far as delivery guarantees need them: one owner, a generation, committed offsets.

Theory: S59-S64, A31, A32 and example F6 of the project's Kafka reference.  A commit is itself a record of a
replicated log (`__consumer_offsets`), and so is a new generation: a group is a function of these records in
order, and moves to another coordinator by replaying them.

    poll, commit, process, crash  -> restart after m, m never processed   (at most once)
    poll, process, commit, crash  -> restart at m, m processed twice      (at least once)

Not here: assignment of partitions to members, heartbeats of members, and the log the commits are written to.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from replog.core.types import Error


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit: the group will continue at `offset` in `partition`."""

    group: str
    partition: str
    offset: int
    leader_epoch: int = -1

    def to_body(self) -> bytes:
        """Return the body of the record that this commit is in the log of groups."""
        return json.dumps(["commit", self.group, self.partition, self.offset, self.leader_epoch]).encode()


@dataclass(frozen=True, slots=True)
class Generation:
    """A group has a new owner, which fences every earlier one."""

    group: str
    number: int
    member: int

    def to_body(self) -> bytes:
        """Return the body of the record that this generation is in the log of groups."""
        return json.dumps(["generation", self.group, self.number, self.member]).encode()


def from_body(body: bytes) -> Commit | Generation:
    """Return what a record of the log of groups means."""
    kind, *fields = json.loads(body)
    return Commit(*fields) if kind == "commit" else Generation(*fields)


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
        group = self.groups.setdefault(name, Group())
        # Even for the same member: a restarted consumer must not commit what its earlier self had polled.
        group.generation += 1
        group.member = member
        return Generation(name, group.generation, member)

    def commit(self, commit: Commit, member: int, generation: int) -> Error:
        """Check a commit and take it."""
        error = self.check(commit, member, generation)
        if error is Error.NONE:
            group = self.groups[commit.group]
            # Backwards is allowed: a new owner may rewind on purpose.
            group.committed[commit.partition] = commit
        return error

    def check(self, commit: Commit, member: int, generation: int) -> Error:
        """Return the reason to refuse a commit, before it is written: what is in the log counts.

        A former owner gets ILLEGAL_GENERATION, a stranger UNKNOWN_MEMBER_ID.
        """
        group = self.groups.get(commit.group)
        if group is None or member != group.member:
            return Error.UNKNOWN_MEMBER_ID
        if generation != group.generation:
            return Error.ILLEGAL_GENERATION
        if commit.offset < 0:
            return Error.INVALID_REQUEST
        return Error.NONE

    def position(self, name: str, partition: str) -> int | None:
        """Return where the next owner starts, None if nothing was committed."""
        group = self.groups.get(name)
        commit = None if group is None else group.committed.get(partition)
        return None if commit is None else commit.offset

    @classmethod
    def replay(cls, records: Iterable[Commit | Generation]) -> Groups:
        """Return the groups that a log means."""
        rebuilt = cls()
        for record in records:
            group = rebuilt.groups.setdefault(record.group, Group())
            if isinstance(record, Commit):
                group.committed[record.partition] = record
            else:
                # Counted from 1 again, a former owner's commit could have the new owner's number.
                group.generation, group.member = record.number, record.member
        return rebuilt
