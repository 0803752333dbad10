"""`replog serve` from a user's view: a real client's records outlive a kill; what cannot be is said."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from replog.cli import run

COMMAND = [sys.executable, "-W", "error", "-c", "from replog.__main__ import main; main()"]
needs_kio = pytest.mark.skipif(find_spec("kio") is None, reason="kio is not installed: the extra `serve`")


@contextmanager
def serving(
    directory: Path, command: str = "serve", *options: str
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a broker, or a cluster; yield its process and the addresses for clients."""
    arguments = [*COMMAND, command, str(directory), "--port", "0", *options]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            address = re.fullmatch(r"serving .* at (127\.0\.0\.1:[\d,:.]+)\n", line)
            assert address is not None, line
            yield process, address[1]
        finally:
            # The processes of a cluster end with the one above them.
            process.kill()


# In a process of its own, since its threads and sockets outlive what it is told to close.
PRODUCE = """
import sys, kafka
producer = kafka.KafkaProducer(bootstrap_servers=sys.argv[1].split(","), acks="all", retries=100)
first, last = int(sys.argv[2]), int(sys.argv[3])
sent = [producer.send("orders", b"record %d" % n, partition=0) for n in range(first, last)]
print("sent", flush=True)
assert [each.get(60).offset for each in sent] == list(range(first, last))
producer.close()
"""
CONSUME = """
import sys, kafka
consumer = kafka.KafkaConsumer(
    "orders", bootstrap_servers=sys.argv[1].split(","), group_id="readers",
    auto_offset_reset="earliest", consumer_timeout_ms=30_000,
)
count = int(sys.argv[2])
assert [next(consumer).value for _ in range(count)] == [b"record %d" % n for n in range(count)]
consumer.commit()
assert consumer.committed(next(iter(consumer.assignment()))) == count
consumer.close()
"""


def client(code: str, address: str, *numbers: int) -> subprocess.Popen[str]:
    """Start a real client."""
    words = [sys.executable, "-c", code, address, *map(str, numbers)]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@needs_kio
@pytest.mark.slow
def test_a_real_client_produces_and_a_group_reads_in_order_across_a_kill(tmp_path):
    pytest.importorskip("kafka")
    with serving(tmp_path) as (process, address):
        with client(PRODUCE, address, 0, 10_000) as producer:
            assert producer.wait(60) == 0
        process.kill()
    with serving(tmp_path) as (process, address):
        with client(CONSUME, address, 10_000) as consumer:
            assert consumer.wait(60) == 0
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        assert process.stdout is not None
        assert process.stdout.read() == "stopped\n"
    assert run(["dump", str(tmp_path)]) == 0


@needs_kio
@pytest.mark.slow
def test_a_cluster_loses_nothing_when_its_leader_is_killed(tmp_path, capsys):
    pytest.importorskip("kafka")
    lines = tmp_path / "lines"
    with serving(tmp_path / "data", "cluster", "--record", str(lines)) as (process, addresses):
        with client(PRODUCE, addresses, 0, 1_000) as producer:
            assert producer.wait(60) == 0
        # The topic has one partition, which is led by broker 0, at the first address.
        leader = listener(int(addresses.split(",")[0].rpartition(":")[2]), process.pid)
        with client(PRODUCE, addresses, 1_000, 3_000) as producer:
            assert producer.stdout is not None
            assert producer.stdout.readline() == "sent\n"
            os.kill(leader, signal.SIGKILL)
            assert producer.wait(60) == 0
        with client(CONSUME, addresses, 3_000) as consumer:
            assert consumer.wait(60) == 0
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    # What all processes did, in one order; `tests/replog/run/test_live.py` has its meaning.
    assert run(["merge", str(lines), str(tmp_path / "merged")]) == 0
    assert re.fullmatch(r"orders-0: \d{2,} events\n", capsys.readouterr().out)
    recording = (tmp_path / "merged" / "orders-0.ndjson").read_text()
    assert recording.count('"start"') == 1


def listener(port: int, above: int) -> int:
    """Return the process below `above` that listens at a port of the loopback."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    inode = next(row[9] for row in rows if row[3] == "0A" and int(row[1].rpartition(":")[2], 16) == port)
    children = Path(f"/proc/{above}/task/{above}/children").read_text().split()
    return next(
        int(child)
        for child in children
        for file in Path(f"/proc/{child}/fd").iterdir()
        if str(file.readlink()) == f"socket:[{inode}]"
    )


@needs_kio
def test_a_directory_and_a_port_are_taken_once(tmp_path, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert run(["serve", str(tmp_path / "a"), "--port", port]) == 1
    assert "address already in use" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert run(["serve", str(tmp_path / "file")]) == 2
    # The directory was released.
    assert run(["dump", str(tmp_path / "a")]) == 0


def test_listening_everywhere_needs_a_name_for_clients(tmp_path, capsys):
    assert run(["serve", str(tmp_path), "--listen-on-all-addresses"]) == 2
    assert "--advertise" in capsys.readouterr().err
    assert run(["serve", str(tmp_path), "--advertise", "example.org"]) == 2


def test_without_kio_the_command_says_what_to_install(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("replog.serve.find_spec", lambda _name: None)
    assert run(["serve", str(tmp_path)]) == 1
    assert "pip install 'specchk[serve]'" in capsys.readouterr().err


PRODUCE_ON = """
import sys, threading, kafka
producer = kafka.KafkaProducer(bootstrap_servers=sys.argv[1].split(","), acks="all", retries=100)
is_over, sent = threading.Event(), []
threading.Thread(target=lambda: (sys.stdin.read(), is_over.set()), daemon=True).start()
while not is_over.wait(0.001):
    sent.append(producer.send("orders", b"record %d" % len(sent), partition=0))
    if len(sent) == 1:
        print("acknowledged", sent[0].get(60).offset, flush=True)
assert [each.get(60).offset for each in sent] == list(range(len(sent)))
print(len(sent))
"""
REASSIGN = """
import sys, time, kafka
admin = kafka.KafkaAdminClient(bootstrap_servers=sys.argv[1].split(","))
place = kafka.TopicPartition("orders", 0)
for target in ([3, 1], [2, 0], [1, 3, 2]):
    assert admin.alter_partition_reassignments({place: target}) == {place: None}
    deadline = time.monotonic() + 30
    while admin.list_partition_reassignments():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    (part,) = admin.describe_topics(["orders"])[0]["partitions"]
    assert (part["replica_nodes"], part["leader_id"] in target) == (target, True), part
admin.close()
"""


@needs_kio
@pytest.mark.slow
def test_leader_and_followers_are_replaced_under_a_producer(tmp_path, capsys):
    pytest.importorskip("kafka", minversion="3")
    data, lines = tmp_path / "data", tmp_path / "lines"
    with serving(data, "cluster", "--brokers", "4", "--record", str(lines)) as (process, addresses):
        with client(PRODUCE_ON, addresses) as producer:
            assert producer.stdin is not None
            assert producer.stdout is not None
            assert producer.stdout.readline() == "acknowledged 0\n"
            with client(REASSIGN, addresses) as admin:
                assert admin.wait(90) == 0
            producer.stdin.close()
            assert producer.wait(60) == 0
            count = int(producer.stdout.read())
        with client(CONSUME, addresses, count) as consumer:
            assert consumer.wait(60) == 0
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert {b for b in range(4) if (data / f"broker-{b}" / "orders-0").exists()} == {1, 2, 3}
    # Until the first reassignment, which the spec has not.
    assert run(["merge", str(lines), str(tmp_path / "merged")]) == 0
    assert re.fullmatch(r"orders-0: \d{2,} events\n", capsys.readouterr().out)
