"""`replog cluster` beside Apache Kafka 4.4.0, three brokers each, in turns, with the same client.

    python bench/replog/beside_kafka.py --client PYTHON [--rounds 3]

PYTHON is an interpreter that has confluent-kafka.  Each round gives each cluster 100 000 records of 1 KiB in
batches of 64 KB with acks=all, and prints the CPU seconds of all its processes for these, controller
included; a first load of the same size, not counted, lets Kafka's JVMs compile.  Kafka logs warnings only.
The relay between its brokers is in this process: its CPU is not counted, its delay is, so the rates are not
compared.

With `--rate N` each record is a batch of its own, N a second are offered for 20 s after 5 s that do not
count, and the times to the acknowledgement are printed; Kafka's have the relay's delay between its brokers.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[2])

from conformance.apache_kafka.cluster import BROKERS, Cluster, Plan  # noqa: E402
from conformance.apache_kafka.releases import NEWEST, RELEASES  # noqa: E402
from conformance.apache_kafka.settings import LOGGERS  # noqa: E402

BIN = Path(sys.executable).parent
CLIENT = """
import sys, time
from confluent_kafka import Producer
servers, count, rate = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
large = {"linger.ms": 20, "batch.size": 65536, "queue.buffering.max.messages": 200000}
some = {"linger.ms": 0} if rate else large
p = Producer({"bootstrap.servers": servers, "acks": "all", "message.timeout.ms": 60000, **some})
took, failed = [], []
def done(began):
    return lambda error, message: failed.append(error) if error else took.append(time.monotonic() - began)
value, start = b"x" * 1024, time.monotonic()
for n in range(count):
    if rate:
        while time.monotonic() < start + n / rate:
            p.poll(0.0005)
    p.produce("load", value, partition=0, callback=done(time.monotonic()))
    p.poll(0)
p.flush(120)
took.sort()
end = time.monotonic() - start
assert not failed and len(took) == count, (len(took), failed[:1])
half, most = (took[count * part // 100] * 1000 for part in (50, 99))
print(f"{count / end:.0f} records/s, p50 {half:.1f} ms, p99 {most:.1f} ms")
"""


def cpu_s(parent: int) -> float:
    """Return the CPU seconds of a process's children that run now."""
    pids = [
        pid
        for task in Path(f"/proc/{parent}/task").iterdir()
        for pid in (task / "children").read_text().split()
    ]
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def load(python: str, servers: str, count: int, rate: float = 0) -> str:
    """Run the client; return what it says."""
    command = [python, "-c", CLIENT, servers, str(count), str(rate)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def measured(python: str, servers: str, parent: int, rate: float) -> str:
    """Return the CPU seconds of the second load, or the times of an offered rate."""
    if rate:
        load(python, servers, int(rate) * 5, rate)
        return load(python, servers, int(rate) * 20, rate)
    load(python, servers, 100_000)
    before = cpu_s(parent)
    said = load(python, servers, 100_000)
    return f"{cpu_s(parent) - before:.2f} CPU s; {said}"


def of_replog(python: str, rate: float) -> str:
    """Measure `replog cluster`."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(BIN / "replog"), "cluster", f"{folder}/data", "--port", "0"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        servers = process.stdout.readline().split(" at ")[-1].strip()
        try:
            return measured(python, servers, process.pid, rate)
        finally:
            process.terminate()
            process.wait()


def of_kafka(python: str, rate: float) -> str:
    """Measure Kafka."""
    quiet = dict.fromkeys(LOGGERS, "WARN")
    with Cluster(Plan(RELEASES[NEWEST.version], levels=quiet)) as cluster:
        cluster.wait_until_ready()
        cluster.create_topic("load", [list(BROKERS)], {"min.insync.replicas": "2"})
        servers = ",".join(f"127.0.0.1:{cluster.nodes[broker].port}" for broker in BROKERS)
        return measured(python, servers, os.getpid(), rate)


def main() -> None:
    """Print a line for each cluster and round."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--client", required=True, metavar="PYTHON")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rate", type=float, default=0)
    arguments = parser.parse_args()
    for _ in range(arguments.rounds):
        print(f"replog: {of_replog(arguments.client, arguments.rate)}", flush=True)
        print(f"Kafka {NEWEST.version}: {of_kafka(arguments.client, arguments.rate)}", flush=True)


if __name__ == "__main__":
    main()
