"""Batches: what a producer of ours writes is what a reader of ours, and of Kafka's clients, has."""

from __future__ import annotations

import pytest
from conformance.apache_kafka.batches import Producer, batch_of, old_message_of, parse_batches

WRITE = (lambda: batch_of([b"abc"], Producer(), 1), lambda: old_message_of(b"abc", 1))
kafka_record = pytest.importorskip("kafka.record")


def test_a_batch_is_read_as_written():
    """Values, offsets, producer and CRC of format 2."""
    (batch,) = parse_batches(batch_of([b"a", b"", b"long" * 100], Producer(7, 1, 3), 1000))
    assert [(record.offset, record.value) for record in batch.records()] == [
        (0, b"a"), (1, b""), (2, b"long" * 100)
    ]  # fmt: skip
    assert (batch.producer, batch.format, batch.valid, batch.control) == (Producer(7, 1, 3), 2, True, False)


@pytest.mark.parametrize("write", WRITE)
def test_a_client_of_kafka_reads_what_we_write(write):
    data = write()
    (batch,) = iter_batches(kafka_record.MemoryRecords(data))
    assert batch.validate_crc()
    assert [record.value for record in batch] == [
        record.value for each in parse_batches(data) for record in each.records()
    ]


def iter_batches(records):
    while records.has_next():
        yield records.next_batch()


@pytest.mark.parametrize("write", WRITE)
def test_a_flipped_bit_is_no_valid_batch(write):
    data = bytearray(write())
    data[-2] ^= 1
    (batch,) = parse_batches(bytes(data))
    assert not batch.valid


def test_what_is_not_complete_is_no_batch():
    """A torn batch ends a log, and so does a preallocated file's rest of zeros."""
    whole = batch_of([b"abc"], Producer(), 1)
    assert [batch.position for batch in parse_batches(whole * 2 + whole[:-1])] == [0, len(whole)]
    assert [batch.position for batch in parse_batches(whole + bytes(100))] == [0]
