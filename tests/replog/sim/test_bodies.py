"""Messages that leave have what is on the disk, and the disk has what was written."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from replog.core.effects import AdvanceStart, Append, Reset, StoreEpochs, Truncate
from replog.core.log.logview import LogView
from replog.core.messages import FetchReply
from replog.core.types import Batch, Error
from replog.run.storage import StorageError
from replog.sim.disks.stored import StoreStorage

LARGE = 1 << 20
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 1_800)),
        st.tuples(st.sampled_from(["truncate", "start"]), st.integers(0, 16)),
        st.tuples(st.sampled_from(["flush", "crash"]), st.just(0)),
    ),
    max_size=16,
)


def reply(*batches: Batch) -> FetchReply:
    return FetchReply(1, Error.NONE, 0, 0, batches)


def act(disk: StoreStorage, log: LogView, name: str, number: int, life: int) -> LogView:
    """Perform one action on a log and its disk, like a broker; return the log, or the recovered one."""
    if name == "append":
        body = Random(life).randbytes(number)
        batch = Batch(log.leo, life, 1 + number % 2, body=body)
        if log.append(batch):
            disk.perform(StoreEpochs(tuple(log.epochs.entries)))
        disk.perform(Append((batch,)))
    elif name == "start":
        log.raise_hw(number)
        if log.advance_start(number):
            disk.perform(AdvanceStart(log.log_start))
    elif name == "truncate" and number < log.log_start:
        log.reset(number)
        disk.perform(Reset(number))
    elif name == "truncate":
        if log.truncate_to(number):
            disk.perform(Truncate(number))
        if log.epochs.truncate_from_end(log.leo):
            disk.perform(StoreEpochs(tuple(log.epochs.entries)))
    elif name == "flush":
        disk.flush()
    else:
        disk.crash()
        return disk.recover().log
    return log


@settings(deadline=None, max_examples=60)
@given(ACTIONS)
@example([("append", 1), ("append", 1), ("start", 1)])  # the log starts inside of its first batch
def test_what_is_read_is_what_was_written(actions):
    """After truncations, deletions and starts, from each offset, in pieces of each size."""
    disk = StoreStorage()
    log = disk.recover().log
    written: dict[int, bytes] = {}
    for life, (name, number) in enumerate(actions):
        if name == "append":
            written[log.leo] = Random(life).randbytes(number)
        log = act(disk, log, name, number, life)
        for start in range(log.log_start, log.leo):
            for limit in (1, 2_500, LARGE):
                batches = log.read(start, log.leo, limit)
                message = disk.with_bodies(reply(*batches))
                assert isinstance(message, FetchReply)
                assert [b.content for b in message.batches] == [written[b.base_offset] for b in batches]
                assert [b.base_offset for b in message.batches] == [b.base_offset for b in batches]


@pytest.mark.parametrize("body", [b"other", b"longer"])
def test_other_bytes_in_a_segment_are_not_sent(body: bytes):
    """Not even those of a whole batch with a right CRC: the disk has failed."""
    disks = StoreStorage(), StoreStorage()
    logs = [disk.recover().log for disk in disks]
    for disk, log, content in zip(disks, logs, (b"right", body), strict=True):
        for number in range(2):
            batch = Batch(number, 0, 1, body=content)
            log.append(batch)
            disk.perform(Append((batch,)))
    batches = tuple(logs[0].batches)
    disks[0].with_bodies(reply(*batches))
    with pytest.raises(StorageError):
        disks[1].with_bodies(reply(*batches))
