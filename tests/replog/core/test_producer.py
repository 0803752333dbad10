"""Idempotent producers: duplicates in the window, gaps, epochs, wrap-around, a table derived from the log."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from replog.core.log.producer import SEQUENCE_LIMIT, WINDOW, ProducerTable, last_seq
from replog.core.types import Batch, Error


def seq(first: int, count: int = 1, epoch: int = 0, base: int = 0) -> Batch:
    return Batch(base, 0, count, 7, epoch, first)


def table_after(*batches: Batch) -> ProducerTable:
    table = ProducerTable()
    table.rebuild(batches)
    return table


def test_the_last_five_batches_are_recognised_and_the_sixth_is_not():
    """A2: a duplicate is answered with its old offset while it is among the last five batches."""
    assert WINDOW == 5
    table = table_after(*(seq(n, base=10 + n) for n in range(WINDOW + 1)))
    assert table.duplicate_of(seq(0)) is None
    assert table.check(seq(0)) is Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    for n in range(1, WINDOW + 1):
        found = table.duplicate_of(seq(n))
        assert found is not None
        assert found.base_offset == 10 + n


def test_a_batch_with_the_same_start_but_another_length_is_no_duplicate():
    """A2: both sequence numbers must be equal."""
    table = table_after(seq(0, 3))
    assert table.duplicate_of(seq(0, 2)) is None
    assert table.check(seq(0, 2)) is Error.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_gap_is_refused_and_the_next_number_accepted():
    """A2: within an epoch the first sequence number follows the last one."""
    table = table_after(seq(0, 3))
    assert table.check(seq(4)) is Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert table.check(seq(3)) is Error.NONE


def test_an_older_epoch_is_fenced_and_a_newer_one_starts_at_zero():
    """A2: INVALID_PRODUCER_EPOCH for older, firstSeq 0 for newer epochs."""
    table = table_after(seq(0, 1, epoch=2))
    assert table.check(seq(1, 1, epoch=1)) is Error.INVALID_PRODUCER_EPOCH
    assert table.check(seq(1, 1, epoch=3)) is Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert table.check(seq(0, 1, epoch=3)) is Error.NONE
    table.update(seq(0, 1, epoch=3))
    assert table.duplicate_of(seq(0, 1, epoch=2)) is None


def test_an_unknown_producer_may_begin_anywhere():
    """A2: an unknown producer id may start with any sequence number."""
    assert ProducerTable().check(seq(41)) is Error.NONE


def test_sequence_numbers_wrap_to_zero():
    """A2: after 2^31 - 1 comes 0."""
    end = seq(SEQUENCE_LIMIT - 2, 2)
    assert last_seq(end) == SEQUENCE_LIMIT - 1
    assert table_after(end).check(seq(0)) is Error.NONE


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3)), max_size=12), st.integers(0, 12))
def test_the_table_is_a_function_of_the_log(appended, kept):
    """Updating along an append and rebuilding from the log give the same table, at every length."""
    batches, base = [], 0
    for producer_id, count in appended:
        batches.append(Batch(base, 0, count, producer_id, 0, base))
        base += count
    grown = ProducerTable()
    for batch in batches[:kept]:
        grown.update(batch)
    assert grown == table_after(*batches[:kept])
