"""The garbage collector while recordings are explained.

Programs of some ten thousand objects last, and events are freed by their reference counts alone: the
collector would repeatedly visit all of that, for an occasional tracing that refers to itself.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

ALL_AFTER = 32  # pieces after which all objects are visited once
YOUNG = 100_000  # objects that are new at a collection: those of some ten recordings


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collect garbage rarely inside the block."""
    thresholds = gc.get_threshold()
    gc.set_threshold(YOUNG, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


@contextmanager
def kept_objects() -> Iterator[None]:
    """Exclude earlier objects from collection, and those of a `gc.freeze` inside the block."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


class WorkerCollector:
    """The garbage collector in a Spark process, whose daemon collects after each task.

    Functions of a program are made when they are needed, so after some pieces there are as many objects as a
    piece takes a sixth of its time to visit.
    """

    def __init__(self) -> None:
        self._done = 0

    def begin(self) -> None:
        """Exclude existing objects from collection, once; those kept by earlier work may be garbage now."""
        gc.unfreeze()
        self.keep()

    def keep(self) -> None:
        """Exclude the objects of a program from collection."""
        gc.collect()
        gc.freeze()

    @contextmanager
    def piece(self) -> Iterator[None]:
        """Collect rarely within the block, and exclude the remaining objects."""
        with rare_collections():
            yield
        self._done += 1
        # Also objects in use only at the end of a piece, such as Spark's own objects for its task.
        (self.keep if self._done % ALL_AFTER else self.begin)()
