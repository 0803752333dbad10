"""One Spark context for the room, and what its tests run.

Java has to be there: its absence is a failure that says so, never a skip.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest
from pyspark import SparkContext

from specchk.spark.reasons import NO_JAVA, has_java
from specchk.spark.session import session


@pytest.fixture(scope="session")
def context() -> Iterator[SparkContext]:
    """A local context with two cores and four tries for each task."""
    assert has_java(), NO_JAVA
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with session("local[2,4]", {"spark.ui.enabled": "false", "spark.driver.memory": "512m"}) as found:
        yield found
