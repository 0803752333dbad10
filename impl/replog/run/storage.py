"""The disk of a broker as its process uses it: an interface.

Invariant: after a crash, `recover` returns what a broker may rely on, and nothing that was flushed is
missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from replog.core.effects import Effect
from replog.core.log.logview import LogView
from replog.core.messages import Message


class StorageError(Exception):
    """The disk failed under an effect; a broker halts on it, as Kafka does when its last log dir fails."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """The state found at a start.

    The log with its HW checkpoint applied, and the clean marker's broker epoch (-1: none).
    """

    log: LogView
    previous_broker_epoch: int


class BrokerStorage(Protocol):
    """One broker's disk, as its process uses it."""

    def recover(self) -> Recovered:
        """Open the disk, repairing the traces of a crash."""

    def with_bodies(self, message: Message) -> Message:
        """Return an outgoing message as the disk has its batches; `StorageError` if the disk fails."""

    def perform(self, effect: Effect) -> None:
        """Perform a disk effect; `StorageError` if the disk fails."""

    @property
    def hw_checkpoint(self) -> int:
        """Return the last written HW; 0 if none was written."""

    def close(self, broker_epoch: int) -> None:
        """Shut down cleanly: flush all, write the checkpoints and the marker."""
