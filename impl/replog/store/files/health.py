"""Whether a directory is still reliable: one switch, shared by everything in it, that is never reset.

After a failed write or fsync the content of the disk is unknown, and a later success proves nothing: the
kernel may have dropped the pages the failed call was about (Rebello et al., "Can Applications Recover from
fsync Failures?", ATC 2020). So the first failure takes the directory offline, as Kafka does with a log
directory, and only reopening it, which reads the actual content, brings it back.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from replog.store.files.errors import StorageOfflineError


class Health:
    """The state of a directory; `reason` is None while it is reliable."""

    __slots__ = ("reason",)

    def __init__(self) -> None:
        self.reason: str | None = None

    def check(self) -> None:
        """Raise `StorageOfflineError` once offline."""
        if self.reason is not None:
            raise StorageOfflineError(f"offline since: {self.reason}")

    def fail(self, doing: str, error: OSError) -> StorageOfflineError:
        """Go offline permanently (the first reason is kept) and return the error to raise."""
        at = f"{error.filename}: " if error.filename else ""
        reason = f"{doing}: {at}{error.strerror or error}"
        # Later failures are usually consequences of the first.
        if self.reason is None:
            self.reason = reason
        return StorageOfflineError(reason)

    @contextmanager
    def during(self, doing: str) -> Iterator[None]:
        """Raise if offline; go offline on an `OSError` in the block."""
        self.check()
        try:
            yield
        except OSError as error:
            raise self.fail(doing, error) from error
