"""The disks of a machine with several partitions, each in a log directory of its own.

They fail alone and lose power together, as the log directories of a Kafka broker do.  An effect names its
partition (`Of`).

Not here: what a disk is (`storage`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from replog.core.effects import Effect, Of
from replog.core.messages import ForPartition, Message
from replog.run.storage import Recovered
from replog.sim.cluster.storage import Chooser, Storage


@dataclass(frozen=True, slots=True)
class SeveralStorage:
    """A storage for each partition, by name."""

    parts: Mapping[str, Storage]

    def recover(self) -> Recovered:
        """Open all storages; the log is that of the first."""
        return next(iter(self.recover_all().values()))

    def recover_all(self) -> dict[str, Recovered]:
        """Open all storages, repairing the traces of a crash."""
        return {name: part.recover() for name, part in self.parts.items()}

    def with_bodies(self, message: Message) -> Message:
        """Return an outgoing message, with the bodies from the disk of its partition."""
        part = self.parts.get(message.partition) if isinstance(message, ForPartition) else None
        return message if part is None else part.with_bodies(message)

    def perform(self, effect: Effect) -> None:
        """Perform an effect on the disk of its partition."""
        assert isinstance(effect, Of), effect
        self.parts[effect.partition].perform(effect.effect)

    @property
    def hw_checkpoint(self) -> int:
        """Return the last written HW of the first partition."""
        return next(iter(self.parts.values())).hw_checkpoint

    def close(self, broker_epoch: int) -> None:
        """Shut all storages down cleanly."""
        for part in self.parts.values():
            part.close(broker_epoch)

    def crash(self) -> None:
        """Lose the process, but keep the page cache."""
        for part in self.parts.values():
            part.crash()

    def lose_power(self, choose: Chooser) -> None:
        """Lose the process and the part of each unflushed tail that `choose` selects."""
        for part in self.parts.values():
            part.lose_power(choose)

    def flush(self) -> None:
        """Make everything durable."""
        for part in self.parts.values():
            part.flush()

    def flushed(self) -> int:
        """Return the number of offsets that cannot be lost, over all partitions."""
        return sum(part.flushed() for part in self.parts.values())

    def end(self) -> int:
        """Return the number of offsets in the page cache, over all partitions."""
        return sum(part.end() for part in self.parts.values())

    def arm(self, occasion: int, kind: int) -> None:
        """Let the disk of one partition fail, or of none (-1)."""
        struck = list(self.parts)[occasion % len(self.parts)]
        for name, part in self.parts.items():
            part.arm(occasion if name == struck else -1, kind)

    def is_armed(self) -> bool:
        """Return whether a failure is still pending."""
        return any(part.is_armed() for part in self.parts.values())

    def copy(self) -> SeveralStorage:
        """Return an independent copy."""
        return SeveralStorage({name: part.copy() for name, part in self.parts.items()})


def recovered_by_name(storage: Storage, first: str) -> dict[str, Recovered]:
    """Open a machine's disk; return the state of each of its partitions."""
    return storage.recover_all() if isinstance(storage, SeveralStorage) else {first: storage.recover()}
