"""The settings of a log; names and defaults are Kafka's (`segment.bytes`, `flush.messages`, ...)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Sizes in bytes; None disables a policy.

    `flush_messages` = 1 syncs before every append returns; None leaves syncing to the operating system,
    which is Kafka's default: durability then comes from replication. `flush_on_roll` syncs a segment when
    it is full.
    """

    segment_bytes: int = 1 << 30
    index_interval_bytes: int = 4096
    max_batch_bytes: int = 1_048_588
    flush_messages: int | None = None
    flush_on_roll: bool = True

    @property
    def largest_batch(self) -> int:
        """The largest batch that may be appended: a batch lies in one segment."""
        return min(self.max_batch_bytes, self.segment_bytes)


DEFAULT_CONFIG = LogConfig()
