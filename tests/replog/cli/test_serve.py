"""`replog serve` from a user's view: a real client's records outlive a kill; what cannot be is said."""

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
def serving(directory: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a broker; yield its process and its address."""
    arguments = [*COMMAND, "serve", str(directory), "--port", "0", *options]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            address = re.fullmatch(r"serving .* at (127\.0\.0\.1:\d+)\n", line)
            assert address is not None, line
            yield process, address[1]
        finally:
            process.kill()


@needs_kio
@pytest.mark.slow
def test_a_real_client_produces_and_a_group_reads_in_order_across_a_kill(tmp_path):
    kafka = pytest.importorskip("kafka")
    records = [f"record {n}".encode() for n in range(10_000)]
    with serving(tmp_path) as (process, address):
        producer = kafka.KafkaProducer(bootstrap_servers=address, acks="all")
        sent = [producer.send("orders", each, partition=0) for each in records]
        assert [each.get(30).offset for each in sent] == list(range(10_000))
        producer.close()
        process.kill()
    with serving(tmp_path) as (process, address):
        consumer = kafka.KafkaConsumer(
            "orders",
            bootstrap_servers=address,
            group_id="readers",
            auto_offset_reset="earliest",
            consumer_timeout_ms=20_000,
        )
        assert [next(consumer).value for _ in records] == records
        consumer.commit()
        assert consumer.committed(next(iter(consumer.assignment()))) == 10_000
        consumer.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        assert process.stdout is not None
        assert process.stdout.read() == "stopped\n"
    assert run(["dump", str(tmp_path)]) == 0


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
