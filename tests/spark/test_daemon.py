"""The daemon's workers end silently with their session, and only then."""

from __future__ import annotations

import pytest

from specchk.spark.worker.daemon import quiet


def closed(*_: object) -> int:
    raise BrokenPipeError


def broken(*_: object) -> int:
    raise ConnectionResetError


def test_a_worker_whose_connection_spark_has_closed_ends_without_a_trace():
    """PySpark's prints one for each worker that still has bytes to send, at the end of a right run."""
    assert quiet(closed)("socket", True) == 1


def test_any_other_end_of_a_worker_is_reported():
    """Its result, and its errors."""
    assert quiet(lambda *given: len(given))("socket", True) == 2
    with pytest.raises(ConnectionResetError):
        quiet(broken)("socket", True)
