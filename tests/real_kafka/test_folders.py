"""Folders that real brokers have left: sound ones have no fault, and what is broken in a copy is named."""

from __future__ import annotations

import shutil
import struct
import zlib
from pathlib import Path

import crc32c
import pytest
from click.testing import CliRunner
from conformance.apache_kafka.__main__ import main
from conformance.apache_kafka.batches import old_message_of, parse_batches
from conformance.apache_kafka.cluster import Cluster, Plan
from conformance.apache_kafka.drive import Driver
from conformance.apache_kafka.folders import NoFolder
from conformance.apache_kafka.judging import judge
from conformance.apache_kafka.nodes import wait_for
from conformance.apache_kafka.releases import NEWEST, Metadata, jar
from conformance.apache_kafka.schemas import METADATA, Schemas
from conformance.apache_kafka.stories import STORIES, plan_of, topic_configs
from conformance.apache_kafka.traces import scenario_run

from real_kafka.loads import (
    CLEANING,
    RUNNING,
    STOPPED,
    await_checkpoint,
    copy,
    write_for_cleaning,
    write_history,
)

PARTITION = "orders-0"
BROKERS = ("1", "2", "3")


def copied(history, tmp_path, state):
    return [Path(shutil.copytree(history / state / broker, tmp_path / broker)) for broker in BROKERS]


def judged(folders):
    return judge(folders, Schemas(jar(NEWEST, "kafka-metadata"), METADATA))


@pytest.mark.parametrize("state", [RUNNING, STOPPED])
def test_sound_folders_have_no_fault(history, state):
    judgement = judged([history / state / broker for broker in BROKERS])
    assert not judgement.faults
    assert str(judgement).startswith("brokers 1, 2, 3: 3 replicas, 27 batches, ISRs by the metadata log")


def test_a_folder_of_something_else_is_refused(tmp_path):
    with pytest.raises(NoFolder, match=r"has no meta\.properties"):
        judge([tmp_path], None)


def test_a_compressed_message_of_format_1_is_as_many_records_as_it_has(tmp_path):
    """It has the offset of its last record alone: those of the others are not missing."""
    (tmp_path / PARTITION).mkdir()
    (tmp_path / "meta.properties").write_text("broker.id=1\n")
    message = bytearray(old_message_of(b"twenty of them, compressed", 1000))
    message[17] = 1  # gzip
    message[12:16] = struct.pack(">I", zlib.crc32(message[16:]))
    data = b"".join(struct.pack(">q", offset) + message[8:] for offset in (19, 39))
    log(tmp_path).write_bytes(data)
    assert not judge([tmp_path], None).faults
    log(tmp_path).write_bytes(data[len(message) :] + data[: len(message)])
    assert [fault.kind for fault in judge([tmp_path], None).faults] == ["offsets"]


# What breaks the folders; each returns nothing, and is judged by its kind and its broker.


def log(folder):
    return folder / PARTITION / "00000000000000000000.log"


def pieces(folder):
    return [batch.data for batch in parse_batches(log(folder).read_bytes())]


def rewrite(folder, change):
    """Replace the list of batches."""
    batches = pieces(folder)
    change(batches)
    log(folder).write_bytes(b"".join(batches))


def summed(batch):
    """The batch with the checksum of its bytes."""
    return batch[:17] + struct.pack(">I", crc32c.crc32c(batch[21:])) + batch[21:]


def replace_line(path, line, by):
    text = path.read_text()
    assert line in text
    path.write_text(text.replace(line, by))


def flip_a_bit(folders):
    data = bytearray(log(folders[1]).read_bytes())
    data[70] ^= 1
    log(folders[1]).write_bytes(data)


def move_an_epoch(folders):
    replace_line(folders[2] / PARTITION / "leader-epoch-checkpoint", "1 6", "1 4")


def drop_an_epoch(folders):
    replace_line(folders[0] / PARTITION / "leader-epoch-checkpoint", "3\n0 0\n1 6\n", "2\n0 0\n")


def raise_the_high_watermark(folders):
    replace_line(folders[0] / "replication-offset-checkpoint", "orders 0 18", "orders 0 19")


def raise_the_log_start(folders):
    (folders[2] / "log-start-offset-checkpoint").write_text("0\n1\norders 0 20\n")


def write_another_record(folders):
    """It has the checksum of its bytes: only the other replicas show that it was not the leader's."""
    rewrite(folders[2], lambda each: each.__setitem__(2, summed(each[2].replace(b"record 4", b"record x"))))


def lose_the_last_record_of_a_member(folders):
    rewrite(folders[1], lambda batches: batches.pop())
    replace_line(folders[1] / "replication-offset-checkpoint", "orders 0 18", "orders 0 16")


def lose_it_everywhere(folders):
    for folder in folders:
        rewrite(folder, lambda batches: batches.pop())


def lose_a_record_in_between(folders):
    rewrite(folders[0], lambda batches: batches.pop(4))


def swap_two_batches(folders):
    rewrite(folders[0], lambda batches: batches.insert(3, batches.pop(4)))


def claim_an_epoch(folders):
    """Consistent in each folder and between them: only the controller has no such epoch."""
    for folder in folders:
        last = pieces(folder)[-1]
        log(folder).write_bytes(b"".join([*pieces(folder)[:-1], last[:12], struct.pack(">i", 9), last[16:]]))
        replace_line(
            folder / PARTITION / "leader-epoch-checkpoint", "3\n0 0\n1 6\n2 12\n", "4\n0 0\n1 6\n2 12\n9 16\n"
        )


def forget_a_sequence_number(folders):
    path = folders[1] / PARTITION / "00000000000000000018.snapshot"
    data = bytearray(path.read_bytes())
    data[20:24] = struct.pack(">i", 15)  # of 17
    data[2:6] = struct.pack(">I", crc32c.crc32c(bytes(data[6:])))
    path.write_bytes(data)


def write_a_batch_twice(folders):
    for folder in folders:
        rewrite(folder, lambda batches: batches.append(struct.pack(">q", 18) + batches[-1][8:]))


def cut_a_batch(folders):
    data = log(folders[2]).read_bytes()
    log(folders[2]).write_bytes(data[:-3])


def change_the_topic_id(folders):
    path = folders[1] / PARTITION / "partition.metadata"
    path.write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA")


def remove_a_replica(folders):
    shutil.rmtree(folders[0] / PARTITION)


def break_a_checkpoint(folders):
    replace_line(folders[0] / PARTITION / "leader-epoch-checkpoint", "1 6", "1 six")


# A snapshot of producers is written at a stop, and only then is an end that is torn a fault.
OF_STOPPED = (cut_a_batch, forget_a_sequence_number)


@pytest.mark.parametrize(
    ("corrupt", "kind", "broker"),
    [
        (flip_a_bit, "batch", "2"),
        (cut_a_batch, "batch", "3"),
        (move_an_epoch, "epoch-cache", "3"),
        (drop_an_epoch, "epoch-cache", "1"),
        (raise_the_high_watermark, "checkpoint", "1"),
        (raise_the_log_start, "checkpoint", "3"),
        (write_another_record, "log-matching", ""),
        (lose_the_last_record_of_a_member, "committed", "2"),
        (lose_it_everywhere, "checkpoint", "1"),
        (lose_a_record_in_between, "offsets", "1"),
        (swap_two_batches, "offsets", "1"),
        (claim_an_epoch, "undecided-epoch", "1"),
        (forget_a_sequence_number, "producer-state", "2"),
        (write_a_batch_twice, "producer-state", "1"),
        (change_the_topic_id, "identity", "2"),
        (remove_a_replica, "identity", "1"),
        (break_a_checkpoint, "file", "1"),
    ],
)
def test_what_is_broken_is_named(history, tmp_path, corrupt, kind, broker):
    folders = copied(history, tmp_path, STOPPED if corrupt in OF_STOPPED else RUNNING)
    corrupt(folders)
    faults = judged(folders).faults
    assert (PARTITION, broker, kind) in [(fault.partition, fault.broker, fault.kind) for fault in faults]


@pytest.mark.parametrize(
    ("corrupt", "kind"),
    [
        (write_another_record, "log-matching"),
        (lose_the_last_record_of_a_member, "committed"),
        (claim_an_epoch, "undecided-epoch"),
        (raise_the_high_watermark, "checkpoint"),
    ],
)
def test_nothing_else_is_named(history, tmp_path, corrupt, kind):
    folders = copied(history, tmp_path, RUNNING)
    corrupt(folders)
    assert {fault.kind for fault in judged(folders).faults} == {kind}


def test_the_command_names_faults_and_says_so_by_its_code(history, tmp_path):
    folders = copied(history, tmp_path, RUNNING)
    command = ["folders", *map(str, folders)]
    sound = CliRunner().invoke(main, command)
    assert (sound.exit_code, sound.output.endswith("faults: none\n")) == (0, True)
    raise_the_high_watermark(folders)
    broken = CliRunner().invoke(main, command)
    first = "orders-0, broker 1: checkpoint: the high watermark is 19, and the log ends at 18"
    assert (broken.exit_code, broken.output.splitlines()[0]) == (1, first)
    assert CliRunner().invoke(main, ["folders", str(tmp_path)]).exit_code == 2


@pytest.mark.slow
@pytest.mark.parametrize("release", ["4.1.1", "3.9.1", "2.8.2", "0.11.0.3", "0.10.2.2"], indirect=True)
def test_folders_of_every_kind_have_no_fault(release, tmp_path):
    """Indexes are preallocated; with ZooKeeper no folder has an ISR, and in 0.10 no batch has an epoch."""
    write_history(release, tmp_path)
    for state in (RUNNING, STOPPED):
        judgement = judged([tmp_path / state / broker for broker in BROKERS])
        assert not judgement.faults, [str(fault) for fault in judgement.faults]
        assert (judgement.place is not None) == (release.metadata is Metadata.KRAFT)
        assert sum(len(broker.replicas) for broker in judgement.brokers) == len(BROKERS)


@pytest.mark.slow
@pytest.mark.parametrize("release", [NEWEST.version], indirect=True)
def test_compaction_retention_and_transactions_are_no_faults(release, tmp_path):
    with Cluster(Plan(release, settings=CLEANING)) as cluster:
        cluster.wait_until_ready()
        write_for_cleaning(cluster)
        first = "0" * 20 + ".log"

        def is_cleaned(broker):
            compacted, kept = (
                cluster.log_folder(broker) / name / first for name in ("compacted-0", "kept-0")
            )
            return compacted.stat().st_size == 0 and not kept.exists()

        for broker in cluster.brokers:
            wait_for(lambda broker=broker: is_cleaned(broker), f"broker {broker} has cleaned its logs", 60)
        cluster.nodes[2].kill()
        cluster.stop()
        copy(cluster, tmp_path)
    judgement = judged([tmp_path / broker for broker in BROKERS])
    assert not judgement.faults, [str(fault) for fault in judgement.faults]
    (compacted, kept) = (judgement.brokers[0].replicas[name, 0] for name in ("compacted", "kept"))
    assert compacted.marks[0].base > 1000
    assert kept.start > 0


@pytest.mark.slow
@pytest.mark.parametrize("release", [NEWEST.version], indirect=True)
def test_the_folders_of_running_brokers_show_the_finding(release):
    """B21 at step 24: m is committed by broker 1's checkpoint, and broker 2, in the ISR, does not have it."""
    story = STORIES["B21"]
    run = scenario_run(story.scenario)
    with Cluster(plan_of(story, run, release, None)) as cluster:
        cluster.wait_until_ready()
        driver = Driver(cluster, run, story.companions)
        driver.begin(topic_configs(run, release))
        for index in range(24):
            driver.take(index)
        await_checkpoint(cluster, 1, 1)
        faults = judged([cluster.log_folder(broker) for broker in cluster.brokers]).faults
    assert [str(fault) for fault in faults] == [
        "orders-0, broker 2: committed: it may lead, and ends at 0; broker 1 has high watermark 1"
    ]
