"""Simulated clients behave like real ones: order, retries, a first batch alone, reading on and again."""

from __future__ import annotations

from replog.core.effects import Send, Timer
from replog.core.log.producer import WINDOW
from replog.core.messages import FetchReply, FetchRequest, ProduceReply
from replog.core.types import Batch, Error
from replog.sim.cluster.clients import GIVE_UP_TRIES, Consumer, Producer
from replog.sim.oracles.oracles import Oracles


def producer(acks: int = -1, **fields) -> Producer:
    oracles = Oracles(1)
    oracles.committed = [(0, b"i10-0")] * 3
    return Producer(-10, acks, True, 20, lambda: 0, lambda n: n - 1, oracles, **fields)


def wake(client, now: int):
    return [e.message for e in client.fire(Timer.SEND_FETCH, 0, now) if isinstance(e, Send)]


def test_the_first_batch_goes_alone_and_then_a_window_of_five():
    """Until the first answer one batch is in flight; then at most five consecutive ones."""
    client = producer()
    (first,) = wake(client, 0)
    assert (first.batch.first_seq, wake(client, 1)) == (0, [])
    client.receive(ProduceReply(first.correlation, Error.NONE, 0), 2)
    sent = [request for now in range(9) for request in wake(client, now)]
    assert len(sent) == WINDOW
    assert [r.batch.first_seq for r in sent] == [3, 6, 9, 12, 15]


def test_a_retry_keeps_its_sequence_number_and_gets_a_new_correlation():
    """Silence for the timeout repeats the batch; a late answer to the first try is not accepted."""
    client = producer()
    (first,) = wake(client, 0)
    (again,) = wake(client, client.timeout_ms + 1)
    assert again.batch == first.batch
    client.receive(ProduceReply(first.correlation, Error.NONE, 0), 9)
    assert client.answered == 0
    client.receive(ProduceReply(again.correlation, Error.NONE, 0), 9)
    assert client.answered == 1


def test_a_batch_out_of_order_for_good_begins_a_new_epoch():
    """After enough refusals as the oldest batch, everything in flight is abandoned and the epoch raised."""
    client = producer()
    for attempt in range(GIVE_UP_TRIES + 1):
        (request,) = wake(client, attempt * 10_000)
        client.receive(ProduceReply(request.correlation, Error.OUT_OF_ORDER_SEQUENCE_NUMBER, -1), 0)
    assert (client.epoch, client.abandoned, client.outstanding) == (1, 1, [])
    (fresh,) = wake(client, 10**6)
    assert (fresh.batch.producer_epoch, fresh.batch.first_seq) == (1, 0)


def test_a_batch_refused_for_good_is_not_sent_again():
    """INVALID_RECORD and its like end a batch."""
    client = producer()
    (request,) = wake(client, 0)
    client.receive(ProduceReply(request.correlation, Error.INVALID_RECORD, -1), 0)
    assert (client.refused, client.outstanding) == (1, [])


def test_acks_zero_expects_no_answer():
    """With acks=0 every send counts as done."""
    client = producer(acks=0)
    assert len(wake(client, 0)) == 1
    assert (client.answered, client.outstanding) == (1, [])


def test_a_consumer_reads_on_and_skips_what_it_did_not_ask_for():
    """A reply may begin before the position; only the answer to the last request counts."""
    oracles = Oracles(1)
    oracles.committed = [(0, b"a"), (0, b"a"), (0, b"b")]
    client = Consumer(-20, lambda: 0, lambda n: n - 1, oracles, position=1)
    (request,) = wake(client, 0)
    assert isinstance(request, FetchRequest)
    batches = (Batch(0, 0, 2, body=b"a"), Batch(2, 0, 1, body=b"b"))
    client.receive(FetchReply(request.correlation + 5, Error.NONE, 3, 0, batches), 0)
    assert client.position == 1
    client.receive(FetchReply(request.correlation, Error.NONE, 3, 0, batches), 0)
    assert (client.position, oracles.figures.consumed) == (3, 2)
