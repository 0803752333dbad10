"""Record batches: the wire layout, the CRC, stamping in place, and agreement with a public client."""

import gzip
import struct
import warnings
from contextlib import suppress

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from replog.store.files.errors import CorruptBatchError, InvalidRecordError
from replog.store.segments.batch import (
    HEADER_BYTES,
    check_crc,
    check_produced,
    iterate_headers,
    peek_header,
)
from replog.store.segments.records import ProducerFields, Record, decode_batch, encode_batch, encode_varint

with warnings.catch_warnings():  # the client itself warns on import; it is only the witness here
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record import MemoryRecords
    from kafka.record.default_records import DefaultRecordBatchBuilder

nullable = st.none() | st.binary(max_size=40)
records = st.builds(
    Record,
    value=nullable,
    key=nullable,
    timestamp=st.integers(0, 2**41),
    headers=st.lists(st.tuples(st.text(max_size=5), nullable), max_size=3).map(tuple),
)
batches = st.lists(records, min_size=1, max_size=8)
ONE = encode_batch([Record(b"value", b"key", 1000)])


def stamp(batch: bytearray, offset: int, epoch: int) -> None:
    """Write base offset and leader epoch like a broker, outside the CRC."""
    struct.pack_into(">q", batch, 0, offset)
    struct.pack_into(">i", batch, 12, epoch)


def kafka_python(batch: bytes, offset: int = 0, epoch: int = 0) -> tuple[object, list[tuple[object, ...]]]:
    """Read a batch with kafka-python, which shares no code with replog."""
    stamped = bytearray(batch)
    stamp(stamped, offset, epoch)
    parsed = MemoryRecords(bytes(stamped)).next_batch()
    assert parsed.validate_crc()
    rows = [(r.offset, r.timestamp, r.key, r.value, [tuple(h) for h in r.headers]) for r in parsed]
    return parsed, rows


@given(batches, st.integers(0, 2**50), st.integers(0, 2**31 - 1))
def test_a_public_client_reads_what_is_encoded_and_stamped_here(
    rows: list[Record], offset: int, epoch: int
) -> None:
    """kafka-python finds the same records, base offset and epoch, and a valid CRC."""
    parsed, found = kafka_python(encode_batch(rows, ProducerFields(9, 2, 30)), offset, epoch)
    assert found == [
        (offset + i, r.timestamp, r.key, r.value, [tuple(h) for h in r.headers]) for i, r in enumerate(rows)
    ]
    assert (parsed.base_offset, parsed.leader_epoch) == (offset, epoch)
    assert (parsed.producer_id, parsed.producer_epoch, parsed.base_sequence) == (9, 2, 30)


@given(batches, st.sampled_from([0, 1]))
def test_what_a_public_client_encodes_is_read_here(rows: list[Record], codec: int) -> None:
    """The same records come back, plain or gzip, and the header passes a broker's checks."""
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=codec, is_transactional=0, producer_id=5, producer_epoch=1, base_sequence=7,
        batch_size=1 << 20,
    )  # fmt: skip
    for i, r in enumerate(rows):
        builder.append(offset=i, timestamp=r.timestamp, key=r.key, value=r.value, headers=list(r.headers))
    batch = bytes(builder.build())
    header = check_produced(batch)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 1, 7)
    assert decode_batch(batch) == tuple(
        Record(r.value, r.key, r.timestamp, i, r.headers) for i, r in enumerate(rows)
    )


@given(batches, st.integers(0, 2**40), st.integers(0, 2**31 - 1))
def test_stamping_changes_two_fields_and_no_byte_that_the_producer_signed(
    rows: list[Record], offset: int, epoch: int
) -> None:
    """Outside bytes 0..7 and 12..15 a stamped batch is the producer's, and its CRC still holds."""
    batch = encode_batch(rows)
    stamped = bytearray(batch)
    stamp(stamped, offset, epoch)
    assert (stamped[8:12], stamped[16:]) == (batch[8:12], batch[16:])
    header = peek_header(stamped)
    check_crc(stamped, header)
    assert (header.base_offset, header.leader_epoch, header.next_offset) == (
        offset,
        epoch,
        offset + len(rows),
    )


@given(batches, st.data())
def test_every_flipped_bit_under_the_crc_is_noticed(rows: list[Record], data: st.DataObject) -> None:
    """From the magic byte on, no single bit can change unseen."""
    batch = bytearray(encode_batch(rows))
    position = data.draw(st.integers(16, len(batch) - 1))
    batch[position] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(CorruptBatchError):
        check_crc(batch, peek_header(batch))


@given(st.binary(max_size=200))
def test_noise_is_refused_with_a_documented_error(noise: bytes) -> None:
    """Random bytes are corrupt or invalid, never an unexpected exception."""
    with pytest.raises((CorruptBatchError, InvalidRecordError)):
        decode_batch(noise)
    with pytest.raises((CorruptBatchError, InvalidRecordError)):
        check_produced(noise)


@given(batches, st.data())
def test_a_body_with_a_right_crc_and_wrong_content_is_refused(
    rows: list[Record], data: st.DataObject
) -> None:
    """A producer that signs nonsense gets its batch stored; reading its records raises a documented error."""
    batch = bytearray(encode_batch(rows))
    for _ in range(data.draw(st.integers(1, 4))):
        batch[data.draw(st.integers(HEADER_BYTES, len(batch) - 1))] = data.draw(st.integers(0, 255))
    batch[17:21] = crc32c(memoryview(batch)[21:]).to_bytes(4, "big")
    with suppress(CorruptBatchError):
        decode_batch(batch)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((slice(16, 17), b"\1"), "too old"),
        ((slice(0, 8), b"\0" * 7 + b"\1"), "base offset"),
        ((slice(0, 8), b"\x7f" + b"\xff" * 7), "overflow"),
        ((slice(8, 12), (2**31 - 1).to_bytes(4, "big")), "bytes in"),
        ((slice(8, 12), b"\xff" * 4), "below the header"),
        ((slice(8, 12), (48).to_bytes(4, "big")), "below the header"),
        ((slice(23, 27), b"\xff" * 4), "negative"),
        ((slice(57, 61), b"\0" * 4), "records for"),
        ((slice(16, 17), b"\3"), "not supported"),
    ],
)
def test_lies_in_the_header_are_named(change: tuple[slice, bytes], message: str) -> None:
    """Old formats, wrong base offsets, oversized and negative lengths, wrong counts: each has its message."""
    batch = bytearray(ONE)
    batch[change[0]] = change[1]
    with pytest.raises((CorruptBatchError, InvalidRecordError), match=message):
        check_produced(batch)


def signed(body: bytes) -> bytes:
    batch = bytearray(ONE[:HEADER_BYTES] + body)
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    batch[17:21] = crc32c(memoryview(batch)[21:]).to_bytes(4, "big")
    return bytes(batch)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (ONE[HEADER_BYTES:] + b"\0\0", "2 bytes after the last record"),
        (b"\xff" * 10 + b"\1", "more than ten bytes"),
        (bytes([16, 0, 0, 0, 1, 1, 2, 1, 1]), "without a key"),
        (bytes([14, 0, 0, 0, 1, 1, 0, 0]), "length and its content differ"),
        (bytes([12, 0, 0, 0, 1, 1, 254, 1]), "headers in one record"),
        (bytes([12, 0, 0, 0, 1, 200, 1]), "bytes needed"),
    ],
)
def test_lies_in_a_signed_body_are_named(body: bytes, message: str) -> None:
    """Nothing of such a batch is returned, although its CRC is right."""
    assert decode_batch(signed(ONE[HEADER_BYTES:]))[0].value == b"value"
    with pytest.raises(CorruptBatchError, match=message):
        decode_batch(signed(body))


def test_two_batches_are_not_one() -> None:
    """A produce request with more than one batch, or trailing bytes, is refused."""
    with pytest.raises(InvalidRecordError, match="exactly one"):
        check_produced(ONE + ONE)


def test_headers_are_walked_to_the_exact_end() -> None:
    """Iteration yields each batch's position and refuses a torn tail."""
    assert [position for position, _ in iterate_headers(ONE + ONE)] == [0, len(ONE)]
    with pytest.raises(CorruptBatchError):
        list(iterate_headers(ONE + ONE[:-1]))


@pytest.mark.parametrize(
    ("number", "encoded"),
    [(0, "00"), (-1, "01"), (1, "02"), (63, "7e"), (64, "8001"), (-65, "8101"), (2**31, "8080808010")],
)
def test_varints_are_protobuf_zigzag(number: int, encoded: str) -> None:
    """The worked values of the protocol guide."""
    assert encode_varint(number).hex() == encoded


def test_an_unreadable_codec_is_named() -> None:
    """A zstd batch is stored like any other; reading its records names the missing library."""
    batch = bytearray(ONE)
    batch[22] |= 4
    batch[17:21] = crc32c(memoryview(batch)[21:]).to_bytes(4, "big")
    assert check_produced(batch).attributes == 4
    with pytest.raises(InvalidRecordError, match="zstd"):
        decode_batch(batch)


def gzipped(body: bytes) -> bytes:
    batch = bytearray(ONE[:HEADER_BYTES] + body)
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    batch[22] |= 1
    batch[17:21] = crc32c(memoryview(batch)[21:]).to_bytes(4, "big")
    return bytes(batch)


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        (b"not gzip at all", CorruptBatchError, "gzip"),
        (gzip.compress(ONE[HEADER_BYTES:], mtime=0)[:-9], CorruptBatchError, "too early"),
        (gzip.compress(bytes(65 << 20), 1, mtime=0), InvalidRecordError, "unpacked"),
    ],
)
def test_compressed_records_that_cannot_be_unpacked_are_refused(
    body: bytes, error: type[Exception], message: str
) -> None:
    """Not gzip, truncated, or a bomb: an error, without unpacking more than a bound."""
    assert decode_batch(gzipped(gzip.compress(ONE[HEADER_BYTES:])))[0].value == b"value"
    with pytest.raises(error, match=message):
        decode_batch(gzipped(body))


def test_an_empty_batch_cannot_be_encoded() -> None:
    """A batch contains at least one record."""
    with pytest.raises(InvalidRecordError):
        encode_batch([])
