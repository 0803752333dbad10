"""Producers and consumers as sans-I/O state machines: replies and alarms in, effects out.

A producer keeps up to five consecutive batches in flight, retries without end with the same sequence numbers,
and gives up on an epoch of its own only when its oldest batch is out of order for good; its first batch goes
alone, since a broker that knows nothing of a producer accepts any sequence number (A2).  A consumer reads on
from its position and reports every record.  `find_broker` names the broker to address, which
may well be a wrong one.

Not here: groups and commits (`replog.core.broker.groups`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from replog.core import messages
from replog.core.effects import Effect, Send, SetTimer, Timer
from replog.core.log.producer import WINDOW
from replog.core.messages import EARLIEST, Message
from replog.core.types import CONSUMER, Batch, Error

GIVE_UP_TRIES = 8
REFUSED_FOR_GOOD = frozenset({Error.INVALID_RECORD, Error.MESSAGE_TOO_LARGE, Error.INVALID_REQUIRED_ACKS})


class ClientObserver:
    """An observer of the answers that clients receive; by default it does nothing."""

    def acknowledged(self, base_offset: int, count: int, body: bytes) -> None:
        """Note a batch of `count` records acknowledged with acks=all at `base_offset`."""

    def consumed(self, offset: int, cell: tuple[int, bytes]) -> None:
        """Note a record read at `offset`: its epoch and its content."""

    def requested(self, offset: int) -> None:
        """Note a request for the deletion of all records before `offset`."""

    def gone(self, low_watermark: int) -> None:
        """Note the answer that all records before `low_watermark` are deleted."""


@dataclass(slots=True)
class Outstanding:
    """A batch that was sent and has no final answer yet."""

    number: int
    batch: Batch
    sent_ms: int = -1
    correlation: int = -1
    tries: int = 0


@dataclass(slots=True)
class Producer:
    """Sends `limit` numbered batches; `acks` and idempotence are fixed for its life."""

    address: int
    acks: int
    is_idempotent: bool
    limit: int
    find_broker: Callable[[], int]
    choose: Callable[[int], int]
    observer: ClientObserver
    interval_ms: int = 200
    timeout_ms: int = 1_500
    most_records: int = 3
    next_number: int = 0
    next_seq: int = 0
    epoch: int = 0
    has_begun: bool = False
    correlation: int = 0
    outstanding: list[Outstanding] = field(default_factory=list)
    answered: int = 0
    refused: int = 0
    abandoned: int = 0

    def receive(self, message: Message, now_ms: int) -> list[Effect]:
        """Process an answer to a batch that is still outstanding."""
        if not isinstance(message, messages.ProduceReply):
            return []
        for waiting in self.outstanding:
            if waiting.correlation == message.correlation:
                self._settle(waiting, message)
                break
        return []

    def fire(self, timer: Timer, token: int, now_ms: int) -> list[Effect]:
        """Send a new batch if the limit allows, repeat overdue batches, and set the next alarm."""
        out: list[Effect] = [SetTimer(timer, 1 + self.choose(self.interval_ms))]
        oldest = self.outstanding[0].number if self.outstanding else self.next_number
        # A broker that knows nothing of a producer accepts any first number. With several first batches in
        # flight the second could arrive alone, and the first would then be refused for good.
        window = WINDOW if self.has_begun else 1
        if self.next_number < min(self.limit, oldest + window):
            self.outstanding.append(Outstanding(self.next_number, self._make_batch()))
            self.next_number += 1
        # In their order: the broker accepts sequence numbers without a gap only.
        late = [w for w in self.outstanding if w.sent_ms < 0 or now_ms - w.sent_ms > self.timeout_ms]
        out.extend(self._send(waiting, now_ms) for waiting in late)
        # No answer comes to acks=0, not even an error (A1), so nothing can be retried.
        if self.acks == 0:
            self.answered += len(self.outstanding)
            self.outstanding.clear()
        return out

    def _make_batch(self) -> Batch:
        kind = b"i" if self.is_idempotent else b"p"
        body = kind + str(-self.address).encode() + b"-" + str(self.next_number).encode()
        count = 1 + self.choose(self.most_records)
        if not self.is_idempotent:
            return Batch(0, -1, count, body=body)
        first = self.next_seq
        self.next_seq += count
        return Batch(0, -1, count, -self.address, self.epoch, first, body)

    def _send(self, waiting: Outstanding, now_ms: int) -> Send:
        self.correlation += 1
        waiting.correlation, waiting.sent_ms = self.correlation, now_ms
        request = messages.ProduceRequest(self.correlation, waiting.batch, self.acks, self.timeout_ms)
        return Send(self.find_broker(), request)

    def _settle(self, waiting: Outstanding, reply: messages.ProduceReply) -> None:
        """Record a success, drop a batch that was finally refused, or keep it for a retry."""
        if reply.error is Error.NONE:
            self.outstanding.remove(waiting)
            self.answered += 1
            self.has_begun = True
            if self.acks == -1:
                self.observer.acknowledged(reply.base_offset, waiting.batch.count, waiting.batch.content)
            return
        if reply.error in REFUSED_FOR_GOOD:
            self.outstanding.remove(waiting)
            self.refused += 1
            return
        # A later reply to the same attempt is no longer expected; the next round sends it under a new number.
        waiting.correlation = -1
        # Behind the head an out-of-order answer is normal, since the batch before it may be missing. Only for
        # the head does it show that the broker has forgotten this producer.
        is_head = waiting is self.outstanding[0]
        if reply.error is Error.OUT_OF_ORDER_SEQUENCE_NUMBER and is_head:
            waiting.tries += 1
            if waiting.tries > GIVE_UP_TRIES:
                self._begin_epoch()

    def _begin_epoch(self) -> None:
        """Abandon all batches in flight.

        Whether it is in the log is not known, and it is not sent again.
        """
        self.abandoned += len(self.outstanding)
        self.outstanding.clear()
        self.epoch += 1
        self.next_seq = 0
        self.has_begun = False


@dataclass(slots=True)
class Consumer:
    """Reads the log from its start, repeatedly from its current position."""

    address: int
    find_broker: Callable[[], int]
    choose: Callable[[int], int]
    observer: ClientObserver
    interval_ms: int = 400
    looks_for_start: bool = False
    """Whether a position that is out of range may have been deleted."""
    position: int = 0
    correlation: int = 0

    def receive(self, message: Message, now_ms: int) -> list[Effect]:
        """Process records; report each one at or past the position, or continue at the log's new start."""
        if isinstance(message, messages.ListOffsetsReply) and message.correlation == self.correlation:
            self.position = max(self.position, message.offset)
        if not isinstance(message, messages.FetchReply) or message.correlation != self.correlation:
            return []
        # A duplicate of this reply matches no request.
        self.correlation += 1
        # Otherwise it is ahead of a leader of the past, and continues at another broker.
        if message.error is Error.OFFSET_OUT_OF_RANGE and self.looks_for_start:
            request = messages.ListOffsetsRequest(self.correlation, CONSUMER, -1, EARLIEST)
            return [Send(self.find_broker(), request)]
        if message.error is not Error.NONE:
            return []
        for batch in message.batches:
            # The first batch may begin before the position, because batches are served whole.
            for offset in range(max(self.position, batch.base_offset), batch.next_offset):
                self.observer.consumed(offset, (batch.epoch, batch.content))
                self.position = offset + 1
        return []

    def fire(self, timer: Timer, token: int, now_ms: int) -> list[Effect]:
        """Request more records, occasionally from the very beginning."""
        # Reads must be repeatable (P9), which only a second read can show.
        if self.choose(16) == 0:
            self.position = 0
        self.correlation += 1
        wait_ms = self.choose(2) * 300
        request = messages.FetchRequest(self.correlation, CONSUMER, -1, self.position, max_wait_ms=wait_ms)
        return [Send(self.find_broker(), request), SetTimer(timer, 1 + self.choose(2 * self.interval_ms))]


@dataclass(slots=True)
class Cleaner:
    """Repeatedly requests the deletion of the oldest records, up to an offset that `choose_offset` allows."""

    address: int
    find_broker: Callable[[], int]
    choose: Callable[[int], int]
    choose_offset: Callable[[], int]
    observer: ClientObserver
    interval_ms: int = 1_500
    timeout_ms: int = 3_000
    correlation: int = 0

    def receive(self, message: Message, now_ms: int) -> list[Effect]:
        """Process an answer; it is valid for any of the requests."""
        if isinstance(message, messages.DeleteRecordsReply) and message.error is Error.NONE:
            self.observer.gone(message.low_watermark)
        return []

    def fire(self, timer: Timer, token: int, now_ms: int) -> list[Effect]:
        """Send the next request."""
        self.correlation += 1
        offset = self.choose_offset()
        self.observer.requested(offset)
        request = messages.DeleteRecordsRequest(self.correlation, offset, self.timeout_ms)
        return [Send(self.find_broker(), request), SetTimer(timer, 1 + self.choose(2 * self.interval_ms))]
