"""The binding to processes: each broker in its own process, with its own files, killed with SIGKILL.

Like `binding.py`; the controller and the messages in flight stay here, and a broker's events are sent over a
socket to its process, which performs the disk effects on real files before it answers.  A crash is a
SIGKILL; a restart is a new process on the files that the old one left.

A process cannot be copied, so a snapshot of a cluster is its history: it is restored by repeating
all of it again with new processes, unless the running cluster is still at that point.  Power losses
are not possible: models without them only, and `flushed` is not observed (as in `on_files.py`).
"""

from __future__ import annotations

import atexit
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory, mkdtemp
from typing import TypeVar

from on_files import FilesBinding
from replog.core.broker.state import ReplicaState
from replog.core.effects import Effect
from replog.run.files import FileStorage
from replog.run.storage import Recovered
from replog.sim.cluster.storage import Chooser
from replog.sim.disks.stored import CONFIG, KEY
from replog.store.files.fs import OsFs
from replog_cluster import Cluster, new_cluster
from replog_controlled import LONG_AGO_MS, NOW_MS
from replog_process import DATA, Process
from specchk.conform.contract.binding import Accepted, Answer, restore, snapshot
from specchk.ir.program import Program

T = TypeVar("T")


@dataclass(slots=True)
class ProcessDisk:
    """A broker's directory, and the process that has it open, if one runs."""

    directory: Path
    process: Process | None = None

    @property
    def hw_checkpoint(self) -> int:
        """Return the last HW written by the process; if none runs, the HW in its file."""
        if self.process is None:
            return self._at_a_start(lambda storage: storage.hw_checkpoint)
        return self.process.seen.hw_checkpoint

    def perform(self, effect: Effect) -> None:
        """Do nothing: the process performed it before it answered."""

    def flushed(self) -> int:
        """Return 0: it is not observed."""
        return 0

    def end(self) -> int:
        """Return the log end; 0 if no process runs: then there is nothing to flush."""
        return 0 if self.process is None else self.process.seen.end

    def crash(self) -> None:
        """Kill the process, if one runs; its files stay unchanged."""
        if self.process is not None:
            self.process.kill()
            self.process = None

    def close(self, broker_epoch: int) -> None:
        """Stop the process cleanly."""
        assert self.process is not None
        self.process.stop(broker_epoch)
        self.process = None

    def lose_power(self, choose: Chooser) -> None:
        """Refuse: the power of this machine stays on."""
        raise AssertionError("models with power losses are not for processes")

    def copy(self) -> ProcessDisk:
        """Return the same directory without its process: the state that a start would find there now.

        The files themselves are not copied here: `recover` reads a copy, and a start is to have them.
        """
        return ProcessDisk(self.directory)

    def recover(self) -> Recovered:
        """Return the state that a start would find."""
        return self._at_a_start(FileStorage.recover)

    def _at_a_start(self, what: Callable[[FileStorage], T]) -> T:
        """Query a store that is opened on a copy of the files."""
        with TemporaryDirectory() as copied:
            copytree(self.directory, copied, dirs_exist_ok=True)
            storage = FileStorage(OsFs(), f"{copied}/{DATA}", CONFIG, KEY)
            try:
                return what(storage)
            finally:
                storage.abandon()


Taken = tuple[str, tuple[str, ...]]  # a handler's method and its arguments


@dataclass(slots=True)
class Live:
    """The one running cluster, its files, and its history."""

    cluster: Cluster
    files: TemporaryDirectory[str]
    history: tuple[Taken, ...] = ()

    def end(self) -> None:
        """Kill all running processes, and remove the files."""
        for node in self.cluster.nodes.seen:
            if node.process is not None:
                node.storage.crash()
        self.files.cleanup()


class ProcessBinding(FilesBinding):
    """replog's brokers as processes on real files; one cluster runs at a time."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._live: Live | None = None
        for bound in self.actions():
            setattr(self, bound.method, self._noted(bound.method))
        atexit.register(self.end)

    def _noted(self, method: str) -> Callable[..., Answer]:
        """Return a handler that adds accepted steps to the history."""
        handler = getattr(self, method)

        def noted(cluster: Cluster, *args: str) -> Answer:
            live = self._live
            assert live is not None, "no cluster runs"
            assert live.cluster is cluster, "one cluster runs at a time"
            answer: Answer = handler(cluster, *args)
            if isinstance(answer, Accepted):
                live.history = (*live.history, (method, args))
            return answer

        return noted

    def end(self) -> None:
        """End the running cluster, if there is one."""
        if self._live is not None:
            self._live.end()
            self._live = None

    def start(self) -> Cluster:
        """Return a new cluster, after ending the previous one."""
        self.end()
        files = TemporaryDirectory(prefix="replog-")
        rules = replace(
            self.cluster_rules(),
            disk=lambda: ProcessDisk(Path(mkdtemp(prefix="broker-", dir=files.name))),
            boot=boot,
        )
        self._live = Live(new_cluster(rules), files)
        return self._live.cluster

    def let_be(self, cluster: Cluster, leader: int, follower: int, *, is_late: bool) -> None:
        """Set the time of the last fetch in the process, whose state here is only a copy."""
        process = cluster.nodes[leader].process
        assert isinstance(process, Process)
        if follower != leader:
            process.date_fetch(follower, LONG_AGO_MS if is_late else NOW_MS)

    @snapshot
    def keep(self, cluster: Cluster) -> tuple[Taken, ...]:
        """Return the history."""
        assert self._live is not None, "no cluster runs"
        return self._live.history

    @restore
    def back(self, kept: tuple[Taken, ...]) -> Cluster:
        """Return a cluster with this history: the running one, or a new one that repeats all of it."""
        if self._live is not None and self._live.history == kept:
            return self._live.cluster
        cluster = self.start()
        for method, args in kept:
            answer = getattr(self, method)(cluster, *args)
            if not isinstance(answer, Accepted):
                raise RuntimeError(f"done again, {method}{args} was not accepted: {answer}")
        return cluster


def boot(disk: ProcessDisk, state: ReplicaState) -> Process:
    """Start a broker's process; it must find in its files the state found here in a copy of them."""
    disk.process = process = Process(f"{disk.directory}/{DATA}", state)
    found = list(process.state.log.cells())
    if found != list(state.log.cells()):
        raise RuntimeError(f"two starts on the same files found {found} and {list(state.log.cells())}")
    return process
