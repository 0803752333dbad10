"""The log view: offsets, truncation by whole batches, HW inside the log."""

from __future__ import annotations

from itertools import pairwise

from core_support import log_of
from hypothesis import given
from hypothesis import strategies as st

from replog.core.log.logview import LogView
from replog.core.types import Batch

counts = st.lists(st.integers(1, 4), max_size=8)


def log_with(sizes: list[int]) -> LogView:
    log = LogView()
    for epoch, count in enumerate(sizes):
        log.append(Batch(log.leo, epoch, count, 7, 0, log.leo))
    return log


@given(counts, st.integers(0, 40), st.integers(0, 40))
def test_a_truncation_leaves_whole_batches_below_the_offset_and_hw_inside(sizes, hw, offset):
    """truncate_to drops exactly the batches that reach the offset; HW and producers follow."""
    log = log_with(sizes)
    log.assign_hw(hw)
    kept = [batch for batch in log.batches if batch.next_offset <= offset]
    assert log.truncate_to(offset) == (len(kept) < len(sizes))
    assert log.batches == kept
    assert log.log_start <= log.hw <= log.leo == (kept[-1].next_offset if kept else 0)
    rebuilt = LogView(kept)
    assert log.producers == rebuilt.producers


@given(counts, st.integers(0, 30), st.integers(0, 30), st.integers(1, 400))
def test_a_read_is_contiguous_from_the_offset_and_never_reaches_past_the_end(sizes, start, end, max_bytes):
    """A read gives whole batches, the first with the start, none past the end, at least one if it fits."""
    log = log_with(sizes)
    start, end = min(start, log.leo), min(end, log.leo)
    batches = log.read(start, end, max_bytes)
    for left, right in pairwise(batches):
        assert left.next_offset == right.base_offset
    if batches:
        assert batches[0].base_offset <= start < batches[0].next_offset
        assert batches[-1].next_offset <= end
        assert len(batches) == 1 or sum(batch.size_bytes for batch in batches) <= max_bytes
    else:
        holder = [batch for batch in log.batches if batch.base_offset <= start < batch.next_offset]
        assert start >= end or holder[0].next_offset > end


def test_a_leaders_hw_only_rises_and_a_followers_may_fall():
    """I2, I6: raise_hw is monotone, assign_hw clamps into the log in both directions."""
    log = log_of(0, 0, 0)
    assert log.raise_hw(2)
    assert not log.raise_hw(1)
    assert log.hw == 2
    log.assign_hw(9)
    assert log.hw == 3
    log.assign_hw(1)
    assert log.hw == 1


def test_a_copy_shares_nothing_that_changes():
    """A snapshot is not changed by later changes of the original."""
    log = log_of(0, 0)
    twin = log.copy()
    assert twin == log
    log.append(Batch(2, 1, 1, 7, 0, 0))
    assert twin.leo == 2
    assert twin.epochs.latest == 0
    assert 7 not in twin.producers.entries


def test_the_log_start_moves_by_whole_batches_and_never_past_hw():
    """advance_start forgets batches below it and moves the covering epoch up."""
    log = log_of(0, 0, 1, 1)
    assert not log.advance_start(3)
    log.assign_hw(3)
    assert log.advance_start(9)
    assert (log.log_start, [b.base_offset for b in log.batches]) == (3, [3])
    assert log.epochs.entries == [(1, 3)]


def test_a_log_that_starts_at_its_end_has_no_records():
    """advance_start to the LEO forgets the last batch, too."""
    log = log_of(0, 0)
    log.assign_hw(2)
    assert log.advance_start(2)
    assert (log.log_start, log.leo, log.batches) == (2, 2, [])


def test_a_reset_log_is_empty_at_its_new_start():
    """Reset forgets records, epochs and producers."""
    log = log_of(0, 1)
    log.reset(9)
    assert (log.log_start, log.hw, log.leo, log.cells(), log.epochs.entries) == (9, 9, 9, (), [])


def test_a_checkpoint_outside_of_the_log_is_clamped_into_it():
    """A28: the log may have lost its tail since, or its start may have moved."""
    batches = [Batch(5, 0, 2)]
    assert LogView(batches, hw=9, log_start=5).hw == 7
    assert LogView(batches, hw=6, log_start=5).hw == 6
    assert LogView(batches, hw=1, log_start=5).hw == 5
