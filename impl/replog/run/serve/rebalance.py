"""The members of one consumer group: who is in it, which generation they are in, and who reads what.

    EMPTY -> PREPARING -> WRITING -> COMPLETING -> STABLE
             members join  the core   the leader     each has the
             (again)       writes it  assigns        leader's assignment

Theory: KIP-62, KIP-394 and the group protocol of Kafka's GroupMetadata.  This is the part of a coordinator
that a client never sees survive: after a start, or on another broker, members are unknown and join again.
What must survive, the generation and the offsets committed in it, is the core's (`core.broker.coordinator`):
`write` asks for the record of the next generation, and `written` has its number.

Time is a parameter, and an answer is given by calling what came with the request, at once or later.  Not
here: static members, whose instance id is only passed on.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from replog.core.types import Error
from replog.run.serve.codec import Body

INCONSISTENT_PROTOCOL = 23
REBALANCE_IN_PROGRESS = 27
MEMBER_ID_REQUIRED = 79
GROUP_MAX_SIZE_REACHED = 81
MOST_MEMBERS = 1_000

Answer = Callable[[Body], None]


class Phase(Enum):
    """Where a group is on its way to the next generation."""

    EMPTY = "empty"
    PREPARING = "preparing"
    WRITING = "writing"
    COMPLETING = "completing"
    STABLE = "stable"


@dataclass(frozen=True, slots=True)
class Join:
    """A request to join: `protocols` are assignors by name, each with what the member tells its leader."""

    member: str
    client: str
    instance: str | None
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]
    session_ms: int
    rebalance_ms: int
    needs_id: bool


@dataclass(slots=True)
class GroupMember:
    """One member; `joining` and `syncing` are the answers that it waits for."""

    last: Join
    deadline_ms: int
    joining: Answer | None = None
    syncing: Answer | None = None
    assignment: bytes = b""


@dataclass(slots=True)
class ClassicGroup:
    """One group; `generation` is that of the core, -1 until it is known in this leadership."""

    write: Callable[[], None]
    phase: Phase = Phase.EMPTY
    generation: int = -1
    leader: str = ""
    protocol: str = ""
    protocol_type: str = ""
    members: dict[str, GroupMember] = field(default_factory=dict)
    deadline_ms: int = 0
    """When a phase that waits for members goes on without them."""
    reserved: dict[str, int] = field(default_factory=dict)
    """Ids given to clients that have not joined with them, and until when they are kept."""

    def join(self, request: Join, now_ms: int, answer: Answer) -> None:
        """Let a client join, or a member join again."""
        error = self._join_error(request)
        if error:
            answer(refused_join(error, request.member))
            return
        if not request.member:
            self._admit(request, now_ms, answer)
            return
        member = self.members.get(request.member)
        if member is None and self.reserved.pop(request.member, None) is None:
            answer(refused_join(Error.UNKNOWN_MEMBER_ID, request.member))
        elif member is None:
            self._enter(request.member, request, now_ms, answer)
        else:
            self._rejoin(member, request, now_ms, answer)

    def _join_error(self, request: Join) -> int:
        others = {name: m for name, m in self.members.items() if name != request.member}
        if len(others) + len(self.reserved) >= MOST_MEMBERS and request.member not in self.reserved:
            return GROUP_MAX_SIZE_REACHED
        shared = set.intersection(*[_names(m.last) for m in others.values()]) if others else None
        is_other = bool(others) and request.protocol_type != self.protocol_type
        names = _names(request)
        is_strange = shared is not None and not names & shared
        return (
            INCONSISTENT_PROTOCOL if is_other or is_strange or not names or not request.protocol_type else 0
        )

    def _admit(self, request: Join, now_ms: int, answer: Answer) -> None:
        """Give a client an id, with which it joins again, or at once as a member if it is of the old kind."""
        name = f"{request.client}-{uuid.uuid4()}"
        if request.needs_id:
            self.reserved[name] = now_ms + request.session_ms
            answer(refused_join(MEMBER_ID_REQUIRED, name))
        else:
            self._enter(name, request, now_ms, answer)

    def _enter(self, name: str, request: Join, now_ms: int, answer: Answer) -> None:
        self.members[name] = GroupMember(request, now_ms + request.session_ms, answer)
        self.protocol_type = request.protocol_type
        self._prepare(now_ms)

    def _rejoin(self, member: GroupMember, request: Join, now_ms: int, answer: Answer) -> None:
        is_same = member.last.protocols == request.protocols
        member.last, member.deadline_ms = request, now_ms + request.session_ms
        # Its answer was lost, so it gets the same one again.
        if is_same and (
            self.phase is Phase.COMPLETING or (self.phase is Phase.STABLE and request.member != self.leader)
        ):
            answer(self._joined(request.member))
            return
        if member.joining is not None:
            member.joining(refused_join(REBALANCE_IN_PROGRESS, request.member))
        member.joining = answer
        self._prepare(now_ms)

    def _prepare(self, now_ms: int) -> None:
        """Wait for all members to join again, unless that has begun."""
        if self.phase not in (Phase.PREPARING, Phase.WRITING):
            self._wait_in(Phase.PREPARING, now_ms)
            self._answer_syncs(REBALANCE_IN_PROGRESS, now_ms)
        self._go_on()

    def _wait_in(self, phase: Phase, now_ms: int) -> None:
        """Wait for all members, as long as the most patient one would."""
        self.phase = phase
        self.deadline_ms = now_ms + max((m.last.rebalance_ms for m in self.members.values()), default=0)

    def _go_on(self) -> None:
        """Write the next generation once every member has joined."""
        if self.phase is Phase.PREPARING and all(m.joining is not None for m in self.members.values()):
            self.phase = Phase.WRITING
            self.write()

    def written(self, generation: int, error: int, now_ms: int) -> None:
        """Tell the members their generation, which is in the log now; or the reason why it is not."""
        if error:
            for name, member in self.members.items():
                member.deadline_ms = now_ms + member.last.session_ms
                _answer_join(member, refused_join(error, name))
            self._wait_in(Phase.PREPARING, now_ms)
            return
        self.generation = generation
        if not self.members:
            self.phase, self.leader, self.protocol = Phase.EMPTY, "", ""
            return
        self._wait_in(Phase.COMPLETING, now_ms)
        if self.leader not in self.members:
            self.leader = next(iter(self.members))
        self.protocol = self._vote()
        for name, member in self.members.items():
            member.assignment, member.deadline_ms = b"", now_ms + member.last.session_ms
            _answer_join(member, self._joined(name))

    def _vote(self) -> str:
        """Return the protocol that most members prefer, of those that all have."""
        shared = set.intersection(*[_names(m.last) for m in self.members.values()])
        votes = [next(n for n, _ in m.last.protocols if n in shared) for m in self.members.values()]
        return max(sorted(shared), key=votes.count)

    def _joined(self, name: str) -> Body:
        members = [
            {
                "member_id": other,
                "group_instance_id": member.last.instance,
                "metadata": dict(member.last.protocols)[self.protocol],
            }
            for other, member in self.members.items()
        ]
        return {
            "generation_id": self.generation,
            "protocol_type": self.protocol_type,
            "protocol_name": self.protocol,
            "leader": self.leader,
            "member_id": name,
            # Only the leader assigns.
            "members": members if name == self.leader else (),
        }

    def sync(
        self, name: str, generation: int, assignments: Mapping[str, bytes], now_ms: int, answer: Answer
    ) -> None:
        """Take the leader's assignment, and tell a member its part of it as soon as it is known."""
        error = self.check(name, generation)
        if error or self.phase in (Phase.PREPARING, Phase.WRITING, Phase.EMPTY):
            answer({"error_code": error or REBALANCE_IN_PROGRESS})
            return
        member = self.members[name]
        member.deadline_ms = now_ms + member.last.session_ms
        if self.phase is Phase.COMPLETING:
            member.syncing = answer
            if name == self.leader:
                self.phase = Phase.STABLE
                for other, each in self.members.items():
                    each.assignment = assignments.get(other, b"")
                self._answer_syncs(0, now_ms)
            return
        answer(self._synced(member))

    def _synced(self, member: GroupMember) -> Body:
        return {
            "protocol_type": self.protocol_type,
            "protocol_name": self.protocol,
            "assignment": member.assignment,
        }

    def _answer_syncs(self, error: int, now_ms: int) -> None:
        for member in self.members.values():
            if member.syncing is not None:
                # It could not send a heartbeat while it waited.
                member.deadline_ms = now_ms + member.last.session_ms
                member.syncing({"error_code": error} if error else self._synced(member))
                member.syncing = None

    def heartbeat(self, name: str, generation: int, now_ms: int) -> int:
        """Extend a member's session; return Kafka's error code."""
        error = self.check(name, generation)
        if not error:
            member = self.members[name]
            member.deadline_ms = now_ms + member.last.session_ms
            if self.phase in (Phase.PREPARING, Phase.WRITING):
                return REBALANCE_IN_PROGRESS
        return error

    def check(self, name: str, generation: int) -> int:
        """Return why a request is not one of a member in the current generation, 0 if it is."""
        if name not in self.members:
            return Error.UNKNOWN_MEMBER_ID
        return Error.NONE if generation == self.generation else Error.ILLEGAL_GENERATION

    def leave(self, name: str, now_ms: int) -> int:
        """Remove a member; return Kafka's error code."""
        if self.reserved.pop(name, None) is not None:
            return Error.NONE
        member = self.members.pop(name, None)
        if member is None:
            return Error.UNKNOWN_MEMBER_ID
        _answer_join(member, refused_join(Error.UNKNOWN_MEMBER_ID, name))
        if member.syncing is not None:
            member.syncing({"error_code": Error.UNKNOWN_MEMBER_ID})
        self._prepare(now_ms)
        return Error.NONE

    def expire(self, now_ms: int) -> None:
        """Remove the members whose sessions are over, and go on without those that are late."""
        self.reserved = {name: until for name, until in self.reserved.items() if until > now_ms}
        # All of them first: the first to leave begins a phase in which the others are not late.
        for name in [name for name, member in self.members.items() if self._is_gone(member, now_ms)]:
            self.leave(name, now_ms)
        self._go_on()

    def _is_gone(self, member: GroupMember, now_ms: int) -> bool:
        misses = (self.phase is Phase.PREPARING and member.joining is None) or (
            self.phase is Phase.COMPLETING and member.syncing is None
        )
        # Who waits for an answer is not silent.
        is_waiting = member.joining is not None or member.syncing is not None
        is_silent = now_ms >= member.deadline_ms and not is_waiting
        return is_silent or (misses and now_ms >= self.deadline_ms)

    def resign(self, error: int, now_ms: int) -> None:
        """Answer all that wait: this broker coordinates no more."""
        for name, member in self.members.items():
            _answer_join(member, refused_join(error, name))
        self._answer_syncs(error, now_ms)


def _names(request: Join) -> set[str]:
    return {name for name, _ in request.protocols}


def _answer_join(member: GroupMember, body: Body) -> None:
    if member.joining is not None:
        member.joining(body)
        member.joining = None


def refused_join(error: int, member: str) -> Body:
    """Return the answer to a client that may not join."""
    return {"error_code": error, "generation_id": -1, "member_id": member}
