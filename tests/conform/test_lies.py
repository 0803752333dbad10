"""A recording that tells a consistent lie is not explained (`corruptions` has the lies)."""

from __future__ import annotations

from functools import cache

import pytest

from conform.corruptions import LIES
from conform.test_validate_replog import explained, validator
from replog.sim.recording.record_run import record
from specchk.conform.contract.recording import Recording, parse, renumbered
from specchk.conform.recordings.validate import Explained
from tracing import ReplogTracing

SEEDS = 48  # those in which each lie has a place


@cache
def recorded(seed: int) -> Recording:
    return parse(f"seed {seed}", list(record(seed)))


def told(recording: Recording) -> Explained:
    one = validator(tuple(sorted(ReplogTracing.constants(recording).items())))
    return one.explain(ReplogTracing(one.program, recording), recording)


@pytest.mark.parametrize("name", LIES)
def test_a_lie_is_not_explained(name: str) -> None:
    """At the first place where it can be told."""
    for seed in range(SEEDS):
        recording = recorded(seed)
        for lines in LIES[name](list(recording.events)):
            lie = Recording(recording.name, recording.header, renumbered(lines))
            assert told(lie).blocked is not None
            return
    raise AssertionError("the lie has no place")


def test_the_truth_is_explained() -> None:
    """The lies are refused for what they say: nothing else was changed."""
    assert explained(list(record(1))).blocked is None
