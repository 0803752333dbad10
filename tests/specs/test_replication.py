"""spec/replication.spec compared with the figures of a second implementation.

Lengths are transitions of the shortest counterexample; counts are without symmetry and in TLC's convention
(the initial state counts as a transition, depth counts levels).  The second implementation is a breadth-first
search over hand-packed states, written from the reference before the specification was; the two agree on all
lengths and on `COUNTED_TWICE`.  The ghost `waiting` came later: it tells more states apart where brokers miss
epochs (`three_epochs`); without the ghosts the states are as many as before.  So did three rules that the
second implementation does not have: HW waits for who is caught up, and a leader's own test of who may join.
Without them the states are those that were counted twice.

Not here: whether the rules are Kafka's (the specification names the source of each), and the models that need
a compiled engine: of replication_large.spec only the front end's verdict and the walk-through are checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from specchk.compile.instantiate import instantiate
from specchk.explore.scenario import run_scenario
from specchk.ir.types import Int, Map, Option, Record, Set, Type, Union
from specchk.lang.frontend import CheckedSpec, check, choose_model
from specchk.search.engine import Options
from specchk.search.expect import unmet
from specchk.search.reference import search
from specchk.search.verdict import Holds, HoldsWithin, Outcome, Violated

SPECS = Path(__file__).parents[2] / "spec"
BUDGETS = {"MaxOffset", "MaxEpoch", "MaxCrashes", "MaxPowerLosses", "MaxFences", "MaxShrinks"}
SIZES = {"Broker", "first_leader", *BUDGETS}
slow = pytest.mark.slow

LEDGER = [
    ("b1_truncate_to_hw", "candidates_complete", 9),
    ("b2_truncate_to_hw_diverges", "same_epoch_logs_match", 10),
    ("b3_fast_failover", "same_epoch_logs_match", 8),
    ("b4_undefined_epoch", "candidates_complete", 11),
    pytest.param("b5_joins_before_epoch_start", "candidates_complete", 15, marks=slow),
    pytest.param("b6_missed_epoch", "same_epoch_logs_match", 12, marks=slow),
    pytest.param("b7_stale_leader_answers", "same_epoch_logs_match", 13, marks=slow),
    ("b8_foreign_acknowledgement", "candidates_complete", 11),
    ("b9_diverging_fetch_counts", "candidates_complete", 7),
    pytest.param("b11_last_replica_standing", "candidates_complete", 10, marks=slow),
    ("b11_committed_by_one", "candidates_complete", 6),
    ("b12_hw_before_truncation", "consistent_follower_read", 11),
    ("b14_committed_isr_only", "candidates_complete", 7),
    ("b14_optimistic_shrink", "candidates_complete", 2),
    ("b16_unclean_election", "leader_complete", 7),
    ("b17_page_cache", "acked_on_enough", 5),
    ("b17_unnoticed_restart", "leader_complete", 8),
    ("b18_fetch_of_a_former_life", "candidates_complete", 13),
    ("b18_leader_checks_alone", "candidates_complete", 15),
    ("b19_no_compare_and_set", "candidates_complete", 10),
    ("b20_latest_falls", "latest_never_falls", 8),
    ("b22_acks_one", "acked_durable", 3),
    ("b24_fenced_member", "candidates_complete", 11),
    ("b24_leader_checks_alone", "candidates_complete", 13),
    pytest.param("b29_deposed_leader_is_read", "log_matching", 11, marks=slow),
    ("b30_joins_below_hw", "candidates_complete", 7),
    ("b31_never_truncates", "same_epoch_logs_match", 5),
    ("s29_loss_before_kip101", "leader_complete", 10),
    pytest.param("s31_divergence_before_kip101", "same_epoch_logs_match", 12, marks=slow),
    pytest.param("remote_leo_kept", "candidates_complete", 24, marks=slow),
]

TODAY = [  # model, states, transitions, depth
    pytest.param("two_brokers", 87106, 320544, 39, marks=slow),
    pytest.param("three_epochs", 9096, 30521, 31, marks=slow),
    pytest.param("slow_follower", 15187, 56578, 31, marks=slow),
    pytest.param("one_record_at_a_time", 13173, 48997, 31, marks=slow),
    pytest.param("false_suspicion", 21433, 79838, 31, marks=slow),
    pytest.param("two_must_have_it", 15358, 55590, 30, marks=slow),
    pytest.param("three_brokers", 12874, 57706, 31, marks=slow),
    pytest.param("page_cache_lost", 40509, 155320, 29, marks=slow),
]
LATER_RULES = dict.fromkeys(("waits_for_caught_up", "leader_checks_fenced", "leader_checks_epoch"), "false")
COUNTED_TWICE = [  # the same models without the later rules
    pytest.param("two_brokers", 74260, 279379, 39, marks=slow),
    pytest.param("slow_follower", 11528, 42184, 31, marks=slow),
    pytest.param("one_record_at_a_time", 10092, 36942, 31, marks=slow),
    pytest.param("false_suspicion", 18558, 71286, 31, marks=slow),
    pytest.param("two_must_have_it", 12299, 43747, 30, marks=slow),
    pytest.param("page_cache_lost", 19174, 69786, 32, marks=slow),
]


MUTANTS = [  # what a rule says, what a flawed one says, a model of today, the law that notices first
    ("Records r: min(r.hw, leo(kept))", "Records r: r.hw", "one_record_at_a_time", "well_formed"),
    ("min((if f == l then end else get(known[f])) for", "max((if f == l then end else get(known[f])) for",
     "slow_follower", "candidates_complete"),
    ("let told = { remote[l] with [f]: some(m.offset) }",
     "let told = { remote[l] with [f]: some(leo(log[l])) }", "slow_follower", "remote_leo_sound"),
    ("if x < e and start(of, x) < leo(of) }", "if x < e }", "three_epochs", "well_formed"),
    ("end: of.ends[e] })", "end: of.ends[e] + 1 })", "three_epochs", "same_epoch_logs_match"),
    ("a.epoch < get(m.last) or a.end < m.offset", "a.epoch < get(m.last)", "three_epochs",
     "candidates_complete"),
    ("a.epoch < get(m.last) or a.end < m.offset", "a.end < m.offset", "three_epochs", "candidates_complete"),
    ("version: meta[current].version + 1 }", "version: meta[current].version }", "three_epochs",
     "metadata_is_a_log"),
    ("require b in meta[current].isr and b not in fenced", "require b not in fenced", "slow_follower",
     "leader_in_isr"),
    ("isr: rest, version: now.version + 1 }", "isr: { b }, version: now.version + 1 }", "false_suspicion",
     "leader_in_isr"),
    ("acked_by(written, waiting[l], hw[l], raised, maximal_isr(l), needed_isr(l))", "written.ends",
     "three_epochs", "acked_durable"),
    ("e >= epoch[b] and meta[e].leader == some(b)", "meta[e].leader == some(b)", "three_epochs",
     "epoch_cache_sound"),
]  # fmt: skip


@cache
def spec(name: str) -> CheckedSpec:
    return check(str(SPECS / f"{name}.spec"))


def outcome_of(model: str, overrides: Mapping[str, str] | None = None, *, symmetry: bool = True) -> Outcome:
    return search(
        instantiate(spec("replication"), model, overrides or {}).program, Options(symmetry=symmetry)
    )


@pytest.mark.parametrize(("model", "law", "steps"), LEDGER)
def test_a_rule_of_the_past_fails_in_its_shortest_run(model: str, law: str, steps: int) -> None:
    """Each ledger model violates the property named, first in the length measured, and nothing else."""
    outcome = outcome_of(model)
    assert isinstance(outcome.verdict, Violated)
    found = [(v.name, len(v.trace.steps)) for v in outcome.verdict.violations if v.trace is not None]
    assert found == [(law, steps)]
    assert unmet(outcome, choose_model(spec("replication"), model, {}).expects) == []


@pytest.mark.parametrize(("model", "states", "transitions", "depth"), TODAY)
def test_todays_rules_hold(model: str, states: int, transitions: int, depth: int) -> None:
    """Today's rules keep every property, reach every witness, and have the expected state space."""
    outcome = outcome_of(model, symmetry=False)
    assert isinstance(outcome.verdict, Holds | HoldsWithin)
    statistics = outcome.statistics
    assert (statistics.distinct, statistics.generated, statistics.depth) == (states, transitions, depth)


@pytest.mark.parametrize(("model", "states", "transitions", "depth"), COUNTED_TWICE)
def test_without_the_later_rules_the_states_are_those_counted_twice(
    model: str, states: int, transitions: int, depth: int
) -> None:
    """The replicas that HW waits for and a leader proposes were added to the spec; nothing else changed."""
    statistics = outcome_of(model, LATER_RULES, symmetry=False).statistics
    assert (statistics.distinct, statistics.generated, statistics.depth) == (states, transitions, depth)


@pytest.mark.parametrize(("rule", "flaw", "model", "law"), MUTANTS)
def test_a_flawed_rule_is_noticed(rule: str, flaw: str, model: str, law: str) -> None:
    """The properties have power: a rule changed in one place violates one of them in a small model."""
    path = SPECS / "replication.spec"
    text = path.read_text()
    assert rule in text
    overrides = {"MaxEpoch": "2"} if law == "leader_in_isr" else {}
    checked = check(str(path), text.replace(rule, flaw))
    verdict = search(instantiate(checked, model, overrides).program).verdict
    assert isinstance(verdict, Violated)
    assert law in {violation.name for violation in verdict.violations}


def test_the_smallest_default_holds() -> None:
    """The default model holds for one record too, with all its witnesses: fast enough for every run."""
    program = instantiate(spec("replication"), "two_brokers", {"MaxOffset": "1"}).program
    outcome = search(program)
    assert isinstance(outcome.verdict, HoldsWithin)
    assert (outcome.statistics.distinct, outcome.statistics.depth) == (12857, 31)


@pytest.mark.parametrize("file", ["replication", "replication_large"])
def test_every_worked_example_runs_as_written(file: str) -> None:
    """Each scenario takes its steps, is refused where stated, and its assertions hold."""
    scenarios = spec(file).spec.scenarios
    assert scenarios
    for scenario in scenarios.values():
        result = run_scenario(instantiate(spec(file), scenario.model.full), scenario)
        assert result.failure is None, f"{scenario.name}: {result.failure}"


def test_the_default_model_is_first_and_changes_no_rule() -> None:
    """`specchk run spec/replication.spec` checks two brokers under the rules that are the defaults."""
    model = choose_model(spec("replication"), None, {})
    assert model.name == "two_brokers"
    assert set(model.bindings) <= SIZES


def test_models_of_today_change_no_rule() -> None:
    """Models of today's rules are checked under the defaults; only Kafka's own settings may differ."""
    names = [("replication", parameter.values[0]) for parameter in TODAY]
    names += [("replication_large", name) for name in spec("replication_large").spec.models]
    for file, name in names:
        model = choose_model(spec(file), str(name), {})
        if any(expect.kind == "holds" for expect in model.expects):
            later = LATER_RULES if str(name).endswith("_counted") else {}
            assert set(model.bindings) <= SIZES | {"min_isr", "one_record", "elr", "consumers", *later}, name


def test_offsets_are_never_keys() -> None:
    """No map or set in the state is over offsets, so an engine may treat offsets as symbols."""
    program = instantiate(spec("replication"), "two_brokers").program
    for variable in program.variables:
        assert list(offset_keys(variable.type)) == [], variable.name


def offset_keys(kind: Type) -> list[Type]:
    """The map keys and set elements inside a type that are offsets."""
    match kind:
        case Map():
            here = [kind.key] if is_offset(kind.key) else []
            return here + offset_keys(kind.key) + offset_keys(kind.value)
        case Set():
            return ([kind.item] if is_offset(kind.item) else []) + offset_keys(kind.item)
        case Option():
            return offset_keys(kind.item)
        case Record():
            return [key for _, part in kind.fields for key in offset_keys(part)]
        case Union():
            return [key for _, part in kind.variants for key in offset_keys(part)]
        case _:
            return []


def is_offset(kind: Type) -> bool:
    """Whether a type is `nat upto`."""
    return isinstance(kind, Int) and kind.horizon
