"""The leader-epoch cache: answers by A20 in every historical form, and the entries left by truncation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replog.core.log.epochs import EpochCache
from replog.core.protocol import Truncation
from replog.core.types import UNDEFINED, EpochEnd

F4 = ((1, 20), (2, 80), (3, 120))


@pytest.mark.parametrize(
    ("asked", "end"),
    [(-1, (-1, -1)), (0, (0, 20)), (1, (1, 80)), (2, (2, 120)), (3, (3, 150)), (4, (-1, -1))],
)
def test_the_example_of_the_seeds_is_answered_as_today(asked, end):
    """F4: an epoch before the first known one ends at its start, one after the last is undefined."""
    assert EpochCache(F4).end_offset_for(asked, 150) == EpochEnd(*end)


@pytest.mark.parametrize(
    ("rules", "asked", "end"),
    [
        (Truncation.KIP101, 1, EpochEnd(-1, 80)),
        (Truncation.KIP101, 3, EpochEnd(-1, 150)),
        (Truncation.KIP101, 0, UNDEFINED),
        (Truncation.KIP279, 1, EpochEnd(1, 80)),
        (Truncation.KIP279, 0, UNDEFINED),
        (Truncation.KAFKA7415, 0, EpochEnd(0, 20)),
    ],
)
def test_older_rules_say_less(rules, asked, end):
    """KIP-101 answers without the epoch; up to 2.0 an epoch before the first known one is undefined."""
    assert EpochCache(F4).end_offset_for(asked, 150, rules) == end


def test_a_skipped_epoch_is_answered_by_the_one_before_it():
    """F4: cache (0,0)(5,10): epoch 3 -> (0, 10)."""
    assert EpochCache([(0, 0), (5, 10)]).end_offset_for(3, 12) == EpochEnd(0, 10)


def test_an_empty_cache_knows_nothing():
    """Without entries every answer is undefined."""
    assert EpochCache().end_offset_for(0, 5) == UNDEFINED


def test_an_entry_at_the_log_end_goes_although_no_record_goes():
    """KAFKA-10706: truncating at or past the LEO drops entries that start there."""
    cache = EpochCache([(0, 0), (3, 7)])
    assert cache.truncate_from_end(7)
    assert cache.entries == [(0, 0)]


def test_the_epoch_that_covers_a_new_log_start_begins_there():
    """Truncating from the start keeps the covering epoch, moved up."""
    cache = EpochCache(F4)
    cache.truncate_from_start(100)
    assert cache.entries == [(2, 100), (3, 120)]


def test_a_batch_in_the_middle_of_the_latest_epoch_changes_nothing():
    """Assign is a no-op for the epoch that is already the latest."""
    cache = EpochCache(F4)
    assert not cache.assign(3, 140)
    assert cache.entries == list(F4)


steps = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 30)), max_size=12)


@given(steps)
def test_both_columns_strictly_increase_whatever_is_assigned(assigned):
    """P21: contradicted entries are removed, so epochs and offsets always strictly increase."""
    cache = EpochCache()
    for epoch, start in assigned:
        cache.assign(epoch, start)
        assert cache.latest == epoch
        columns = list(zip(*cache.entries, strict=True))
        assert all(list(column) == sorted(set(column)) for column in columns)


@given(steps, st.integers(-1, 8))
def test_an_answer_never_names_a_later_epoch_and_ends_inside_the_log(assigned, asked):
    """A20: the answered epoch is at most the requested one; its end is an entry's start or the LEO."""
    cache = EpochCache()
    for epoch, start in assigned:
        cache.assign(epoch, start)
    end = cache.end_offset_for(asked, 40)
    assert end.epoch <= asked
    assert end == UNDEFINED or end.end_offset in {40, *(start for _, start in cache.entries)}
