"""Kafka's own tool and our readers, on folders that its brokers left: the same batches and entries."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from pathlib import Path

import pytest
from conformance.apache_kafka.batches import parse_batches, read_uvarint
from conformance.apache_kafka.cluster import Cluster, Plan
from conformance.apache_kafka.deciding import deciding
from conformance.apache_kafka.folders import Mark, producer_entries
from conformance.apache_kafka.judging import judge
from conformance.apache_kafka.metadata_log import METADATA_LOG, decode_metadata
from conformance.apache_kafka.nodes import java_command
from conformance.apache_kafka.releases import NEWEST, Metadata, jar
from conformance.apache_kafka.schemas import METADATA, Schemas

from real_kafka.loads import BROKERS, CLEANING, RUNNING, STOPPED, copy, elect, write_for_cleaning
from replog.dump import ReadOnlyFs
from replog.run.serve.codec import Struct
from replog.store.checkpoints.checkpoint import read_epochs

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
WORD = re.compile(r"(\w+): (\S+)")
FS = ReadOnlyFs()
PARTITION, FIRST = "orders-0", "0" * 20 + ".log"


def dumped(release, files, *options):
    """What Kafka's tool says of each file: its lines."""
    package = "org.apache.kafka.tools" if release.numbers > (4, 1, 1) else "kafka.tools"
    command = [*java_command(release, {}, None), f"{package}.DumpLogSegments", *options]
    command += ["--files", ",".join(map(str, files))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    _, *parts = re.split(r"^Dumping (.*)\n", done.stdout, flags=re.MULTILINE)
    lines = {name: text.splitlines() for name, text in zip(parts[::2], parts[1::2], strict=True)}
    assert lines.keys() == set(map(str, files))
    return lines


def batches_of(lines):
    """The batches of a dump, and the words of each of their records."""
    batches = []
    for line in lines:
        if line.startswith(("baseOffset: ", "offset: ")):
            batches.append((dict(WORD.findall(line)), []))
        elif line.startswith("| offset: "):
            batches[-1][1].append(dict(WORD.findall(line[2:].partition(" headerKeys: ")[0])))
    return batches


def words_of(batch):
    """A batch as Kafka's tool has it; of formats 0 and 1 it has the last offset alone."""
    if batch.format < 2:
        words = {"offset": batch.last, "position": batch.position, "size": len(batch.data)}
        words |= {"magic": batch.format, "compresscodec": CODECS[batch.codec], "isvalid": batch.valid}
        return words | {"crc": int.from_bytes(batch.data[12:16])}
    mark = Mark(batch.base, batch.last, batch.epoch, 0, batch.producer)
    has_sequence = batch.producer.sequence >= 0
    return {
        "baseOffset": batch.base, "lastOffset": batch.last, "count": batch.count,
        "baseSequence": batch.producer.sequence, "lastSequence": mark.last_sequence if has_sequence else -1,
        "producerId": batch.producer.id, "producerEpoch": batch.producer.epoch,
        "partitionLeaderEpoch": batch.epoch, "isControl": batch.control, "position": batch.position,
        "size": len(batch.data), "magic": batch.format, "compresscodec": CODECS[batch.codec],
        "crc": int.from_bytes(batch.data[17:21]), "isvalid": batch.valid,
    }  # fmt: skip


def record_words_of(record):
    sizes = (-1 if part is None else len(part) for part in (record.key, record.value))
    return dict(zip(("offset", "keySize", "valueSize"), map(str, (record.offset, *sizes)), strict=True))


def compare_batches(release, logs):
    """Compare each batch of these files, and each record that is not compressed; how many batches."""
    count = 0
    for name, lines in dumped(release, logs, "--deep-iteration").items():
        ours = list(parse_batches(Path(name).read_bytes()))
        theirs = batches_of(lines)
        for batch, (words, records) in zip(ours, theirs, strict=True):
            expected = {key: str(value).lower() for key, value in words_of(batch).items()}
            assert {key: words[key].lower() for key in expected} == expected, name
            if not batch.codec:
                read = [record_words_of(record) for record in batch.records()]
                assert [
                    {key: each[key] for key in ("offset", "keySize", "valueSize")} for each in records
                ] == read
            count += 1
    return count


def compare_snapshots(release, snapshots):
    """Compare each entry of snapshots of producers; how many."""
    count = 0
    keys = ("producerId", "producerEpoch", "lastSequence", "lastOffset", "offsetDelta", "timestamp")
    for name, lines in dumped(release, snapshots).items():
        theirs = [dict(WORD.findall(line)) for line in lines if line.startswith("producerId: ")]
        ours = list(producer_entries(Path(name).read_bytes()))
        for words, entry in zip(theirs, ours, strict=True):
            # What a producer wrote last may have been deleted: the tool then has nothing of it.
            present = keys if entry[3] >= 0 else keys[:2]
            assert {key: words.get(key) for key in keys} == {
                key: str(value) if key in present else None for key, value in zip(keys, entry, strict=False)
            }
        count += len(ours)
    return count


def plain(value, kind):
    """A value of a field as Kafka's tool writes it."""
    if isinstance(value, tuple):
        return [plain(each, kind) for each in value]
    if kind == "uuid":
        return base64.urlsafe_b64encode(value).decode().rstrip("=")
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def compare_metadata(release, files):
    """Compare each record of a metadata log and of its snapshots; how many."""
    schemas, count = Schemas(jar(release, "kafka-metadata"), METADATA), 0
    for name, lines in dumped(release, files, "--cluster-metadata-decoder").items():
        theirs = [json.loads(line.partition(" payload: ")[2]) for line in lines if " payload: " in line]
        batches = [batch for batch in parse_batches(Path(name).read_bytes()) if not batch.control]
        values = [record.value for batch in batches for record in batch.records()]
        for value, record in zip(values, theirs, strict=True):
            kind, fields = decode_metadata(schemas, value)
            version, _ = read_uvarint(value, 2)
            assert re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind).upper() == record["type"]
            assert version == record["version"]
            compare_fields(schemas.record(value[1], version), fields, record["data"])
            count += 1
    return count


def compare_fields(layout, ours, theirs):
    """Compare a record's fields; the tool leaves out tagged ones that have their default."""
    fields = {field.name[0].lower() + field.name[1:]: field for field in layout.fields}
    for key, field in fields.items():
        mine = ours[field.name]
        if key not in theirs:
            assert (field.tag >= 0, mine) == (True, field.default)
        elif isinstance(field.kind, Struct) and mine is not None:
            pairs = zip(mine, theirs[key], strict=True) if field.is_array else ((mine, theirs[key]),)
            for inner, its in pairs:
                compare_fields(field.kind, inner, its)
        else:
            assert plain(mine, field.kind) == theirs[key], (field, ours, theirs)
    assert theirs.keys() <= fields.keys()


def compare(release, folders):
    """Compare all that nodes have left: the number of batches, metadata records and producers' entries."""
    logs = [path for folder in folders for path in sorted(folder.glob("*-*/*.log"))]
    of_metadata = [path for folder in folders for path in sorted((folder / METADATA_LOG).glob("*.log"))]
    of_metadata += [
        path for folder in folders for path in sorted((folder / METADATA_LOG).glob("*.checkpoint"))
    ]
    snapshots = [path for folder in folders for path in sorted(folder.glob("*-*/*.snapshot"))]
    return (
        compare_batches(release, logs),
        compare_metadata(release, of_metadata) if release.metadata is Metadata.KRAFT else 0,
        compare_snapshots(release, snapshots) if snapshots else 0,
    )


@pytest.mark.parametrize("state", [RUNNING, STOPPED])
def test_the_newest_release_reads_as_we_do(history, state):
    """Elections and an idempotent producer: 9 batches on each broker, in 3 epochs by their file, too."""
    batches, records, producers = compare(NEWEST, [history / state / broker for broker in BROKERS])
    assert batches > 27
    assert records > 60
    assert producers == (3 if state == STOPPED else 0)
    logs = [history / state / broker / PARTITION for broker in BROKERS]
    lines = dumped(NEWEST, [folder / FIRST for folder in logs])
    for folder in logs:
        starts, end = {}, 0
        for words, _ in batches_of(lines[str(folder / FIRST)]):
            starts.setdefault(int(words["partitionLeaderEpoch"]), int(words["baseOffset"]))
            end = int(words["lastOffset"]) + 1
        # A leader enters its epoch when it becomes one; while brokers stop, one may that appends nothing.
        entered = dict(read_epochs(FS, str(folder)))
        assert {epoch: start for epoch, start in entered.items() if start < end} == starts
        assert all(start == end for epoch, start in entered.items() if epoch not in starts)


def write_all_codecs(cluster):
    """A topic for each codec, in which brokers compress; and for message format 1, where there is that."""
    kafka = pytest.importorskip("kafka")
    topics = {codec: {"compression.type": codec} for codec in CODECS[1:]}
    if cluster.plan.release.numbers < (3, 0):
        topics["old"] = {"message.format.version": "0.10.2"}
        topics["old-gzip"] = {"message.format.version": "0.10.2", "compression.type": "gzip"}
    servers = f"127.0.0.1:{cluster.nodes[1].port}"
    producer = kafka.KafkaProducer(
        bootstrap_servers=servers, acks="all", linger_ms=50, enable_idempotence=False
    )
    for topic, configs in topics.items():
        cluster.create_topic(topic, [[1, 2, 3]], configs)
        for _ in range(2):
            sent = [producer.send(topic, key=b"%d" % n, value=b"text " * n) for n in range(20)]
            for future in sent:
                future.get(60)
    producer.close()


@pytest.mark.slow
@pytest.mark.parametrize("release", ["4.4.0", "4.1.1", "3.9.1", "2.8.2"], indirect=True)
def test_every_release_reads_what_it_wrote_as_we_do(release, tmp_path):
    """Codecs, transactions, compaction, a group, an election, a killed broker: nothing is read otherwise."""
    with Cluster(Plan(release, settings=CLEANING)) as cluster:
        cluster.wait_until_ready()
        write_for_cleaning(cluster)
        write_all_codecs(cluster)
        elect(deciding(cluster, "compacted"), 3, [1, 2])
        copy(cluster, tmp_path / RUNNING)
        cluster.nodes[2].kill()
        cluster.stop()
        copy(cluster, tmp_path / STOPPED)
    for state in (RUNNING, STOPPED):
        folders = [tmp_path / state / broker for broker in BROKERS]
        compare(release, folders)
        assert not judge(folders, None).faults
    logs = [path for path in (tmp_path / STOPPED).glob("[123]/*-0/*.log") if path.parent.name != METADATA_LOG]
    seen = {(each.format, CODECS[each.codec]) for path in logs for each in parse_batches(path.read_bytes())}
    old = {(1, "none"), (1, "gzip")} if release.numbers < (3, 0) else set()
    assert seen == {(2, codec) for codec in CODECS} | old
