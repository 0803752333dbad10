"""A simulated broker's disk: the model and the real store behave alike, and keep flushed records."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replog.core.effects import (
    AdvanceStart,
    Append,
    Flush,
    Reset,
    Send,
    StoreEpochs,
    StoreHighWatermark,
    Truncate,
)
from replog.core.log.logview import LogView
from replog.core.messages import LATEST, ListOffsetsRequest
from replog.core.types import Batch
from replog.run.storage import StorageError
from replog.sim.cluster.storage import MemoryStorage
from replog.sim.disks.stored import StoreStorage

KINDS = (MemoryStorage, StoreStorage)
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 3)),
        st.tuples(st.sampled_from(["truncate", "start"]), st.integers(0, 12)),
        st.tuples(st.sampled_from(["flush", "epoch", "crash"]), st.just(0)),
        st.tuples(st.just("checkpoint"), st.integers(0, 9)),
    ),
    max_size=14,
)


def opened(kind):
    storage = kind()
    storage.recover()
    return storage


def perform(storage, log: LogView, name: str, number: int) -> LogView:
    """Perform one action on a log and its disk, like a broker; return the log, or the recovered one."""
    if name == "append":
        epoch = max(log.epochs.latest, 0)
        batch = Batch(log.leo, epoch, number, 5, 0, log.leo, b"%d" % log.leo)
        if log.append(batch):
            storage.perform(StoreEpochs(tuple(log.epochs.entries)))
        storage.perform(Append((batch,)))
    elif name == "epoch":
        log.epochs.assign(log.epochs.latest + 1, log.leo)
        storage.perform(StoreEpochs(tuple(log.epochs.entries)))
    elif name == "start":
        log.raise_hw(number)
        if log.advance_start(number):
            storage.perform(AdvanceStart(log.log_start))
    elif name == "truncate" and number < log.log_start:
        log.reset(number)
        storage.perform(Reset(number))
        storage.perform(StoreEpochs(()))
    elif name == "truncate":
        if log.truncate_to(number):
            storage.perform(Truncate(number))
        if log.epochs.truncate_from_end(min(number, log.leo)):
            storage.perform(StoreEpochs(tuple(log.epochs.entries)))
    elif name == "flush":
        storage.perform(Flush())
    elif name == "checkpoint":
        log.assign_hw(number)
        storage.perform(StoreHighWatermark(log.hw))
    else:
        storage.crash()
        return storage.recover().log
    return log


@settings(deadline=None, max_examples=60)
@given(ACTIONS)
def test_a_crash_gives_back_the_log_on_both_kinds_of_disk(actions):
    """After any effects a killed process finds its records, epochs and HW checkpoint, on either disk."""
    found = []
    for kind in KINDS:
        storage, log = opened(kind), LogView()
        for name, number in actions:
            log = perform(storage, log, name, number)
        assert storage.end() == log.leo
        recovered = perform(storage, log, "crash", 0)
        assert (recovered.log_start, recovered.batches) == (log.log_start, log.batches)
        found.append((recovered.batches, recovered.epochs.entries, recovered.hw))
    assert found[0] == found[1]


@pytest.mark.parametrize("kind", KINDS)
def test_a_log_may_start_inside_of_a_batch(kind):
    """A client deletes up to any offset; the batch stays whole, and a start reads it."""
    storage, log = opened(kind), LogView()
    for name, number in (("append", 1), ("append", 3), ("start", 2)):
        log = perform(storage, log, name, number)
    recovered = perform(storage, log, "crash", 0)
    assert (recovered.log_start, recovered.batches, recovered.epochs.entries) == (2, log.batches, [(0, 2)])


@settings(deadline=None, max_examples=60)
@given(ACTIONS, st.integers(0, 1 << 30), st.sampled_from(KINDS))
def test_a_power_loss_keeps_what_was_flushed_and_a_prefix_of_the_rest(actions, seed, kind):
    """Flushed records survive, and the recovered log is a prefix of the former one."""
    storage, log = opened(kind), LogView()
    for name, number in actions:
        log = perform(storage, log, name, number)
    flushed = storage.flushed()
    storage.lose_power(Random(seed).randrange)
    after = storage.recover().log
    assert flushed <= after.leo == storage.end()
    assert after.log_start == log.log_start
    assert after.batches == log.batches[: len(after.batches)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_clean_shutdown_is_found_once(kind):
    """The marker has the broker epoch, and is consumed by the next start."""
    storage = opened(kind)
    perform(storage, LogView(), "append", 2)
    storage.close(41)
    assert storage.recover().previous_broker_epoch == 41
    storage.crash()
    assert storage.recover().previous_broker_epoch == -1
    assert storage.end() == 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", [0, 1, 2])
def test_an_armed_fault_strikes_and_the_disk_opens_again(kind, fault):
    """A failed write, a failed fsync, a full disk: a StorageError; flushed records are found afterwards."""
    storage, log = opened(kind), LogView()
    log = perform(storage, log, "append", 1)
    storage.flush()
    storage.arm(0, fault)
    assert storage.is_armed()

    def append_and_flush():
        for _ in range(3):
            perform(storage, log.copy(), "append", 1)
            storage.perform(Flush())

    with pytest.raises(StorageError):
        append_and_flush()
    storage.arm(-1, 0)
    assert not storage.is_armed()
    storage.lose_power(lambda n: 0)
    assert storage.recover().log.cells() == ((0, b"0"),)


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_and_a_reset(kind):
    """A copy keeps its content when the original starts over elsewhere."""
    storage = opened(kind)
    perform(storage, LogView(), "append", 3)
    twin = storage.copy()
    storage.perform(Reset(9))
    assert storage.end() == 9
    assert twin.recover().log.leo == 3


def test_an_effect_that_is_none_of_the_disks_is_a_mistake_of_the_runner():
    """Messages and timers never reach a disk."""
    with pytest.raises(AssertionError, match="no disk effect"):
        MemoryStorage().perform(Send(1, ListOffsetsRequest(1, 1, 1, LATEST)))
