"""Processes of a cluster.

Java programs from a folder of jars, which end with the process that started them.
"""

from __future__ import annotations

import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from conformance.apache_kafka.releases import Release, jars

T = TypeVar("T")

# Small and quick to start: a test's cluster does little, and several share a machine.
_JVM = ("-Xmx256m", "-Xms64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
# What old releases reach into by reflection.
_OPENED = (
    "java.lang",
    "java.lang.reflect",
    "java.nio",
    "java.util",
    "jdk.internal.ref",
    "sun.nio.ch",
    "sun.security.action",
)
_OPENS = tuple(word for package in _OPENED for word in ("--add-opens", f"java.base/{package}=ALL-UNNAMED"))

_STOP_S = 30


class NotYet(Exception):
    """An answer that another one is expected to follow: `wait_for` tries again."""


class StartFailed(Exception):
    """A process ended instead of listening, or did not listen in time.

    The message has the end of its output.
    """


def java_command(release: Release, properties: Mapping[str, object], agent: Path | None) -> list[str]:
    """The beginning of a command that runs a class of this release."""
    # The kernel kills the process with the thread that started it.
    command = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
    command += ["java", *_JVM, *(_OPENS if release.opens else ())]
    command += [f"-D{name}={value}" for name, value in properties.items()]
    command += [f"-javaagent:{agent}"] if agent else []
    return [*command, "-cp", f"{jars(release)}/*"]


class Node:
    """A process that listens on a port of this machine."""

    def __init__(self, name: str, command: Sequence[str], port: int, folder: Path) -> None:
        self.name, self.port = name, port
        self._command, self._output = list(command), folder / f"{name}.out"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        """Whether the process has been started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the process; `wait_until_listening` waits for it."""
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603 - no shell
                self._command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )

    def wait_until_listening(self, limit_s: float = 120) -> None:
        """Wait until the port can be connected to.  Raises StartFailed."""
        end = time.monotonic() + limit_s
        while self.is_running and time.monotonic() < end:
            with socket.socket() as connection:
                connection.settimeout(1)
                if connection.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        lines = self._output.read_text(errors="replace").splitlines() if self._output.exists() else []
        raise StartFailed(f"{self.name} does not listen on port {self.port}: {' | '.join(lines[-5:])}")

    def pause(self) -> None:
        """SIGSTOP."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL, and wait until the process has ended."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def terminate(self) -> None:
        """SIGTERM: a stop in good order; `wait` waits for it."""
        if self.is_running:
            self._signal(signal.SIGCONT)
            self._signal(signal.SIGTERM)

    def wait(self) -> None:
        """Wait until the process has ended, and kill it if that takes too long."""
        if self._process is not None:
            try:
                self._process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                self.kill()

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self.is_running:
            self._process.send_signal(number)


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, outside the range from which the kernel takes those of connections."""
    generator = random.SystemRandom()
    chosen: list[int] = []
    while len(chosen) < count:
        port = generator.randrange(20000, 32000)
        with socket.socket() as attempt:
            attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                attempt.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in chosen:
            chosen.append(port)
    return chosen


def wait_for(condition: Callable[[], T], what: str, limit_s: float = 60) -> T:
    """The first value of `condition` that is true.

    Until then it may fail to connect, or raise NotYet.  Raises TimeoutError.
    """
    end = time.monotonic() + limit_s
    while True:
        try:
            value = condition()
        except (OSError, NotYet):
            pass
        else:
            if value:
                return value
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {limit_s:.0f} s")
        time.sleep(0.02)
