"""A search on Spark that finds nothing wrong is confirmed on a sample of its states."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext

from spark.small import of_text
from specchk.native.explain import Explainer
from specchk.native.machine.asm import Asm
from specchk.search.replay import ReplayFailed
from specchk.search.verdict import Holds, Violated
from specchk.spark.engine import SparkOptions, search

SPEC = """\
spec deep
type Key = 0..19
const weights : Key -> 0..31
var key : Key = 0
var far : 0..40 = 0
action next():
    key' = if key < 19 then key + 1 else 0
action on():
    require far < 40
    far' = far + 1
invariant light: weights[key] < 31 or far < 2
step invariant onward: far' >= far
deadlock ok
model one:
    weights = {{ k: {weight} for k in Key }}
"""
OPTIONS = SparkOptions(handover=10, partitions=3)


@pytest.fixture(autouse=True)
def _context(context: SparkContext) -> None:
    """`search` uses the context that is there."""


@pytest.mark.parametrize("shuffle", [False, True])
def test_states_of_all_levels_are_judged(
    shuffle: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them was found by the search, and they are of levels before and after the handover."""
    judged: list[tuple[int, ...]] = []
    real = Explainer.confirm

    def confirm(self: Explainer, sample: Any, is_kept: Any) -> None:
        judged.extend(map(tuple, sample))
        real(self, judged, is_kept)

    monkeypatch.setattr(Explainer, "confirm", confirm)
    found = of_text(SPEC.format(weight="k"), tmp_path)
    outcome = search(found, SparkOptions(handover=10, partitions=2 if not shuffle else 5, shuffle=shuffle))
    assert isinstance(outcome.verdict, Holds)
    assert outcome.statistics.distinct == 820
    assert 8 <= len(judged) <= 16
    assert len(set(judged)) == len(judged)


def test_a_property_that_executors_misjudge_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when constants of several words were read wrong: all of them have the driver's code."""
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")  # nothing is taken from there or kept
    wrong = of_text(SPEC.format(weight="if k < 8 then 31 else k"), tmp_path)
    assert isinstance(search(wrong, OPTIONS).verdict, Violated)
    real = Asm.bits

    def cut(self: Asm, value: Any, *rest: Any) -> Any:
        return real(self, value & (1 << 64) - 1 if isinstance(value, int) else value, *rest)

    monkeypatch.setattr(Asm, "bits", cut)
    with pytest.raises(ReplayFailed, match="`light` fails where the search found nothing wrong"):
        search(wrong, OPTIONS)
