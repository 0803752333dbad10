"""Everything the store can raise, each with the Kafka error code a broker answers with.

Codes are those of Kafka's protocol (0 means "never reaches a client"). A caller may catch `StoreError` and
nothing else: an `OSError` from the file system is always translated, and a corrupt file never surfaces as a
`struct.error`, a `ValueError` or an `IndexError`.
"""

from typing import ClassVar


class StoreError(Exception):
    """Base of all documented failures of the store; `code` is the Kafka error code."""

    code: ClassVar[int] = 56


class OffsetOutOfRangeError(StoreError):
    """The offset lies outside `[log_start, log_end]`."""

    code = 1


class CorruptBatchError(StoreError):
    """Bytes that are not a whole record batch with a matching CRC-32C."""

    code = 2


class BatchTooLargeError(StoreError):
    """A batch larger than the configured maximum, or than a segment can hold."""

    code = 10


class InvalidRecordError(StoreError):
    """A well-formed batch that breaks a rule: old format, wrong base offset, count or epoch."""

    code = 87


class StorageOfflineError(StoreError):
    """The directory failed (write error, full disk, fsync error): nothing is promised until re-opened."""

    code = 56


class CorruptFileError(StoreError):
    """A checkpoint, marker or directory whose content cannot be read as what its name says."""

    code = 56


class ForeignVersionError(CorruptFileError):
    """A file of a version that this code does not support: refused, and never overwritten."""


class DamagedLogError(CorruptFileError):
    """Files of a partition are not what was written and synced: it stays closed until it is repaired."""


class DirectoryInUseError(StoreError):
    """Another process (or another open store of this process) holds the directory's lock."""

    code = 0
