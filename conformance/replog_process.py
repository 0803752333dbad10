"""A replica in its own process, with its own files; both ends of the socket to it.

    Process(directory, state)    starts `main` in a new interpreter, which reads the log from the directory
    event  ->  effects           the process performs the disk effects on its files, then answers

The process ends when the socket does, and `kill` is SIGKILL: nothing of it is left but its files.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from replog.core.broker.replica import Replica
from replog.core.broker.state import ReplicaState
from replog.core.effects import Effect, Send, SetTimer, Timer
from replog.core.messages import FetchReply, Message, ProduceRequest
from replog.core.types import MetadataImage
from replog.run.files import FileStorage
from replog.sim.disks.stored import CONFIG, KEY
from replog.store.files.fs import OsFs
from replog_controlled import date_fetch

DATA = "data"
DATE = "date"
STOP = "stop"
HERE = Path(__file__).resolve().parent
LAUNCH = "import sys; sys.path.insert(0, sys.argv[1]); import replog_process as it; it.main(int(sys.argv[2]))"


@dataclass(frozen=True, slots=True)
class Seen:
    """The reply of a broker's process after an event."""

    effects: list[Effect]
    state: ReplicaState
    hw_checkpoint: int
    end: int


def main(descriptor: int) -> None:
    """Answer events over a socket until the other side closes it."""
    with Connection(descriptor) as link, suppress(EOFError):
        directory, state = link.recv()
        disk = FileStorage(OsFs(), directory, CONFIG, KEY)
        state.log = disk.recover().log
        replica = Replica(state)
        effects: list[Effect] = []
        while True:
            link.send(Seen(effects, replica.state, disk.hw_checkpoint, disk.end()))
            name, arguments = link.recv()
            if name == STOP:
                disk.close(*arguments)
                return
            if name == DATE:
                date_fetch(replica, *arguments)
                effects = []
            else:
                effects = getattr(replica, name)(*(_arrived(disk, each) for each in arguments))
            effects = [_performed(disk, effect) for effect in effects]


def _arrived(disk: FileStorage, argument: object) -> object:
    """Return an argument of an event in the form that the core may keep."""
    is_message = isinstance(argument, ProduceRequest | FetchReply)
    return disk.without_bodies(argument) if is_message else argument


def _performed(disk: FileStorage, effect: Effect) -> Effect:
    """Perform an effect on the disk; return it in the form in which it leaves the process."""
    if isinstance(effect, Send):
        return Send(effect.to, disk.with_bodies(effect.message))
    if not isinstance(effect, SetTimer):
        disk.perform(effect)
    return effect


@dataclass(slots=True)
class Still:
    """The state of a broker's process at one moment, for reading; it handles no events."""

    state: ReplicaState

    def copy(self) -> Still:
        """Return an independent copy."""
        return Still(self.state.copy())


class Process:
    """A broker's process, with the interface of the `Replica` in it."""

    def __init__(self, directory: str, state: ReplicaState) -> None:
        """Start a process with this state, except for the log, which it reads from the directory."""
        self._link, theirs = Pipe()
        command = [sys.executable, "-c", LAUNCH, str(HERE), str(theirs.fileno())]
        self._child = subprocess.Popen(command, pass_fds=[theirs.fileno()])  # noqa: S603 - this file
        theirs.close()
        self._link.send((directory, state))
        self.seen: Seen = self._link.recv()
        self.state = self.seen.state
        """What the replica is after its last event: the same objects all the time, as its own are."""

    def receive(self, source: int, message: Message, now_ms: int) -> list[Effect]:
        """Let the replica handle a message."""
        return self._ask("receive", source, message, now_ms)

    def fire(self, timer: Timer, token: int, now_ms: int) -> list[Effect]:
        """Let a timer ring."""
        return self._ask("fire", timer, token, now_ms)

    def apply(self, metadata: MetadataImage, broker_epoch: int, now_ms: int) -> list[Effect]:
        """Make the replica apply metadata."""
        return self._ask("apply", metadata, broker_epoch, now_ms)

    def date_fetch(self, follower: int, when_ms: int) -> None:
        """Set the time at which a follower last fetched, and was caught up."""
        self._ask(DATE, follower, when_ms)

    def _ask(self, name: str, *arguments: object) -> list[Effect]:
        self._link.send((name, arguments))
        self.seen = self._link.recv()
        _become(self.state, self.seen.state)
        return self.seen.effects

    def copy(self) -> Still:
        """Return its present state: a process cannot be copied."""
        return Still(self.state.copy())

    def stop(self, broker_epoch: int) -> None:
        """Make the process sync everything, write the clean-shutdown marker and end."""
        self._link.send((STOP, (broker_epoch,)))
        self._child.wait()
        self._link.close()

    def kill(self) -> None:
        """End the process with SIGKILL, like a crash; a second call is harmless."""
        self._child.send_signal(signal.SIGKILL)
        self._child.wait()
        self._link.close()


def _become(old: Any, new: Any) -> None:
    """Give an object the state of another; its own parts are kept if they are of the same kind."""
    for each in fields(old):
        mine, other = getattr(old, each.name), getattr(new, each.name)
        if type(mine) is type(other) and is_dataclass(mine) and not mine.__dataclass_params__.frozen:
            _become(mine, other)
        else:
            setattr(old, each.name, other)
