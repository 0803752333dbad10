"""Chaos in a running cluster, recorded and validated: `python bench/replog/chaos.py --runs 3 --seconds 20`.

    start with --record -> clients with acks=all; kill -9 and pauses of brokers and the controller -> stop
    -> replog merge -> specchk validate, timed

Each run prints what was done to the cluster, the verdict, and how long the validation took beside the run.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
FAULTS = ("kill", "kill", "kill", "pause", "pause", "kill-controller", "kill-two")
SERVERS = 3


class Cluster:
    """The processes of `replog cluster`; the first child is the controller, the others are brokers."""

    def __init__(
        self, folder: Path, seconds_of_pause: float, brokers: int = SERVERS, *, is_recorded: bool = True
    ) -> None:
        self.folder, self.pause_s = folder, seconds_of_pause
        command = [BIN / "replog", "cluster", folder / "data", "--port", "0", "--brokers", str(brokers)]
        if is_recorded:
            command += ["--record", folder / "lines"]
        self.process = subprocess.Popen(
            [*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self.process.stdout is not None
        self.servers = self.process.stdout.readline().split(" at ")[-1].strip().split(",")

    def children(self) -> list[int]:
        """Return the processes, oldest first."""
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in path.read_text().split()]

    def broker_pids(self) -> list[int]:
        """Return the processes of brokers: all but the controller."""
        return [pid for pid in self.children() if pid != self.controller()]

    def broker(self, number: int) -> int | None:
        """Return the process that has a broker's files open, if there is one."""
        return next((pid for pid, files in self._files() if f"/broker-{number}/" in files), None)

    def controller(self) -> int | None:
        """Return the process that has no broker's files open, if there is one."""
        return next((pid for pid, files in self._files() if "/broker-" not in files), None)

    def _files(self) -> Iterator[tuple[int, str]]:
        for pid in self.children():
            with suppress(OSError):
                yield pid, "\n".join(str(fd.readlink()) for fd in Path(f"/proc/{pid}/fd").iterdir())

    def strike(self, fault: str, chance: random.Random) -> None:
        """Do one thing to the cluster; nothing, if the process for it is just starting."""
        with suppress(ProcessLookupError, IndexError):
            if fault == "pause":
                pid = chance.choice(self.children())
                os.kill(pid, signal.SIGSTOP)
                time.sleep(chance.uniform(0.1, 2 * self.pause_s))
                os.kill(pid, signal.SIGCONT)
                return
            if fault == "kill-controller":
                victims = [pid for pid in (self.controller(),) if pid is not None]
            else:
                brokers = self.broker_pids()
                victims = chance.sample(brokers, min(2 if fault == "kill-two" else 1, len(brokers)))
            for pid in victims:
                os.kill(pid, signal.SIGKILL)

    def stop(self) -> None:
        """Stop all processes in good order."""
        for pid in self.children():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self.process.terminate()
        self.process.wait(60)


def produce(servers: list[str], over: threading.Event, rate: float, sent: Counter[str]) -> None:
    """Send records with acks=all until it is over."""
    kafka = importlib.import_module("kafka")
    while not over.is_set():
        try:
            client = kafka.KafkaProducer(
                bootstrap_servers=servers,
                acks="all",
                linger_ms=5,
                retries=3,
                request_timeout_ms=5_000,
                delivery_timeout_ms=10_000,
                max_block_ms=3_000,
            )
            number = 0
            while not over.is_set():
                for partition in (0, 1):
                    client.send("orders", b"%d" % number, partition=partition).add_callback(
                        lambda _: sent.update(("acknowledged",))
                    ).add_errback(lambda _: sent.update(("failed",)))
                number += 1
                time.sleep(random.expovariate(rate))
            client.close(timeout=2)
        except kafka.errors.KafkaError:
            sent.update(("client began again",))


def run(number: int, seconds: float, rate: float, every_s: float, keep: Path) -> dict[str, object]:
    """Run one cluster, and validate what it has recorded."""
    chance = random.Random(number)
    folder = keep / f"run-{number}"
    cluster = Cluster(folder, 3.0)
    done: Counter[str] = Counter()
    over = threading.Event()
    try:
        kafka = importlib.import_module("kafka.admin")
        admin = kafka.KafkaAdminClient(bootstrap_servers=cluster.servers)
        admin.create_topics([kafka.NewTopic("orders", 2, 3)])
        admin.close()
        threads = [
            threading.Thread(target=produce, args=(cluster.servers, over, rate, done), daemon=True)
            for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pause_s = chance.expovariate(1 / every_s)
            if time.monotonic() + pause_s > end:
                time.sleep(max(end - time.monotonic(), 0))
                break
            time.sleep(pause_s)
            fault = chance.choice(FAULTS)
            done[fault] += 1
            cluster.strike(fault, chance)
        over.set()
        for thread in threads:
            thread.join(15)
    finally:
        cluster.stop()
    return dict(done) | validated(folder)


def validated(folder: Path) -> dict[str, object]:
    """Merge and validate a run; return the verdict and its seconds."""
    merged = folder / "merged"
    merged.mkdir(exist_ok=True)
    subprocess.run([BIN / "replog", "merge", folder / "lines", merged], check=True, stdout=subprocess.DEVNULL)
    begin, spent = time.monotonic(), os.times()
    command = [
        BIN / "specchk",
        "validate",
        ROOT / "conformance" / "live_tracing.py",
        merged,
        "--partial",
        "--no-power",
        "--workers",
        "1",
        "--json",
    ]
    told = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    took, cpu = time.monotonic() - begin, os.times().children_user - spent.children_user
    (folder / "verdict.json").write_text(told.stdout or told.stderr)
    try:
        answer = json.loads(told.stdout)
    except ValueError:
        answer = {}
    return {
        "exit": told.returncode,
        "verdict": answer.get("verdict"),
        "events": answer.get("events"),
        "validated in": round(took, 1),
        "its CPU": round(cpu, 1),
    }


def main() -> None:
    """Run as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument(
        "--rate", type=float, default=20, help="records a second and client, of each partition"
    )
    parser.add_argument("--every", type=float, default=3, help="seconds between faults, on average")
    parser.add_argument("--keep", type=Path, default=None)
    options = parser.parse_args()
    keep = options.keep or Path(tempfile.mkdtemp(prefix="chaos-"))
    for number in range(options.first, options.first + options.runs):
        began = time.monotonic()
        outcome = run(number, options.seconds, options.rate, options.every, keep)
        print(f"run {number}: {json.dumps(outcome)} in {time.monotonic() - began:.0f} s", flush=True)
    print(keep)


if __name__ == "__main__":
    main()
