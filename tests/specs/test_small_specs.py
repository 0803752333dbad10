"""The smaller specs: delivery, producers, ISR timing, placement, the fetch rounds and the examples.

Counts of the examples were checked against a program of its own for each; two_phase_commit has the known
counts of Lamport's TwoPhase.  Lengths of delivery's counterexamples are those of the bug ledger.
"""

from __future__ import annotations

import pytest

from specchk.compile.instantiate import instantiate
from specchk.search.engine import Options
from specchk.search.reference import search
from specs.spec_runs import (
    SPECS,
    declared,
    failure_of_scenario,
    lengths,
    models_of,
    problems_of_model,
    scenarios_of,
    spec,
)  # fmt: skip

EXAMPLES = sorted(f"examples/{path.stem}" for path in (SPECS / "examples").glob("*.spec"))
TICKETS = ("check_quorum", "hanging_transaction", "out_of_range", "voter_restart")
FILES = [
    *(f"kafka/{name}" for name in TICKETS),
    "coordinator", "delivery", "delivery_once", "groups", "isr_timing", "kafka_stories", "log", "membership",
    "once", "placement", "producer_state", "quorum", "quorum_liveness", "store", "two_round_fetch",
    "two_round_fetch_log", *EXAMPLES,
]  # fmt: skip

SLOW = {
    "kafka_stories": {
        "remote_leo_kept",
        "remote_leo_kept_and_fenced",
        "last_replica_standing",
        "unclean_stop_overlooked",
        "joins_before_epoch_start",
        "truncate_to_hw",
    },
    "store": {"larger_segments", "flushed_by_two"},
    "examples/sliding_block": {"huarong_dao"},
    "examples/raft": {"one_term"},
    "examples/b_tree": {"four_keys"},
    "examples/binary_search": {"eight"},
    "examples/byzantine_broadcast": {"four"},
    "examples/paxos_voting": {"two_ballots"},
    "examples/chameneos": {"four"},
    "examples/game_of_life": {"four"},
    "examples/readers_writers": {"three"},
    "examples/scheduling_allocator": {"three_clients"},
    "examples/token_ring": {"six"},
}


ALL = sorted(path.relative_to(SPECS).with_suffix("").as_posix() for path in SPECS.rglob("*.spec"))


@pytest.mark.parametrize("name", ALL)
def test_what_is_read_of_a_text_is_what_it_declares(name: str) -> None:
    """Tests are made for the models and scenarios of a text; the checker has the same."""
    assert declared("model", name) == list(spec(name).spec.models)
    assert declared("scenario", name) == list(spec(name).spec.scenarios)


@pytest.mark.parametrize(("name", "model"), models_of(FILES, SLOW))
def test_every_model_is_as_it_expects(name: str, model: str) -> None:
    """Verdict, length of the counterexample and counts are those declared in the model."""
    assert problems_of_model(name, model) == []


@pytest.mark.parametrize(("name", "scenario"), scenarios_of(FILES))
def test_every_scenario_goes_as_written(name: str, scenario: str) -> None:
    """Each line of a walk-through is possible, refused or true as stated."""
    assert failure_of_scenario(name, scenario) is None


@pytest.mark.parametrize(
    ("model", "law", "steps"),
    [
        ("b13", "no_duplicate", 5),
        ("b26", "in_order", 7),
        ("b27", "no_skip", 3),
        ("b28", "no_redo", 5),
    ],
)
def test_delivery_fails_in_the_ledgers_lengths(model: str, law: str, steps: int) -> None:
    """Duplicates, reordering, loss and repetition occur after as many steps as in the ledger."""
    outcome = search(instantiate(spec("delivery"), model).program, Options())
    assert lengths(outcome) == {law: steps}


@pytest.mark.parametrize(
    ("rule", "law"),
    [
        ("message_count", "steady_stays"),
        ("message_count", "member_is_recent"),
        ("caught_up", "steady_stays"),
        ("every_fetch", "member_is_recent"),
    ],
)
def test_every_older_rule_breaks_what_todays_keeps(rule: str, law: str) -> None:
    """Each rule of being caught up except today's removes a good follower or keeps a bad one."""
    model = "steady" if law == "steady_stays" else "today"
    for chosen, fails in ((rule, True), ("previous_fetch", False)):
        program = instantiate(spec("isr_timing"), model, {"rule": chosen}, [law]).program
        assert (law in lengths(search(program, Options()))) == fails


@pytest.mark.parametrize(("brokers", "factor"), [(1, 1), (2, 1), (2, 2), (3, 2), (3, 3), (5, 2), (5, 3)])
def test_kafka_places_replicas_well_for_any_size(brokers: int, factor: int) -> None:
    """Apart, balanced and with spread failover, wherever it starts."""
    sizes = {"Brokers": brokers, "Partitions": 2 * brokers + 1, "ReplicationFactor": factor}
    laws = ["replicas_apart", "leaders_balanced", "copies_balanced", "first_round_is_simple"]
    laws += ["failover_spread"] if factor > 1 else []
    overrides = {name: str(value) for name, value in sizes.items()}
    assert lengths(search(instantiate(spec("placement"), None, overrides, laws).program, Options())) == {}
