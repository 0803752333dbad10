"""A search on Spark without findings is confirmed on a sample of its states."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext

from native.deep import deep, misread_constants
from spark.small import of_text
from specchk.native.explain import Explainer
from specchk.search.replay import ReplayFailed
from specchk.search.verdict import Holds, Violated
from specchk.spark.engine import SparkOptions, search

OPTIONS = SparkOptions(handover=10, partitions=3)


@pytest.fixture(autouse=True)
def _context(context: SparkContext) -> None:
    """`search` uses the existing context."""


@pytest.mark.parametrize("partitions", [2, 5])
def test_states_of_all_levels_are_judged(
    partitions: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them was found by the search, and they are of levels before and after the handover."""
    judged: list[tuple[int, ...]] = []
    real = Explainer.confirm

    def confirm(self: Explainer, sample: Any, is_kept: Any) -> None:
        judged.extend(map(tuple, sample))
        real(self, judged, is_kept)

    monkeypatch.setattr(Explainer, "confirm", confirm)
    found = of_text(deep(), tmp_path)
    outcome = search(found, SparkOptions(handover=10, partitions=partitions))
    assert isinstance(outcome.verdict, Holds)
    assert outcome.statistics.distinct == 820
    assert 8 <= len(judged) <= 16
    assert len(set(judged)) == len(judged)


def test_a_property_that_executors_misjudge_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when constants of several words were read wrong: all of them have the driver's code."""
    wrong = of_text(deep("if k < 8 then 31 else k", far=2), tmp_path)
    assert isinstance(search(wrong, OPTIONS).verdict, Violated)
    misread_constants(monkeypatch)
    with pytest.raises(ReplayFailed, match="`light` fails where the search found nothing wrong"):
        search(wrong, OPTIONS)
