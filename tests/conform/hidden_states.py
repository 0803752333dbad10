"""Bugs of replog visible only to a system that shares state with another one: planted by name.

Copies that share what changes, and state that no copy has: of a class, of a module, of what a crash ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import pytest

from replog.core.broker import purgatory
from replog.core.broker.replica import Replica
from replog.core.broker.state import Leading, ReplicaState
from replog.core.controller.controller import Controller
from replog.core.controller.state import ControllerState
from replog.core.effects import Timer
from replog.core.log.logview import LogView
from replog.run.files import FileStorage
from replog.sim.cluster.storage import MemoryStorage
from replog.sim.disks.stored import KEY, StoreStorage

Bug = Callable[[pytest.MonkeyPatch], None]


def shares(cls: type[Any], *names: str) -> Bug:
    """A copy shares the objects of its origin in some attributes."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        copy = cls.copy

        def shallow(self: Any) -> Any:
            twin = copy(self)
            for name in names:
                setattr(twin, name, getattr(self, name))
            return twin

        patch.setattr(cls, "copy", shallow)

    return plant


def elects_by_a_class(patch: pytest.MonkeyPatch) -> None:
    """The high watermark is stored in the class, which no crash and no branch resets."""
    highest: dict[int, int] = {}
    receive = Replica.receive

    def remembered(self: Replica, *given: Any) -> Any:
        effects = receive(self, *given)
        number = self.state.broker_id
        highest[number] = max(highest.get(number, 0), self.state.log.hw)
        self.state.log.hw = min(highest[number], self.state.log.leo)
        return effects

    patch.setattr(Replica, "receive", remembered)


def counts_in_a_module(patch: pytest.MonkeyPatch) -> None:
    """Every fifth message of all systems together is dropped."""
    seen: list[int] = []
    receive = Replica.receive

    def lossy(self: Replica, *given: Any) -> Any:
        seen.append(1)
        return [] if len(seen) % 5 == 0 else receive(self, *given)

    patch.setattr(Replica, "receive", lossy)


def rings_once(patch: pytest.MonkeyPatch) -> None:
    """The timer of the checkpoint remembers in its class what was written, and never writes it again."""
    written: set[tuple[int, int]] = set()
    fire = Replica.fire

    def once(self: Replica, timer: Timer, *given: Any) -> Any:
        place = self.state.broker_id, self.state.log.hw
        if timer is Timer.HW_CHECKPOINT and place in written:
            return []
        written.add(place)
        return fire(self, timer, *given)

    patch.setattr(Replica, "fire", once)


def waits_in_a_module(patch: pytest.MonkeyPatch) -> None:
    """Waiting producers are those of all leaders that ever existed."""
    waiting: list[Any] = []
    complete = purgatory.complete_produces

    def completed(state: ReplicaState, leading: Leading, out: Any) -> None:
        waiting.extend(one for one in leading.produces if one not in waiting)
        leading.produces = list(waiting)
        complete(state, leading, out)

    patch.setattr(purgatory, "complete_produces", completed)


def recovers_from_memory(patch: pytest.MonkeyPatch) -> None:
    """A start uses the longest log that any process had on this disk, not the one on it."""
    longest: list[Any] = []
    recover = MemoryStorage.recover

    def recovered(self: MemoryStorage) -> Any:
        if len(self.batches) > len(longest):
            longest[:] = self.batches
        if longest and not self.batches:
            self.batches = list(longest)
        return recover(self)

    patch.setattr(MemoryStorage, "recover", recovered)


def admits_by_a_class(patch: pytest.MonkeyPatch) -> None:
    """The controller remembers fenced brokers in its class, and never unfences them."""
    fenced: set[int] = set()
    handle = Controller.handle

    def handled(self: Controller, *given: Any) -> Any:
        before = dict(self.state.brokers)
        effects = handle(self, *given)
        for number, broker in list(self.state.brokers.items()):
            if broker.state.name == "FENCED":
                fenced.add(number)
            elif number in fenced and number in before:
                self.state.brokers[number] = before[number]
        return effects

    patch.setattr(Controller, "handle", handled)


def opens_and_changes(patch: pytest.MonkeyPatch) -> None:
    """Each opening of a directory writes the log's end as its checkpoint: reading a machine changes it."""
    opened = FileStorage._opened

    def changed(self: FileStorage) -> Any:
        is_new = self._directory is None
        directory = opened(self)
        if is_new and KEY in directory.logs:
            directory.checkpoint({KEY: directory.logs[KEY].log_end})
        return directory

    patch.setattr(FileStorage, "_opened", changed)


def keeps_files_open(patch: pytest.MonkeyPatch) -> None:
    """A copy uses the files of its origin: both see the writes of one."""
    copy = StoreStorage.copy

    def same_disk(self: StoreStorage) -> StoreStorage:
        twin = copy(self)
        twin.fs = self.fs
        twin._fs = self.fs
        twin._directory = self._directory
        return twin

    patch.setattr(StoreStorage, "copy", same_disk)


def counts_openings(patch: pytest.MonkeyPatch) -> None:
    """Every third opening of any directory sees another checkpoint than the written one."""
    seen: list[int] = []
    opened = FileStorage._opened

    def forgetful(self: FileStorage) -> Any:
        is_new = self._directory is None
        directory = opened(self)
        if is_new:
            seen.append(1)
            if len(seen) % 3 == 0:
                directory.high_watermarks[KEY] = 1
        return directory

    patch.setattr(FileStorage, "_opened", forgetful)


IN_MEMORY: Mapping[str, Bug] = MappingProxyType({
    "remotes of a leader are shared": shares(Leading, "remotes"),
    "produces that wait are shared": shares(Leading, "produces"),
    "fetches that wait are shared": shares(Leading, "fetches"),
    "the leader's state is shared": shares(ReplicaState, "leading"),
    "the fetcher is shared": shares(ReplicaState, "following"),
    "the log is shared": shares(ReplicaState, "log"),
    "the batches are shared": shares(LogView, "batches"),
    "the epoch cache is shared": shares(LogView, "epochs"),
    "the state of a replica is shared": shares(Replica, "state"),
    "the controller's brokers are shared": shares(ControllerState, "brokers"),
    "the controller's partitions are shared": shares(ControllerState, "partitions"),
    "the controller's history is shared": shares(ControllerState, "history"),
    "the disk's batches are shared": shares(MemoryStorage, "batches"),
    "the high watermark is a class's": elects_by_a_class,
    "messages are counted in a module": counts_in_a_module,
    "a timer rings once for all": rings_once,
    "producers wait in a module": waits_in_a_module,
    "a start finds another machine's log": recovers_from_memory,
    "a controller never forgets whom it fenced": admits_by_a_class,
})  # fmt: skip
ON_FILES: Mapping[str, Bug] = MappingProxyType({
    "an opening changes the checkpoint": opens_and_changes,
    "copies have one disk": keeps_files_open,
    "a third opening has another checkpoint": counts_openings,
})  # fmt: skip
