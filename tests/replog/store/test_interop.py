"""Whole segment files, exchanged with a public Kafka client in both directions."""

import warnings
from pathlib import Path

from replog.store.directory import LogDirectory
from replog.store.files.config import LogConfig
from replog.store.files.fs import OsFs
from replog.store.segments.batch import stamped_parts
from replog.store.segments.records import ProducerFields, Record, decode_batch, encode_batch

with warnings.catch_warnings():  # the client itself warns on import; it is only the witness here
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record import MemoryRecords
    from kafka.record.default_records import DefaultRecordBatchBuilder


def test_a_public_client_reads_the_segments_written_here(tmp_path: Path) -> None:
    """Base offsets, epochs, producers, CRCs and values of every batch in every `.log` file."""
    directory = LogDirectory.open(OsFs(), str(tmp_path), LogConfig(segment_bytes=900))
    log = directory.log("t", 0)
    for i in range(20):
        records = [Record(b"%d" % i, b"k"), Record(b"second")]
        log.append_as_leader(encode_batch(records, ProducerFields(7, 1, 2 * i)), i // 6)
    directory.shut_down({})
    found = []
    for path in sorted((tmp_path / "t-0").glob("*.log")):
        stored = MemoryRecords(path.read_bytes())
        while (batch := stored.next_batch()) is not None:
            assert batch.validate_crc()
            values = [record.value for record in batch]
            found.append(
                (batch.base_offset, batch.leader_epoch, batch.producer_id, batch.base_sequence, values)
            )
    assert found == [(2 * i, i // 6, 7, 2 * i, [b"%d" % i, b"second"]) for i in range(20)]


def test_a_segment_made_by_a_public_client_is_opened_here(tmp_path: Path) -> None:
    """Its batches, stamped and put into a file of the right name, are a readable and writable log."""
    content = b""
    for i in range(5):
        builder = DefaultRecordBatchBuilder(
            magic=2,
            compression_type=0,
            is_transactional=0,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            batch_size=1 << 16,
        )
        for delta in range(3):
            builder.append(offset=delta, timestamp=1000 + i, key=None, value=b"%d" % i, headers=[])
        content += b"".join(stamped_parts(builder.build(), 100 + 3 * i, i))
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{100:020d}.log").write_bytes(content)
    log = LogDirectory.open(OsFs(), str(tmp_path)).logs["t", 0]
    assert (log.log_start, log.log_end, log.recovery.cut_bytes) == (100, 115, 0)
    assert log.epochs == tuple((i, 100 + 3 * i) for i in range(5))
    assert [record.value for record in decode_batch(log.read(107, 1))] == [b"2"] * 3
    assert log.append_as_leader(encode_batch([Record(b"on")]), 9).base_offset == 115
