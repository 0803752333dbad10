"""The exceptions of the store.

A caller may catch `StoreError` and nothing else: an `OSError` from the file system is always translated, and
a corrupt file never surfaces as a `struct.error`, a `ValueError` or an `IndexError`.
"""


class StoreError(Exception):
    """Base of all documented failures of the store."""


class OffsetOutOfRangeError(StoreError):
    """The offset lies outside `[log_start, log_end]`."""


class CorruptBatchError(StoreError):
    """Bytes that are not a whole record batch with a matching CRC-32C."""


class BatchTooLargeError(StoreError):
    """A batch larger than the configured maximum, or than a segment can hold."""


class InvalidRecordError(StoreError):
    """A well-formed batch that breaks a rule: old format, wrong base offset, count or epoch."""


class StorageOfflineError(StoreError):
    """The directory failed (write error, full disk, fsync error): nothing is guaranteed until reopened."""


class CorruptFileError(StoreError):
    """A checkpoint, marker or directory whose content does not have the format that its name implies."""


class ForeignVersionError(StoreError):
    """A file of a version that this code does not support: refused, and never moved or overwritten."""


class DamagedLogError(CorruptFileError):
    """Files of a partition differ from the data written and synced: it stays closed until it is repaired."""


class DirectoryInUseError(StoreError):
    """Another process (or another open store of this process) holds the directory's lock."""
