"""The demo's clients: producers with a ledger of acknowledged records, a consumer with a record of its reads.

One request in flight, retried until it is answered. The ledgers are the only judge of the demo (`verdict`):
a record that was acknowledged must be where the broker said, in the log of whoever leads at the end.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from replog.core.effects import Effect, Send, SetTimer, Timer
from replog.core.messages import FetchReply, FetchRequest, Message, ProduceReply, ProduceRequest
from replog.core.types import CONSUMER, Batch, Error

RETRY_MS = 700
PRODUCE_TIMEOUT_MS = 2_000
FindBroker = Callable[[], int]


@dataclass(slots=True)
class LedgerProducer:
    """Sends numbered records while `is_active`; `promised` is the ledger of acknowledged (offset, body)."""

    name: str
    acks: int
    find_broker: FindBroker
    interval_ms: int = 100
    is_active: bool = True
    promised: list[tuple[int, bytes]] = field(default_factory=list)
    number: int = 0
    correlation: int = 0
    sent_ms: int | None = None

    def receive(self, message: Message, now_ms: int) -> list[Effect]:
        """Note an acknowledgement; after any other answer, try again."""
        del now_ms
        if isinstance(message, ProduceReply) and message.correlation == self.correlation:
            self.sent_ms = None
            if message.error is Error.NONE:
                self.promised.append((message.base_offset, self._body()))
                self.number += 1
        return []

    def fire(self, timer: Timer, token: int, now_ms: int) -> list[Effect]:
        """Send the next record, or repeat the last one, if there is reason to."""
        out: list[Effect] = [SetTimer(timer, self.interval_ms, token)]
        broker = self.find_broker()
        is_free = self.sent_ms is None or now_ms - self.sent_ms > RETRY_MS
        if self.is_active and is_free and broker >= 0:
            self.correlation += 1
            self.sent_ms = now_ms
            batch = Batch(0, -1, 1, body=self._body())
            out.append(Send(broker, ProduceRequest(self.correlation, batch, self.acks, PRODUCE_TIMEOUT_MS)))
        return out

    def _body(self) -> bytes:
        return f"{self.name} {self.number}".encode()


@dataclass(slots=True)
class LedgerConsumer:
    """Reads on from its position; `read` is every record received, without repetitions."""

    find_broker: FindBroker
    interval_ms: int = 120
    read: set[tuple[int, bytes]] = field(default_factory=set)
    position: int = 0
    correlation: int = 0

    def receive(self, message: Message, now_ms: int) -> list[Effect]:
        """Take records; start over if the log ends before the position."""
        del now_ms
        if not isinstance(message, FetchReply) or message.correlation != self.correlation:
            return []
        self.correlation += 1
        if message.error is Error.OFFSET_OUT_OF_RANGE:
            self.position = 0
        for batch in message.batches:
            self.read |= {(offset, batch.content) for offset in range(batch.base_offset, batch.next_offset)}
            self.position = max(self.position, batch.next_offset)
        return []

    def fire(self, timer: Timer, token: int, now_ms: int) -> list[Effect]:
        """Request more records from the leader."""
        del now_ms
        out: list[Effect] = [SetTimer(timer, self.interval_ms, token)]
        broker = self.find_broker()
        if broker >= 0:
            self.correlation += 1
            out.append(Send(broker, FetchRequest(self.correlation, CONSUMER, -1, self.position)))
        return out
