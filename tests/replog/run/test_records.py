"""Produce and fetch through the core, on real files: what goes in comes out, byte for byte."""

import asyncio
import gc
import tracemalloc
from functools import partial

import pytest
from serving import Broker, batch, batches, run

from replog.core.types import Error
from replog.run.serve.frames import UNSUPPORTED_VERSION, Api
from replog.store.directory import LogDirectory
from replog.store.files.config import LogConfig
from replog.store.files.errors import CorruptFileError, DirectoryInUseError
from replog.store.segments.batch import checksum
from replog.store.segments.records import Record, decode_batch, encode_batch


def values(data: bytes) -> list[str]:
    return [record.value.decode() for each in batches(data) for record in decode_batch(each.body.unwritten)]


def test_a_batch_is_stamped_and_otherwise_unchanged(tmp_path):
    async def scenario():
        broker = Broker(tmp_path)
        await broker.create("t")
        sent = batch("a", "b"), batch("c")
        assert [(await broker.produce(each))["base_offset"] for each in sent] == [0, 2]
        answer = await broker.fetch(0)
        assert (answer["high_watermark"], answer["last_stable_offset"]) == (3, 3)
        assert values(answer["records"]) == ["a", "b", "c"]
        epoch = broker.host.image.partitions["t-0"].leader_epoch.to_bytes(4, "big")
        # The CRC and all after it are the producer's bytes.
        assert answer["records"] == sent[0][:8] + sent[0][8:12] + epoch + sent[0][16:] + (
            (2).to_bytes(8, "big") + sent[1][8:12] + epoch + sent[1][16:]
        )

    run(scenario)


def test_memory_grows_with_the_number_of_batches_and_not_with_their_bytes(tmp_path):
    async def scenario():
        broker = Broker(tmp_path)
        await broker.create("t")
        batches_sent, body_bytes = 40, 15_000
        tracemalloc.start()
        try:
            for _ in range(batches_sent):
                await broker.produce(batch("x" * body_bytes))
            gc.collect()
            grown = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
        assert broker.host.broker.replicas["t-0"].state.log.leo == batches_sent
        assert grown < 8 * body_bytes, f"{grown} bytes for {batches_sent} batches"

    run(scenario)


def test_a_fetch_may_begin_inside_a_batch_and_ends_with_its_limit(tmp_path):
    async def scenario():
        broker = Broker(tmp_path)
        await broker.create("t")
        for n in range(5):
            await broker.produce(batch(f"{n}a", f"{n}b"))
        assert values((await broker.fetch(3))["records"])[0] == "1a"
        # Less than a batch: one is returned all the same.
        assert values((await broker.fetch(2, partition_max_bytes=1))["records"]) == ["1a", "1b"]
        assert (await broker.fetch(11))["error_code"] == Error.OFFSET_OUT_OF_RANGE
        assert (await broker.fetch(0, current_leader_epoch=1_000))["error_code"] == Error.UNKNOWN_LEADER_EPOCH

    run(scenario)


def test_a_fetch_waits_until_there_is_a_record(tmp_path):
    async def scenario():
        broker = Broker(tmp_path)
        await broker.create("t")
        waiting = asyncio.ensure_future(broker.fetch(0, wait_ms=10_000, client=broker.host.client()))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        await broker.produce(batch("a"))
        assert values((await waiting)["records"]) == ["a"]

    run(scenario)


def test_a_fetch_of_nothing_new_ends_in_time(tmp_path):
    async def scenario():
        broker = Broker(tmp_path)
        await broker.create("t")
        began = broker.host.now_ms()
        assert (await broker.fetch(0, wait_ms=50))["records"] == b""
        assert broker.host.now_ms() - began >= 40
        assert not broker.host._waiting, "nobody is left to be answered"

    run(scenario)


def test_a_retry_of_an_idempotent_producer_is_answered_with_the_first_place(tmp_path):
    async def scenario():
        broker = Broker(tmp_path)
        await broker.create("t")
        first = batch("a", producer=7, first=0)
        assert (await broker.produce(first))["base_offset"] == 0
        assert (await broker.produce(batch("b", producer=7, first=1)))["base_offset"] == 1
        assert (await broker.produce(first))["base_offset"] == 0
        gap = await broker.produce(batch("c", producer=7, first=9))
        assert gap["error_code"] == Error.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert (await broker.fetch(0))["high_watermark"] == 2

    run(scenario)


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        (lambda b: b[:-1] + b"?", Error.CORRUPT_MESSAGE),
        (lambda b: b[:40], Error.CORRUPT_MESSAGE),
        (lambda b: b"", Error.CORRUPT_MESSAGE),
        (lambda b: b + b, Error.INVALID_RECORD),
        (lambda b: bytes(7) + b"\1" + b[8:], Error.INVALID_RECORD),
        (lambda b: b[:16] + b"\1" + b[17:], Error.INVALID_RECORD),
    ],
    ids=["crc", "short", "none", "two", "offset", "old"],
)
def test_what_is_no_batch_is_refused(tmp_path, damage, error):
    async def scenario():
        broker = Broker(tmp_path)
        await broker.create("t")
        answer = await broker.produce(damage(batch("a")))
        assert (answer["error_code"], answer["base_offset"]) == (error, -1)
        assert (await broker.fetch(0))["high_watermark"] == 0

    run(scenario)


def test_a_producer_that_wants_no_answer_gets_none(tmp_path):
    async def scenario():
        broker = Broker(tmp_path)
        await broker.create("t")
        assert await broker.produce(batch("a"), acks=0) is None
        assert (await broker.fetch(0))["high_watermark"] == 1

    run(scenario)


@pytest.mark.parametrize("is_killed", [False, True])
def test_records_survive_a_restart_in_a_later_epoch(tmp_path, is_killed):
    async def scenario():
        broker = Broker(tmp_path)
        await broker.create("t", "u", partitions=2)
        await broker.produce(batch("a", producer=7, first=0))
        epoch = broker.host.image.partitions["t-0"].leader_epoch
        if is_killed:
            broker.die()
        else:
            await broker.stop()
        broker = Broker(tmp_path)
        answer = await broker.fetch(0)
        assert (answer["error_code"], values(answer["records"])) == (Error.NONE, ["a"])
        assert (await broker.produce(batch("a", producer=7, first=0)))["base_offset"] == 0
        assert (await broker.produce(batch("b", producer=7, first=1)))["base_offset"] == 1
        ends = await broker.ask(
            Api.OFFSET_FOR_LEADER_EPOCH,
            topics=[
                {
                    "topic": "t",
                    "partitions": [{"partition": 0, "current_leader_epoch": -1, "leader_epoch": epoch}],
                }
            ],
        )
        assert ends["topics"][0]["partitions"][0] == {
            "partition": 0,
            "error_code": Error.NONE,
            "leader_epoch": epoch,
            "end_offset": 1,
        }
        assert set(broker.host.broker.replicas) == {"__consumer_offsets-0", "t-0", "t-1", "u-0", "u-1"}

    run(scenario)


def test_offsets_of_ends_and_of_times(tmp_path):
    async def scenario():
        broker = Broker(tmp_path)
        await broker.create("t")
        await broker.produce(batch("a", "b"))
        await broker.produce(batch("c"))

        assert [await offset_of(broker, which) for which in (-1, -2)] == [(3, -1), (0, -1)]
        for time, expected in ((0, (0, 1_000)), (1_000, (0, 1_000)), (1_001, (1, 1_001)), (1_002, (-1, -1))):
            assert await offset_of(broker, time) == expected
        assert await offset_of(broker, -3) == (1, 1_001)
        assert await offset_of(broker, -3, version=6) == await offset_of(broker, -4) == UNSUPPORTED_VERSION

    run(scenario)


async def offset_of(broker: Broker, timestamp: int, version: int = 7) -> tuple[int, int] | int:
    """Return the offset and the time that are listed, or the error."""
    wanted = [{"partition_index": 0, "timestamp": timestamp}]
    answer = await broker.ask(Api.LIST_OFFSETS, version, topics=[{"name": "t", "partitions": wanted}])
    found = answer["topics"][0]["partitions"][0]
    assert (found["leader_epoch"] < 0) == (found["offset"] < 0)
    return found["error_code"] or (found["offset"], found["timestamp"])


def timed(*times: int, codec: int = 0) -> bytes:
    """Return a batch of records with these times, as a producer sends it."""
    data = bytearray(encode_batch([Record(b"%d" % at, timestamp=at) for at in times]))
    data[22] |= codec
    data[17:21] = checksum(data[21:]).to_bytes(4, "big")
    return bytes(data)


def test_the_offset_of_a_time_is_that_of_its_record_in_any_segment(tmp_path, monkeypatch):
    """Times may fall; of several records with the latest time the first counts; deleted ones do not."""
    small = LogConfig(segment_bytes=250, index_interval_bytes=1)
    monkeypatch.setattr(LogDirectory, "open", partial(LogDirectory.open, config=small))
    rows = [[10, 30, 20], [5], [40], [40, 35], [12], [60, 50], [60], [45]]
    flat = [at for row in rows for at in row]

    async def scenario():
        broker = Broker(tmp_path)
        await broker.create("t")
        for row in rows:
            await broker.produce(timed(*row))
        assert len(list((tmp_path / "t-0").glob("*.log"))) > 1
        for _ in range(2):
            for time in range(62):
                expected = next(((n, at) for n, at in enumerate(flat) if at >= time), (-1, -1))
                assert await offset_of(broker, time) == expected
            assert await offset_of(broker, -3) == (flat.index(60), 60)
            await broker.stop()
            broker = Broker(tmp_path)
        wanted = [{"name": "t", "partitions": [{"partition_index": 0, "offset": 2}]}]
        await broker.ask(Api.DELETE_RECORDS, topics=wanted, timeout=60_000)
        assert await offset_of(broker, 30) == (4, 40)
        # A codec that cannot be read: the first offset of the batch, and its latest time.
        await broker.produce(timed(70, 80, codec=3))
        assert await offset_of(broker, 75) == (len(flat), 80)
        await broker.stop()

    run(scenario)


def test_deleted_records_are_gone(tmp_path):
    async def scenario():
        broker = Broker(tmp_path)
        await broker.create("t")
        for n in range(3):
            await broker.produce(batch(str(n)))
        for offset, expected in ((2, (Error.NONE, 2)), (9, (Error.OFFSET_OUT_OF_RANGE, -1))):
            wanted = [{"name": "t", "partitions": [{"partition_index": 0, "offset": offset}]}]
            answer = await broker.ask(Api.DELETE_RECORDS, topics=wanted, timeout=60_000)
            found = answer["topics"][0]["partitions"][0]
            assert (found["error_code"], found["low_watermark"]) == expected
        assert (await broker.fetch(1))["error_code"] == Error.OFFSET_OUT_OF_RANGE
        assert (await broker.fetch(2))["log_start_offset"] == 2

    run(scenario)


def test_a_directory_is_of_one_broker_and_of_replog(tmp_path):
    async def scenario():
        broker = Broker(tmp_path / "a")
        with pytest.raises(DirectoryInUseError):
            Broker(tmp_path / "a")
        await broker.create("t")
        await broker.stop()
        (tmp_path / "a" / "replog-metadata.json").rename(tmp_path / "gone")
        files = {path: path.read_bytes() for path in (tmp_path / "a").rglob("*") if path.is_file()}
        with pytest.raises(CorruptFileError, match="choose another directory"):
            Broker(tmp_path / "a")
        left = {path: path.read_bytes() for path in (tmp_path / "a").rglob("*") if path.is_file()}
        assert left == files, "what is refused is not touched"
        (tmp_path / "a" / "replog-metadata.json").write_text('{"format": 1}')
        with pytest.raises(CorruptFileError, match="damaged"):
            Broker(tmp_path / "a")

    run(scenario)


def test_a_failing_disk_stops_the_broker(tmp_path):
    async def scenario():
        broker = Broker(tmp_path)
        await broker.create("t")
        # As if the device had gone.
        broker.host.files.directory.health.fail("writing", OSError("gone"))
        produce = asyncio.ensure_future(broker.produce(batch("a")))
        with pytest.raises(Exception, match="gone"):
            await broker.host.stopped
        assert not produce.done(), "a record that is on no disk is not acknowledged"
        produce.cancel()

    run(scenario)
