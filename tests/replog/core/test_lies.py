"""Lying peers: for any message, in any role, no core raises and its log stays a log."""

from __future__ import annotations

from core_support import CLIENT, NOW, PARTITION, log_of, metadata, replica_of, sent
from hypothesis import given
from hypothesis import strategies as st

from replog.core.controller.controller import Controller
from replog.core.controller.state import ControllerState
from replog.core.effects import Fired, Received, Timer
from replog.core.log.epochs import EpochCache
from replog.core.messages import (
    AlterPartitionReply,
    AlterPartitionRequest,
    ElectRequest,
    EpochEndReply,
    EpochEndRequest,
    FetchReply,
    FetchRequest,
    HeartbeatRequest,
    ListOffsetsReply,
    ListOffsetsRequest,
    MetadataRequest,
    ProduceRequest,
    RegisterRequest,
)
from replog.core.types import Batch, EpochEnd, Error

numbers = st.integers(-3, 7) | st.sampled_from([-(1 << 63), 1 << 31, (1 << 63) - 1])
ids = st.integers(-2, 4)
errors = st.sampled_from(Error)
batches = st.builds(
    Batch,
    numbers,
    numbers,
    st.integers(-2, 3),
    ids,
    st.integers(-1, 2),
    st.integers(-2, 5),
    st.binary(max_size=3),
)
ends = st.builds(EpochEnd, numbers, numbers)
correlations = st.integers(0, 6)
messages = st.one_of(
    st.builds(ProduceRequest, correlations, batches, st.integers(-3, 3), numbers),
    st.builds(
        FetchRequest, correlations, ids, numbers, numbers, numbers, numbers, st.integers(-5, 900), numbers
    ),
    st.builds(
        FetchReply,
        correlations,
        errors,
        numbers,
        numbers,
        st.lists(batches, max_size=3).map(tuple),
        st.none() | ends,
    ),
    st.builds(EpochEndRequest, correlations, ids, numbers, numbers),
    st.builds(EpochEndReply, correlations, errors, ends),
    st.builds(ListOffsetsRequest, correlations, ids, numbers, numbers),
    st.builds(ListOffsetsReply, correlations, errors, numbers),
    st.builds(
        AlterPartitionReply, correlations, errors, numbers, numbers, st.lists(ids, max_size=3).map(tuple)
    ),
)
steps = st.lists(
    st.tuples(st.just("message"), messages)
    | st.tuples(st.just("timer"), st.sampled_from(Timer))
    | st.tuples(st.just("lead"), st.just(None))
    | st.tuples(st.just("follow"), st.just(None)),
    max_size=15,
)


def check_log(log) -> None:
    """P1 and P21: bounds, contiguous batches, an epoch cache that increases and agrees with the records."""
    assert log.log_start <= log.hw <= log.leo
    at = log.batches[0].base_offset if log.batches else log.leo
    for batch in log.batches:
        assert batch.base_offset == at
        assert batch.count > 0
        at = batch.next_offset
    assert at == log.leo
    entries = log.epochs.entries
    assert entries == sorted(set(entries))
    assert len({epoch for epoch, _ in entries}) == len({start for _, start in entries}) == len(entries)
    starts = dict(reversed(entry) for entry in entries)
    for batch in log.batches:
        assert starts.get(batch.base_offset, batch.epoch) == batch.epoch


@given(steps)
def test_no_message_makes_a_replica_raise_or_breaks_its_log(taken):
    """Unknown epochs, offsets and replicas, negative counts, unrequested replies, in any order."""
    replica, version = replica_of(1, log_of(0, 0, 1)), 0
    for kind, what in taken:
        if kind == "message":
            replica.receive(CLIENT, what, NOW)
        elif kind == "timer":
            replica.fire(what, replica.state.correlation, NOW)
        else:
            version += 1
            leader = 1 if kind == "lead" else 0
            replica.apply(metadata(leader, version + 1, version, version=version), 2, NOW)
        check_log(replica.state.log)
        assert replica.copy().state == replica.state


@given(st.lists(st.tuples(messages, st.booleans()), max_size=8))
def test_a_follower_that_is_lied_to_in_the_right_place_keeps_a_sound_log(replies):
    """Even replies with the right correlation and wrong content leave a valid log."""
    replica = replica_of(1, log_of(0, 0, 1))
    replica.apply(metadata(0, 2), 2, NOW)
    for reply, is_answer in replies:
        requests = sent(replica.fire(Timer.SEND_FETCH, 0, NOW))
        if is_answer and requests and isinstance(reply, FetchReply | ListOffsetsReply | EpochEndReply):
            object.__setattr__(reply, "correlation", requests[0].correlation)
        replica.receive(0, reply, NOW)
        check_log(replica.state.log)


requests = st.one_of(
    st.builds(RegisterRequest, st.integers(0, 3), st.integers(0, 2), numbers),
    st.builds(HeartbeatRequest, st.integers(0, 3), st.integers(0, 8), numbers, st.booleans()),
    st.builds(MetadataRequest, ids, numbers),
    st.builds(ElectRequest, correlations, st.sampled_from([PARTITION, "no-0"]), st.booleans()),
    st.builds(
        AlterPartitionRequest,
        correlations,
        st.sampled_from([PARTITION, "no-0"]),
        st.integers(0, 3),
        st.integers(0, 8),
        st.integers(-1, 5),
        st.integers(0, 12),
        st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 8)), max_size=4).map(tuple),
        st.booleans(),
    ),
)


@given(st.lists(st.tuples(requests, st.integers(0, 12_000)), max_size=25))
def test_no_request_makes_the_controller_raise_or_breaks_its_record(taken):
    """ISR within the replicas, never empty, with the leader; epochs only grow, and with every change."""
    controller = Controller(ControllerState())
    controller.create_partition(PARTITION, (0, 1, 2))
    now, before = NOW, controller.state.partitions[PARTITION]
    for request, pause in taken:
        now += pause
        for event in (Received(0, request), Fired(Timer.SESSION_CHECK)):
            controller.handle(event, now)
            image = controller.state.partitions[PARTITION]
            assert image.isr
            assert set(image.isr) <= {0, 1, 2}
            assert image.leader == -1 or image.leader in image.isr
            assert image.leader_epoch >= before.leader_epoch
            assert (image == before) == (image.partition_epoch == before.partition_epoch)
            assert image.partition_epoch - before.partition_epoch <= len(before.replicas)
            before = image


def test_a_cache_is_only_equal_to_a_cache():
    """Values of the core compare by content and only with their own kind."""
    assert EpochCache([(0, 0)]) != [(0, 0)]
