"""A standalone master with workers on loopback, and drivers as processes that can be killed."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark

from hang import HANG_S

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"


@dataclass(frozen=True)
class Cluster:
    """A running cluster; `workers` are the pids of its worker daemons, `local` has the executors' files."""

    master: str
    local: Path
    workers: tuple[int, ...]

    def lose_shuffle_files(self) -> int:
        """Remove all files of shuffles; how many."""
        found = [Path(at, name) for at, _, names in os.walk(self.local) for name in names]
        lost = [file for file in found if file.name.startswith("shuffle_")]
        for file in lost:
            file.unlink(missing_ok=True)
        return len(lost)

    def executors(self) -> list[int]:
        """The pids of the executors' JVMs."""
        return [pid for worker in self.workers for pid in children(worker) if "Executor" in command(pid)]


def children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(word) for file in found for word in file.read_text().split()]


def command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def wait_for(what: Callable[[], Any], patience_s: float = HANG_S) -> Any:
    """Wait until a condition is true; fail if that takes too long."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        found = what()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError("it did not come about in time")


@contextmanager
def standalone(folder: Path, many: int = 2, memory: str = "1g") -> Iterator[Cluster]:
    """A master and some workers with a core each."""
    port, web, local = free_port(), free_port(), folder / "local"
    local.mkdir()
    env = {
        **os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC", "SPARK_WORKER_DIR": str(folder / "work"),
        "SPARK_LOCAL_DIRS": str(local),
    }  # fmt: skip
    running: list[subprocess.Popen[bytes]] = []

    def start(*args: str) -> int:
        with (folder / f"daemon-{len(running)}.log").open("wb") as log:
            running.append(subprocess.Popen([str(SPARK_CLASS), *args], env=env, stdout=log, stderr=log))
        return running[-1].pid

    def workers_there() -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{web}/json/", timeout=HANG_S) as answer:
                return int(json.load(answer)["aliveworkers"]) == many
        except (OSError, json.JSONDecodeError):  # while it starts, other pages may answer in its place
            return False

    try:
        deploy = "org.apache.spark.deploy"
        start(f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(web))
        master = f"spark://127.0.0.1:{port}"
        own = ("--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", memory)
        workers = tuple(start(f"{deploy}.worker.Worker", *own, master) for _ in range(many))
        wait_for(workers_there)
        yield Cluster(master, local, workers)
    finally:
        for process in reversed(running):
            process.terminate()
        for process in running:
            process.wait(timeout=HANG_S)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Driver:
    """`specchk run --engine spark` on a cluster, as a process."""

    def __init__(self, cluster: Cluster, ledger: Path, *args: str, env: dict[str, str] | None = None) -> None:
        self.ledger = ledger
        settings = ("spark.executor.memory=512m", "spark.ui.enabled=false", "spark.driver.host=127.0.0.1")
        confs = [word for setting in settings for word in ("--conf", setting)]
        spark = ["--engine", "spark", "--master", cluster.master, "--ledger", str(ledger), "--handover", "1"]
        line = [sys.executable, "-m", "specchk", "run", *args, *spark, "--json", *confs]
        own = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
        self.process = subprocess.Popen(
            line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **own, **(env or {})},
            start_new_session=True,
        )  # fmt: skip

    def at_level(self, level: int) -> None:
        """Wait until the ledger has data of a level."""
        wait_for(lambda: self._is_at(level))

    def _is_at(self, level: int) -> bool:
        found = any(self.ledger.glob(f"run-*/{level:05d}/*"))
        assert found or self.process.poll() is None, self.process.communicate()
        return found

    def kill(self) -> None:
        """SIGKILL, with the JVM that it started."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()

    def answer(self) -> dict[str, Any]:
        """The complete output of the command."""
        out, errors = self.process.communicate(timeout=HANG_S)
        assert self.process.returncode in (0, 10, 12), errors.decode()
        found: dict[str, Any] = json.loads(out)
        return found

    def words(self) -> str:
        """The complete text on standard error."""
        return self.process.communicate(timeout=HANG_S)[1].decode()
