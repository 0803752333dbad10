"""The ports of the published Kafka models against TLC's figures and against the bug ledger.

Three sources of figures, none of them this checker: state counts that TLC gave, the lengths of the ledger's
counterexamples (TLC too), and, for other sizes, a direct transliteration of the TLA+ modules to Python that
was written for this comparison and kept out of the repository.  It agreed with the ports on states, depth and
the length of every counterexample at all of 562 small sizes of the five replication models, and at 47 of
async_isr.
"""

from __future__ import annotations

import pytest

from specchk.lang.syntax.decls import Expect
from specs.spec_runs import (
    explored,
    failure_of_scenario,
    lengths,
    models_of,
    problems_of_model,
    scenarios_of,
    spec,
)

PORTS = ["truncate_to_hw", "kip101", "kip279", "kip320_first_try", "kip320", "async_isr"]
FILES = [f"kafka/{name}" for name in [*PORTS, "ledger", "async_isr_ledger", "epoch_truncation"]]
SLOW = {
    "kafka/kip279": {"three_records", "unfenced_acknowledgement"},
    "kafka/kip320": {"size_2_3_3_3", "size_3_2_2_1"},
    "kafka/kip320_first_try": {"stale_acknowledgement", "stale_acknowledgement_in_cached_isr"},
    "kafka/ledger": {"b5", "b6", "b7", "b8_hw", "b17_no_divergence", "unclean_without_divergence"},
}
PUBLISHED = ["weak_isr", "strong_isr", "leader_in_isr"]
slow = pytest.mark.slow

TLC = [  # module, replicas, log size, records, largest epoch, distinct states, depth
    ("kip320", 2, 1, 1, 1, 277, 12),
    ("kip320", 2, 1, 1, 2, 1365, 14),
    ("kip320", 2, 1, 2, 2, 1919, 15),
    ("kip320", 2, 2, 2, 1, 957, 15),
    ("kip320", 2, 2, 2, 2, 5973, 18),
    ("kip101", 2, 1, 1, 1, 341, 12),
    pytest.param("kip101", 2, 2, 2, 2, 9045, 18, marks=slow),
    pytest.param("kip279", 2, 2, 2, 2, 9027, 18, marks=slow),
    pytest.param("truncate_to_hw", 2, 2, 2, 2, 10131, 20, marks=slow),
    pytest.param("kip320", 2, 3, 3, 3, 120879, 26, marks=slow),
    pytest.param("kip320", 3, 2, 2, 1, 39619, 22, marks=slow),
]

LEDGER = [  # spec, model, property, steps
    ("truncate_to_hw", "loss", "strong_isr", 9),
    ("truncate_to_hw", "loss_in_cached_isr", "weak_isr", 8),
    ("truncate_to_hw", "divergence", "same_epoch_logs_match", 10),
    ("truncate_to_hw", "committed_divergence", "log_match", 13),
    ("kip101", "fast_failover", "same_epoch_logs_match", 10),
    ("kip101", "fast_failover_committed", "log_match", 12),
    ("kip101", "unknown_epoch", "strong_isr", 11),
    ("kip279", "unfenced_acknowledgement", "strong_isr", 10),
    ("kip320_first_try", "stale_acknowledgement", "strong_isr", 12),
    ("ledger", "b1_fenced", "strong_isr", 10),
    ("ledger", "b3_fenced", "same_epoch_logs_match", 10),
    ("ledger", "b4_fenced", "strong_isr", 12),
    ("ledger", "b5", "strong_isr", 11),
    ("ledger", "b6", "same_epoch_logs_match", 12),
    ("ledger", "b7", "same_epoch_logs_match", 11),
    ("ledger", "b8_hw", "strong_isr", 12),
    ("ledger", "b8_expand", "strong_isr", 9),
    ("ledger", "b16", "strong_isr", 6),
    ("ledger", "b17", "strong_isr", 7),
    ("ledger", "b17_single", "accepted_records_exist", 4),
    ("ledger", "b20", "hw_no_regress", 8),
    ("ledger", "b29", "log_match", 12),
    ("ledger", "b30", "strong_isr", 7),
    ("ledger", "b31", "same_epoch_logs_match", 7),
    ("async_isr_ledger", "b14", "valid_high_watermark", 5),
    ("async_isr_ledger", "b14_eager_shrink", "valid_high_watermark", 2),
    ("async_isr_ledger", "b19", "valid_high_watermark", 8),
    ("async_isr_ledger", "b19_three_replicas", "valid_high_watermark", 6),
]

# Corners: one replica, no room, no election, more room than records, and what else fails where.
TRANSLITERATED: list[tuple[str, tuple[int, int, int, int], int, int, dict[str, int]]] = [
    ("truncate_to_hw", (1, 2, 3, 1), 16, 8, {}),
    ("truncate_to_hw", (2, 0, 1, 1), 85, 6, {}),
    ("truncate_to_hw", (2, 1, 1, 0), 39, 9, {}),
    ("truncate_to_hw", (2, 1, 1, 1), 353, 12, {"weak_isr": 8, "strong_isr": 9}),
    ("truncate_to_hw", (2, 1, 3, 1), 401, 12, {"weak_isr": 8, "strong_isr": 9}),
    ("truncate_to_hw", (2, 3, 1, 2), 2149, 15, {"weak_isr": 8, "strong_isr": 9}),
    ("truncate_to_hw", (3, 1, 1, 1), 10681, 17, {"weak_isr": 8, "strong_isr": 8}),
    ("kip101", (1, 3, 2, 2), 44, 10, {}),
    ("kip101", (2, 2, 2, 2), 9045, 18, {"weak_isr": 11, "strong_isr": 11}),
    ("kip101", (2, 3, 3, 1), 3441, 18, {}),
    ("kip101", (3, 1, 1, 1), 9841, 18, {"strong_isr": 11}),
    ("kip279", (1, 1, 1, 1), 10, 6, {}),
    ("kip279", (2, 1, 3, 2), 2751, 16, {}),
    ("kip279", (3, 1, 1, 1), 9841, 18, {"strong_isr": 11}),
    ("kip320_first_try", (1, 2, 2, 2), 44, 10, {}),
    ("kip320_first_try", (2, 2, 2, 2), 8429, 18, {}),
    ("kip320_first_try", (2, 1, 2, 2), 2697, 16, {}),
    ("kip320_first_try", (3, 1, 1, 1), 9661, 18, {}),
    ("kip320", (1, 1, 1, 1), 10, 6, {}),
    ("kip320", (1, 3, 3, 3), 117, 13, {}),
    ("kip320", (2, 0, 1, 2), 227, 10, {}),
    ("kip320", (2, 1, 1, 0), 37, 9, {}),
    ("kip320", (2, 3, 1, 1), 277, 12, {}),
    ("kip320", (2, 1, 3, 2), 1973, 16, {}),
    ("kip320", (3, 1, 1, 1), 6787, 18, {}),
]

ASYNC_ISR = [  # replicas, largest offset, largest version, distinct states, depth
    (2, 1, 2, 42, 10),
    (3, 1, 2, 1460, 14),
    (1, 1, 1, 2, 2),
    (2, 1, 0, 6, 4),
    (2, 1, 1, 24, 7),
    (2, 2, 3, 168, 15),
    (3, 2, 2, 4088, 17),
    (3, 1, 3, 8020, 18),
]


def sizes(replicas: int, log_size: int, records: int, epoch: int) -> dict[str, int]:
    return {"Replicas": replicas, "LogSize": log_size, "MaxRecords": records, "MaxLeaderEpoch": epoch}


@pytest.mark.parametrize(("name", "model"), models_of(FILES, SLOW))
def test_every_model_is_as_it_expects(name: str, model: str) -> None:
    """Verdict, length of the counterexample and counts are those declared in the model."""
    assert problems_of_model(name, model) == []


@pytest.mark.parametrize(("name", "scenario"), scenarios_of(FILES))
def test_every_scenario_goes_as_written(name: str, scenario: str) -> None:
    """Each line of a walk-through is possible, refused or true as stated."""
    assert failure_of_scenario(name, scenario) is None


@pytest.mark.parametrize(("module", "replicas", "log", "records", "epoch", "distinct", "depth"), TLC)
def test_counts_are_tlcs(
    module: str, replicas: int, log: int, records: int, epoch: int, distinct: int, depth: int
) -> None:  # fmt: skip
    """Any size can be set from outside, and has the states and the depth that TLC finds without symmetry."""
    statistics = explored(f"kafka/{module}", sizes(replicas, log, records, epoch)).statistics
    assert (statistics.distinct, statistics.depth) == (distinct, depth)


@pytest.mark.parametrize(("module", "size", "distinct", "depth", "failing"), TRANSLITERATED)
def test_counts_are_the_transliterations(
    module: str, size: tuple[int, int, int, int], distinct: int, depth: int, failing: dict[str, int]
) -> None:  # fmt: skip
    """At the corners too: states, depth, and for each published property the shortest counterexample."""
    outcome = explored(f"kafka/{module}", sizes(*size), PUBLISHED)
    found = (outcome.statistics.distinct, outcome.statistics.depth, lengths(outcome))
    assert found == (distinct, depth, failing)


@pytest.mark.parametrize(("replicas", "offset", "version", "distinct", "depth"), ASYNC_ISR)
def test_async_isr_counts_are_bounded_as_tlcs(
    replicas: int, offset: int, version: int, distinct: int, depth: int
) -> None:  # fmt: skip
    """The horizons cut the infinite state space at the places of a state constraint."""
    bounds = {"Replicas": replicas, "MaxOffset": offset, "MaxVersion": version}
    outcome = explored("kafka/async_isr", bounds)
    assert (outcome.statistics.distinct, outcome.statistics.depth) == (distinct, depth)
    assert lengths(outcome) == {}


@pytest.mark.parametrize(("name", "model", "law", "steps"), LEDGER)
def test_models_expect_the_ledgers_lengths(name: str, model: str, law: str, steps: int) -> None:
    """The expected lengths are the ledger's, and no model was adapted to the checker's results."""
    items = spec(f"kafka/{name}").spec.models[model].items
    expected = [(item.name.text, item.number) for item in items if isinstance(item, Expect) and item.name]
    assert expected == [(law, steps)]
