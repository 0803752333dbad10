"""A member of a consumer group as a sans-I/O state machine: joins, reads, processes, commits, dies, returns.

    join -> position -> read, commit, read, commit ...      another joins: refused, so join again

It has one request at a time under way.  One that is not answered in time may still be carried out, so the
member joins again, and the generation that it then has fences what it sent before.  It processes first and
commits then: each record is processed at least once (S62).

Not here: the coordinator (`replog.core.broker.coordinator`), and what is right (`oracles.commits`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from replog.core import messages
from replog.core.effects import Effect, Send, SetTimer, Timer
from replog.core.messages import Message
from replog.core.types import CONSUMER, Error

FIRST_ADDRESS = -40
DIES_ONE_IN = 20
REST_MS = 1_000
NOT_OWNER = frozenset({Error.ILLEGAL_GENERATION, Error.UNKNOWN_MEMBER_ID})


Answer = messages.GroupReply | messages.FetchReply


class GroupObserver:
    """An observer of a group's members; by default it does nothing."""

    def kept(self) -> int:
        """Return the offset below which no owner may restart from now on."""
        return 0

    def processed(self, offset: int) -> None:
        """Note a record processed by a member."""

    def committed_to(self, offset: int) -> None:
        """Note the answer that an offset was committed."""

    def resumed(self, offset: int, kept: int) -> None:
        """Note where an owner continues; `kept` is the result of `kept` at the time of its request."""


@dataclass(slots=True)
class Member:
    """One consumer of a group, which reads one partition."""

    address: int
    group: str
    reads: str
    """The partition of records."""
    log: str
    """The partition that is the log of groups."""
    find_leader: Callable[[str], int]
    choose: Callable[[int], int]
    observer: GroupObserver = field(default_factory=GroupObserver)
    interval_ms: int = 40
    timeout_ms: int = 4_000
    correlation: int = 0
    sent_ms: int = -1
    """When the request under way was sent; -1: none is."""
    generation: int = -1
    position: int = -1
    committed: int = -1
    kept: int = 0
    dies: bool = True
    """Whether its process dies now and then."""
    is_over: bool = False
    """Whether it has left for good."""
    rest_ms: int = 0
    """How long to leave the group to whoever has taken it over."""

    def fire(self, timer: Timer, token: int, now_ms: int) -> list[Effect]:
        """Send the next request, unless one is in flight that may still be answered."""
        if self.is_over:
            return []
        again = SetTimer(timer, 1 + self.choose(2 * self.interval_ms) + self.rest_ms)
        self.rest_ms = 0
        is_late = self.sent_ms >= 0 and now_ms - self.sent_ms > self.timeout_ms
        if is_late or (self.dies and self.choose(DIES_ONE_IN) == 0):
            self._forget()
        if self.sent_ms >= 0:
            return [again]
        self.correlation += 1
        self.sent_ms = now_ms
        partition, request = self._next_request()
        return [Send(self.find_leader(partition), messages.ForPartition(partition, request)), again]

    def _forget(self) -> None:
        """Reset the state to that of a new process."""
        self.correlation += 1  # what is still answered is for the process before
        self.sent_ms = self.generation = self.position = self.committed = -1

    def _next_request(self) -> tuple[str, messages.PartitionMessage]:
        me = -self.address
        if self.generation < 0:
            return self.log, messages.JoinGroupRequest(self.correlation, self.group, me)
        if self.position < 0:
            self.kept = self.observer.kept()
            return self.log, messages.PositionRequest(
                self.correlation, self.group, self.reads, me, self.generation
            )
        if self.position > self.committed:
            return self.log, messages.CommitRequest(
                self.correlation, self.group, self.reads, self.position, me, self.generation
            )
        return self.reads, messages.FetchRequest(self.correlation, CONSUMER, -1, self.position)

    def receive(self, message: Message, now_ms: int) -> list[Effect]:
        """Take the answer to the request in flight."""
        if not isinstance(message, Answer) or message.correlation != self.correlation or self.sent_ms < 0:
            return []
        self.sent_ms = -1
        if message.error in NOT_OWNER:
            self._forget()
            self.rest_ms = self.choose(REST_MS)
        elif message.error is Error.NONE:
            self._take(message)
        elif isinstance(message, messages.CommitReply):
            # It may be written all the same, or be written later.
            self._forget()
        return []

    def _take(self, message: Answer) -> None:
        match message:
            case messages.JoinGroupReply(generation=generation):
                self.generation = generation
            case messages.PositionReply(offset=offset):
                self.position = self.committed = max(offset, 0)
                self.observer.resumed(self.position, self.kept)
            case messages.CommitReply():
                self.committed = self.position
                self.observer.committed_to(self.position)
            case messages.FetchReply(batches=batches):
                for batch in batches:
                    for offset in range(max(self.position, batch.base_offset), batch.next_offset):
                        self.observer.processed(offset)
                        self.position = offset + 1


def settle(group: Iterable[Member]) -> None:
    """Keep one member, which must reach the end whatever the others leave behind; they leave."""
    for number, member in enumerate(group):
        member.dies, member.is_over = False, number > 0
