"""The simulator's disk, and its possible contents after a power failure: one `Loss` for each kind of remains.

Of a file a prefix of its unsynced writes is left, as on the simulator's own.  Of a directory it is any of the
unsynced changes: a file system may write names in another order than they were given, and the store must not
rely on one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from replog.sim.disks.disk import ROOT, SimFs
from replog.sim.disks.images import Chooser, Directory, Inode, Naming

Names = Callable[[list[Naming]], list[Naming]]
Image = tuple[tuple[str, bytes | None, bool], ...]


def _least(_: int) -> int:
    """Nothing that was not synced, except for the length of a file, which then has zeros."""
    return 0


def _most(choices: int) -> int:
    """Everything that was written."""
    return choices - 1


def _half(choices: int) -> int:
    """Half of the changes, and half of the bytes of the next one."""
    return (choices - 1) // 2


@dataclass(frozen=True, slots=True)
class Loss:
    """The remains of the writes to each file, and of the changes of each directory."""

    writes: Chooser
    names: Names


LOSSES = {
    "nothing": Loss(_least, lambda changes: []),
    "names": Loss(_least, lambda changes: changes),
    "contents": Loss(_most, lambda changes: []),
    "torn": Loss(_half, lambda changes: changes[: len(changes) // 2]),
    # The newer changes without the older ones.
    "late names": Loss(_most, lambda changes: changes[(len(changes) + 1) // 2 :]),
    "all": Loss(_most, lambda changes: changes),
}
"""By name.  `all` is the death of the process alone, where a write that it was in is half done."""


class Disk(SimFs):
    """A disk that keeps names in any order."""

    def lose(self, loss: Loss) -> None:
        """Cut the power."""
        self.process_crash()
        for _, node in sorted(self._nodes.items()):
            if isinstance(node, Inode):
                node.cache = node.durable = node.surviving(loss.writes)
                node.pages_lost = False
            else:
                left = Directory({}, node.durable, loss.names(node.pending))
                node.names = left.surviving(_most)
                node.durable = node.names.copy()
            node.pending.clear()
        self._sweep()

    def twin(self) -> Disk:
        """Return a copy, without a process and without faults."""
        # As `snapshot`, without locks and faults, and as the disk of a new process.
        twin = Disk()
        twin._nodes = {number: node.copy() for number, node in self._nodes.items()}
        twin._next_number = self._next_number
        twin.incarnation = self.incarnation
        twin.process_crash()
        return twin

    def image(self) -> Image:
        """Return all files and folders, as seen by a process, and whether a sync of the file has failed."""
        # By their numbers and not by paths: a disk is read after each crash, and each path is a search.
        files: list[tuple[str, bytes | None, bool]] = []
        waiting = [("", ROOT)]
        while waiting:
            path, number = waiting.pop()
            node = self._nodes[number]
            if isinstance(node, Inode):
                files.append((path, node.cache, node.pages_lost))
            else:
                files.append((path, None, False))
                waiting += [(f"{path}/{name}", number) for name, number in sorted(node.names.items())]
        return tuple(files)
