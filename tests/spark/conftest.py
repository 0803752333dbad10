"""One Spark context for the room, and what its tests run.

Java has to be there: its absence is a failure that says so, never a skip.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark import SparkContext

from spark.coins import BANK, TRACING
from specchk.spark.reasons import NO_JAVA, has_java
from specchk.spark.session import session


@pytest.fixture(scope="session")
def context() -> Iterator[SparkContext]:
    """A local context with two cores and four tries for each task."""
    assert has_java(), NO_JAVA
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with session("local[2,4]", {"spark.ui.enabled": "false", "spark.driver.memory": "512m"}) as found:
        yield found


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[Path]:
    """A tracing, and a folder `in` for recordings; its path has what a URI would escape, and an escape."""
    folder = tmp_path / "a bank #1%20"
    (folder / "in").mkdir(parents=True)
    (folder / "bank.spec").write_text(BANK)
    (folder / "tracing.py").write_text(TRACING)
    path = list(sys.path)
    yield folder
    sys.path[:] = path
    sys.modules.pop("tracing", None)
