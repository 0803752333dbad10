"""producer_state.spec and replog: the batches of an idempotent producer that a leader appends.

The system is a replica that leads alone, or with a follower that HW waits for.  First copies are produced
with acks=1, and do not wait; repetitions do.  For a cut the replica follows in the next leader epoch, in
which its fetch diverges, and leads in the one after that.  A number below 0 is one before the wrap.  `reopen`
is a replica with only the records: its table must be the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from replog.core.broker.replica import Replica
from replog.core.broker.state import ReplicaState
from replog.core.effects import Effect, Send, Timer
from replog.core.log.logview import LogView
from replog.core.log.producer import (
    SEQUENCE_LIMIT,
    ProducerTable,
    check_sequence,
    find_duplicate,
    last_seq,
)
from replog.core.messages import FetchReply, FetchRequest, ProduceReply, ProduceRequest
from replog.core.types import (
    Batch,
    BrokerImage,
    BrokerState,
    EpochEnd,
    Error,
    MetadataImage,
    PartitionImage,
)
from specchk.conform.contract.binding import (
    Accepted,
    Answer,
    At,
    Impossible,
    OutsideSpec,
    Refused,
    action,
    project,
    reopen,
)
from specchk.conform.contract.known_bad import BadCode, BadSpec
from specchk.conform.contract.ruled import CopyingBinding

BROKER, FOLLOWER, CLIENT, PRODUCER = 0, 1, -100, 7
PARTITION, NOW_MS = "t-0", 1_000_000
BROKERS = MappingProxyType({b: BrokerImage(b + 1, BrokerState.ACTIVE) for b in (BROKER, FOLLOWER)})
REFUSALS = MappingProxyType({
    "out_of_order": Error.OUT_OF_ORDER_SEQUENCE_NUMBER, "fenced": Error.INVALID_PRODUCER_EPOCH,
})  # fmt: skip
SMALL = MappingProxyType({"MaxBatches": "1"})


@dataclass(slots=True)
class Server:
    """A replica; the places of batches whose repetitions wait, and of those that the last step answered."""

    replica: Replica
    waiting: dict[int, int] = field(default_factory=dict)
    answered: frozenset[int] = frozenset()
    requests: int = 0

    def copy(self) -> Server:
        """Return an independent copy."""
        return Server(self.replica.copy(), self.waiting.copy(), self.answered, self.requests)

    @property
    def batches(self) -> list[Batch]:
        """The batches in the log."""
        return self.replica.state.log.batches

    def appoint(self, leader: int, epoch: int, isr: tuple[int, ...]) -> None:
        """Make a broker the leader."""
        image = PartitionImage((BROKER, FOLLOWER), leader, epoch, epoch, isr)
        self.perform(self.replica.apply(MetadataImage(epoch, {PARTITION: image}, BROKERS), 1, NOW_MS))

    def perform(self, effects: list[Effect]) -> ProduceReply | None:
        """Note the answers to repetitions that waited; return the one to the last request."""
        replies = {e.message.correlation: e.message for e in effects
                   if isinstance(e, Send) and isinstance(e.message, ProduceReply)}  # fmt: skip
        places = {self.waiting.pop(number): replies[number] for number in self.waiting.keys() & replies}
        for place, reply in places.items():
            if reply.error is Error.NONE and reply.base_offset != self.batches[place].base_offset:
                raise OutsideSpec(f"a repetition of batch {place} has the answer {reply}")
        self.answered = frozenset(at for at, reply in places.items() if reply.error is Error.NONE)
        return replies.get(self.requests)

    def produce(self, batch: Batch, acks: int) -> ProduceReply | None:
        """Let a batch arrive; return the answer, if it does not wait."""
        self.requests += 1
        request = ProduceRequest(self.requests, batch, acks, 1_000)
        return self.perform(self.replica.receive(CLIENT, request, NOW_MS))

    def place_of(self, batch: Batch) -> int | None:
        """Return where the last batch with these sequence numbers is in the log."""
        wanted = batch.producer_epoch, batch.first_seq, batch.count
        numbers = [(each.producer_epoch, each.first_seq, each.count) for each in self.batches]
        return max((at for at, each in enumerate(numbers) if each == wanted), default=None)


class ProducerStateBinding(CopyingBinding[Server]):
    """Batches with any sequence numbers at any time, and the leader's answers."""

    spec, model = "../../spec/producer_state.spec", "two_instances"
    smoke = (At("two_instances"),)
    gate = (
        At("two_instances"),
        At("beyond_the_window", suite="edges"),
        At("cut_and_repeated"),
        At("hw_lags"),
    )
    controls = (
        BadSpec("a new instance begins anywhere", "two_instances", {"begins_at_zero": "false"}),
        BadSpec("what is cut is remembered", "cut_and_repeated", {"cut_is_forgotten": "false"}),
        BadSpec("repetitions do not wait", "hw_lags", {"repetitions_wait": "false"}),
        BadCode("a batch that begins alike is a repetition", find_duplicate,
                " and seen.last_seq == last", "", "two_instances"),
        BadCode("the largest number has a successor", check_sequence, " % SEQUENCE_LIMIT", "",
                "two_instances"),
        BadCode("a new instance continues the numbers", check_sequence, "batch.first_seq == 0 else",
                "True else", "two_instances"),
        BadCode("an instance that is over appends", check_sequence, "batch.producer_epoch < entry.epoch",
                "False", "two_instances"),
        BadCode("repetitions of another instance", find_duplicate, "entry.epoch != batch.producer_epoch",
                "False", "two_instances"),
        BadCode("six batches are recognised", ProducerTable.update, "[-WINDOW:]", "[-WINDOW - 1:]",
                "beyond_the_window"),
    )  # fmt: skip
    rules = MappingProxyType({
        "window": 5, "begins_at_zero": True, "cut_is_forgotten": True, "repetitions_wait": True,
    })  # fmt: skip

    def start(self) -> Server:
        """Nothing was produced."""
        return self._leader(LogView(), 0)

    def _leader(self, log: LogView, epoch: int) -> Server:
        server = Server(Replica(ReplicaState(BROKER, PARTITION, log=log)))
        server.appoint(BROKER, epoch, self._isr)
        return server

    @property
    def _isr(self) -> tuple[int, ...]:
        return (BROKER, FOLLOWER) if self.constants["lags"] else (BROKER,)

    @reopen
    def lead_again(self, server: Server) -> Server:
        """A replica with the same records leads; with a follower it does not know HW, and nobody waits."""
        if self.constants["lags"]:
            return server
        opened = self._leader(LogView(server.batches), server.replica.state.leader_epoch)
        opened.answered = server.answered
        return opened

    def _batch(self, epoch: int, first: int, size: int) -> Batch:
        return Batch(0, -1, size, PRODUCER, epoch, first % SEQUENCE_LIMIT)

    @action("append_batch")
    def append_batch(self, server: Server, epoch: int, first: int, size: int) -> Answer:
        """A batch arrives, and is appended."""
        if self._reaches_too_far(first, size) or len(server.batches) == self.constants["MaxBatches"]:
            return Impossible("no such numbers in this model, or its log is full")
        end, answered = server.replica.state.log.leo, server.answered
        reply = server.produce(self._batch(epoch, first, size), 1)
        assert reply is not None, "nobody waits with acks=1"
        if (reply.base_offset, server.replica.state.log.leo) == (end, end + size):
            return Accepted()
        server.answered = answered
        return Refused(f"it answers {reply.error.name}, at {reply.base_offset}")

    @action("answer")
    def answer(self, server: Server, epoch: int, first: int, size: int, reason: str) -> Answer:
        """A batch arrives, and is not appended."""
        return self._repeat(server, epoch, first, size, reason)

    @action("wait_again")
    def wait_again(self, server: Server, epoch: int, first: int, size: int) -> Answer:
        """A repetition arrives, and is not answered yet."""
        return self._repeat(server, epoch, first, size, None)

    def _repeat(self, server: Server, epoch: int, first: int, size: int, reason: str | None) -> Answer:
        """A batch arrives that gets this answer, or none yet."""
        if self._reaches_too_far(first, size):
            return Impossible("no such numbers in this model")
        batch = self._batch(epoch, first, size)
        trial = server.copy()
        answer = self._answered(trial, batch, reason)
        # What is no step of the spec is not done: it could append the batch.
        if answer == Accepted():
            server.replica, server.requests = trial.replica, trial.requests
            server.waiting, server.answered = trial.waiting, trial.answered
        return answer

    def _answered(self, server: Server, batch: Batch, reason: str | None) -> Answer:
        end, place = server.replica.state.log.leo, server.place_of(batch)
        reply = server.produce(batch, -1)
        if server.replica.state.log.leo != end:
            return Refused("the batch is appended")
        if reply is None:
            if reason is not None or place is None:
                return Refused("it waits")
            server.waiting[server.requests] = place
            return Accepted()
        if reason != "repeated":
            is_wanted = reason is not None and reply.error is REFUSALS[reason]
            return Accepted() if is_wanted else Refused(f"it answers {reply.error.name}")
        is_there = place is not None and server.batches[place].base_offset == reply.base_offset
        if reply.error is not Error.NONE or place is None or not is_there:
            return Refused(f"it answers {reply.error.name}, at {reply.base_offset}")
        server.answered = frozenset({place})
        return Accepted()

    @action("commit")
    def commit(self, server: Server, batches: int) -> Answer:
        """The follower fetches behind this batch."""
        if not self.constants["lags"] or not _committed(server) < batches <= len(server.batches):
            return Impossible("there are not so many batches, or they are committed")
        last, epoch = server.batches[batches - 1], server.replica.state.leader_epoch
        fetch = FetchRequest(0, FOLLOWER, epoch, last.next_offset, last.epoch, broker_epoch=2)
        server.perform(server.replica.receive(FOLLOWER, fetch, NOW_MS))
        return Accepted()

    @action("cut")
    def cut(self, server: Server, batches: int) -> Answer:
        """The replica follows, its fetch diverges, and it leads again."""
        epoch = server.replica.state.leader_epoch
        if batches >= len(server.batches) or epoch == 2 * self.constants["MaxCuts"]:
            return Impossible("no more cuts in this model, or there are not so many batches")
        end = EpochEnd(server.batches[-1].epoch, server.batches[batches].base_offset)
        server.appoint(FOLLOWER, epoch + 1, self._isr)
        effects = server.replica.fire(Timer.SEND_FETCH, 0, NOW_MS)
        (fetch,) = (e.message for e in effects if isinstance(e, Send) and isinstance(e.message, FetchRequest))
        server.replica.receive(FOLLOWER, FetchReply(fetch.correlation, Error.NONE, 0, diverging=end), NOW_MS)
        server.appoint(BROKER, epoch + 2, self._isr)
        return Accepted()

    def _reaches_too_far(self, first: int, size: int) -> bool:
        return first + size - 1 > self.constants["MaxBatches"] * self.constants["MaxSize"]

    @project
    def state(self, server: Server) -> dict[str, Any]:
        """The batches, numbered as in the spec; what is remembered shows in answers alone."""
        numbers = [(batch.producer_epoch, batch.first_seq, last_seq(batch)) for batch in server.batches]
        log = [
            {"epoch": epoch, "first": _number(first), "last": _number(last)} for epoch, first, last in numbers
        ]
        return {
            "log": log,
            "known": log,
            "cuts": server.replica.state.leader_epoch // 2,
            "hw": _committed(server),
            "waiting": set(server.waiting.values()),
            "answered": server.answered,
        }


def _committed(server: Server) -> int:
    return sum(batch.next_offset <= server.replica.state.log.hw for batch in server.batches)


def _number(sequence: int) -> int:
    """Return, for the second half of all sequence numbers, the distance to the wrap."""
    return sequence - SEQUENCE_LIMIT if sequence >= SEQUENCE_LIMIT // 2 else sequence
