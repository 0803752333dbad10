"""producer_state.spec and replog: the batches of an idempotent producer that a leader appends.

The system is a replica that leads alone.  A number below 0 is one before the wrap.  `reopen` is a replica
with only the records: its table must be the same.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any

from replog.core.broker.replica import Replica
from replog.core.broker.state import ReplicaState
from replog.core.effects import Send
from replog.core.log.logview import LogView
from replog.core.log.producer import (
    SEQUENCE_LIMIT,
    ProducerTable,
    check_sequence,
    find_duplicate,
    last_seq,
)
from replog.core.messages import ProduceReply, ProduceRequest
from replog.core.types import Batch, BrokerImage, BrokerState, Error, MetadataImage, PartitionImage
from specchk.conform.contract.binding import (
    Accepted,
    Answer,
    At,
    Impossible,
    Refused,
    action,
    project,
    reopen,
)
from specchk.conform.contract.known_bad import BadCode, BadSpec
from specchk.conform.contract.ruled import CopyingBinding

BROKER, CLIENT, PRODUCER = 0, -100, 7
PARTITION, NOW_MS = "t-0", 1_000_000
IMAGE = MetadataImage(
    0,
    {PARTITION: PartitionImage((BROKER,), BROKER, 0, 0, (BROKER,))},
    {BROKER: BrokerImage(1, BrokerState.ACTIVE)},
)
REFUSALS = MappingProxyType({
    "out_of_order": Error.OUT_OF_ORDER_SEQUENCE_NUMBER, "fenced": Error.INVALID_PRODUCER_EPOCH,
})  # fmt: skip
SMALL = MappingProxyType({"MaxBatches": "1"})


class ProducerStateBinding(CopyingBinding[Replica]):
    """Batches with any sequence numbers at any time, and the leader's answers."""

    spec, model = "../../spec/producer_state.spec", "two_instances"
    smoke = (At("two_instances"),)
    gate = (At("two_instances"), At("beyond_the_window", suite="edges"))
    controls = (
        BadSpec("a new instance begins anywhere", "two_instances", {"begins_at_zero": "false"}),
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
    rules = MappingProxyType({"window": 5, "begins_at_zero": True})

    def start(self) -> Replica:
        """Nothing was produced."""
        return _leader(LogView())

    @reopen
    def lead_again(self, replica: Replica) -> Replica:
        """A replica with the same records becomes the leader."""
        return _leader(LogView(replica.state.log.batches))

    @action("append_batch")
    def append_batch(self, replica: Replica, epoch: int, first: int, size: int) -> Answer:
        """A batch arrives, and is appended."""
        if (
            self._reaches_too_far(first, size)
            or len(replica.state.log.batches) == self.constants["MaxBatches"]
        ):
            return Impossible("no such numbers in this model, or its log is full")
        end = replica.state.log.leo
        reply = _produce(replica, Batch(0, -1, size, PRODUCER, epoch, first % SEQUENCE_LIMIT))
        is_appended = (reply.base_offset, replica.state.log.leo) == (end, end + size)
        return Accepted() if is_appended else Refused(f"{reply.error.name}, at {reply.base_offset}")

    @action("answer")
    def answer(self, replica: Replica, epoch: int, first: int, size: int, reason: str) -> Answer:
        """A batch arrives, and is not appended."""
        if self._reaches_too_far(first, size):
            return Impossible("no such numbers in this model")
        batch = Batch(0, -1, size, PRODUCER, epoch, first % SEQUENCE_LIMIT)
        # Of a batch that would be appended this is no step, so it is tried on a copy first.
        twin = replica.copy()
        reply = _produce(twin, batch)
        if twin.state.log.leo != replica.state.log.leo:
            return Refused("the batch is appended")
        reply = _produce(replica, batch)
        if reason != "repeated":
            return Accepted() if reply.error is REFUSALS[reason] else Refused(reply.error.name)
        stamped = replace(batch, base_offset=reply.base_offset, epoch=0)
        is_there = reply.error is Error.NONE and stamped in replica.state.log.batches
        return Accepted() if is_there else Refused(f"{reply.error.name}, at {reply.base_offset}")

    def _reaches_too_far(self, first: int, size: int) -> bool:
        return first + size - 1 > self.constants["MaxBatches"] * self.constants["MaxSize"]

    @project
    def state(self, replica: Replica) -> dict[str, Any]:
        """The batches, numbered as in the spec."""
        numbers = [(batch, batch.first_seq, last_seq(batch)) for batch in replica.state.log.batches]
        return {
            "log": [
                {"epoch": batch.producer_epoch, "first": _number(first), "last": _number(last)}
                for batch, first, last in numbers
            ]
        }


def _leader(log: LogView) -> Replica:
    replica = Replica(ReplicaState(BROKER, PARTITION, log=log))
    replica.apply(IMAGE, 1, NOW_MS)
    return replica


def _produce(replica: Replica, batch: Batch) -> ProduceReply:
    """Produce to a leader that is alone in the ISR, and therefore has no reason to wait."""
    effects = replica.receive(CLIENT, ProduceRequest(1, batch, -1, 1_000), NOW_MS)
    replies = [e.message for e in effects if isinstance(e, Send) and isinstance(e.message, ProduceReply)]
    return replies[0] if replies else ProduceReply(1, Error.REQUEST_TIMED_OUT, -1)


def _number(sequence: int) -> int:
    """Return, for the second half of all sequence numbers, the distance to the wrap."""
    return sequence - SEQUENCE_LIMIT if sequence >= SEQUENCE_LIMIT // 2 else sequence
