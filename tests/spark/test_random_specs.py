"""The search on Spark agrees on random specs with the native engine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pyspark import SparkContext

from spark.small import natively, said
from specchk.search.engine import Unsupported
from specchk.spark.engine import SparkOptions, search

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("core", "agreement")]

from spec_texts import small_specs  # noqa: E402 - pytest runs with importlib mode

from agreement.both import program_of  # noqa: E402

SHARED = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large)
WAYS = st.builds(
    SparkOptions, handover=st.just(1), partitions=st.integers(1, 3),
    symmetry=st.booleans(), keep_going=st.booleans(),
)  # fmt: skip


@pytest.fixture(autouse=True)
def _context(context: SparkContext) -> None:
    """`run` uses the existing context."""


def check_agreement(text: str, options: SparkOptions, folder: Path) -> None:
    program = program_of(text, folder)
    assume(program is not None)  # some assign a place twice, which is refused
    assert program is not None
    try:
        expected = natively(program, options)
    except Unsupported:
        assume(False)
    assert said(search(program, options)) == said(expected)


@settings(max_examples=5, suppress_health_check=SHARED)
@given(text=small_specs(), options=WAYS)
def test_spark_agrees_on_random_specs(text: str, options: SparkOptions, tmp_path: Path) -> None:
    """Verdict, counts of each level, coverage, witnesses and every step of counterexamples are equal."""
    check_agreement(text, options, tmp_path)


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=SHARED)
@given(text=small_specs(), options=WAYS)
def test_spark_agrees_on_many_random_specs(text: str, options: SparkOptions, tmp_path: Path) -> None:
    """The same for many of them."""
    check_agreement(text, options, tmp_path)
