"""What a scan of segments reads, and where it ends: epochs, and batches of any size."""

import pytest
from store_support import EPOCHS, KEY, LAZY, edit, names, reopened, stopped

from replog.store.files.errors import CorruptBatchError
from replog.store.files.fs import read_file
from replog.store.segments import segment
from replog.store.segments.batch import peek_header
from replog.store.segments.epochs import EpochWalk
from replog.store.segments.records import Record, encode_batch


def test_an_epoch_that_falls_is_cut_away() -> None:
    """It is outside of the CRC: what else is known of the epochs shows a flipped bit in it."""
    fs = stopped(config=LAZY)
    before = list(reopened(stopped(config=LAZY)).logs[KEY].headers())[-1]
    last = names(fs, ".log")[-1]
    at = len(read_file(fs, last)) - before.size_bytes
    edit(fs, last, lambda content: content.__setitem__(slice(at + 12, at + 16), bytes(4)))
    log = reopened(fs).logs[KEY]
    assert before.leader_epoch > 0
    assert (log.log_end, log.recovery.cut_bytes) == (before.base_offset, before.size_bytes)
    assert log.epochs == EPOCHS


def test_epochs_of_which_nothing_is_known_never_fall() -> None:
    """Of batches in the tail of a log that has no other file."""
    walk, body = EpochWalk(None, ()), bytearray(encode_batch([Record(b"v")]))
    for epoch in (3, 3, 5):
        body[12:16] = epoch.to_bytes(4, "big")
        walk.check_tail(body, peek_header(body), 0)
    body[12:16] = (4).to_bytes(4, "big")
    with pytest.raises(CorruptBatchError, match="epoch 4 follows 5"):
        walk.check_tail(body, peek_header(body), 0)


@pytest.mark.parametrize("piece", [70, 150, 1000])
def test_recovery_reads_batches_that_are_larger_than_its_pieces(
    piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One at a time; a torn one ends the log, as it does otherwise."""
    expected = list(reopened(stopped(config=LAZY)).logs[KEY].headers())
    monkeypatch.setattr(segment, "SCAN_BYTES", piece)
    assert list(reopened(stopped(config=LAZY)).logs[KEY].headers()) == expected
    fs = stopped(config=LAZY)
    edit(fs, names(fs, ".log")[-1], lambda content: content.__delitem__(slice(-1, None)))
    log = reopened(fs).logs[KEY]
    assert list(log.headers()) == expected[:-1]
    assert log.recovery.cut_bytes == expected[-1].size_bytes - 1
