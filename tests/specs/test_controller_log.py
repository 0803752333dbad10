"""spec/controller_log.spec: a failover of the controller loses no committed record; each rule fails alone.

Counts and lengths are also those of a plain search, written from the rules (`controller_searches`).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from specchk.compile.instantiate import instantiate
from specchk.explore.scenario import run_scenario
from specchk.lang.frontend import check, choose_model
from specchk.native import engine
from specchk.search.expect import unmet, wants_counts
from specchk.search.reference import search
from specchk.search.verdict import Outcome, Violated
from specs.controller_searches import (
    Rules,
    State,
    count,
    forgets_what_is_committed,
    forgets_what_is_known,
    lacks_what_is_acked,
    steps_to,
    two_lead,
    waits_for_too_few,
)
from specs.spec_runs import SPECS, lengths, spec

SPEC = SPECS / "controller_log.spec"
slow = pytest.mark.slow

FLAWS = [
    ("answered_early", "known_is_kept", 4),
    ("answered_early_waits_for_one", "members_are_waited_for", 5),
    ("answered_early_loses_data", "acked_is_kept", 10),
    ("applied_early", "known_is_kept", 3),
    ("applied_early_elects_two", "one_leader_per_epoch", 6),
    ("applied_early_loses_data", "acked_is_kept", 9),
    ("no_own_record", "committed_is_kept", 6),
    pytest.param("no_own_record_loses_data", "acked_is_kept", 12, marks=slow),
    ("old_refuses", "members_are_waited_for", 8),
    pytest.param("old_refusal_loses_data", "acked_is_kept", 13, marks=slow),
    ("granted_unheard", "members_are_waited_for", 8),
    pytest.param("granted_unheard_loses_data", "acked_is_kept", 13, marks=slow),
]
LARGER = ("two_terms", "three_terms", "three_brokers")
HOLD = ["short_log", "one_start", *(pytest.param(name, marks=slow) for name in LARGER)]
EARLY = Rules(max_log=4, answered_early=True)
FIGURE_8 = Rules(max_log=4, max_term=4, own_record=False)
FAILS_TWICE = [
    (EARLY, forgets_what_is_known, 4),
    (EARLY, waits_for_too_few, 5),
    pytest.param(EARLY, lacks_what_is_acked, 10, marks=slow),
    (Rules(applied_early=True), forgets_what_is_known, 3),
    pytest.param(Rules(brokers=3, applied_early=True), two_lead, 6, marks=slow),
    pytest.param(Rules(applied_early=True), lacks_what_is_acked, 9, marks=slow),
    (FIGURE_8, forgets_what_is_committed, 6),
    pytest.param(Rules(max_log=4, newest_only=False), waits_for_too_few, 8, marks=slow),
    pytest.param(Rules(max_log=4, learns_first=False), waits_for_too_few, 8, marks=slow),
]
RULES = {"answered_when", "applied_when", "own_record", "newest_only", "learns_first"}
MUTANTS = [  # what a rule states, what a flawed one states, the law that fails first
    ("c != voter and has_all_of(c, voter)", "c != voter", "committed_is_kept"),
    ("known[b].isr union isr, none", "known[b].isr, none", "members_are_waited_for"),
    ("require known[b] == image(c)\n", "require active[c]\n", "acked_is_kept"),
    ("term[d] <= term[c] and (log", "(log", "committed_is_kept"),
    ("b in has implies isr - known[b].isr subset has", "isr != {}", "acked_is_kept"),
]  # fmt: skip


def found(model: str, given: dict[str, str] | None = None, *, symmetry: bool = True) -> Outcome:
    program = instantiate(spec("controller_log"), model, given or {}).program
    return engine.search(program, engine.NativeOptions(symmetry=symmetry))


@pytest.mark.parametrize(("model", "law", "steps"), FLAWS)
def test_a_rule_that_is_missing_fails_in_its_shortest_run(model: str, law: str, steps: int) -> None:
    """One rule turned back violates the property named, first in the length measured."""
    outcome = found(model)
    assert lengths(outcome) == {law: steps}
    assert unmet(outcome, choose_model(spec("controller_log"), model, {}).expects) == []


@pytest.mark.parametrize("model", HOLD)
def test_the_rules_hold(model: str) -> None:
    """A failover may lose a tail of the log, but nothing that a broker follows; all witnesses are reached."""
    expects = choose_model(spec("controller_log"), model, {}).expects
    outcome = found(model, symmetry=not wants_counts(expects))
    assert unmet(outcome, expects) == []
    assert len(outcome.witnesses) == 4


def test_a_model_has_the_states_of_a_plain_search() -> None:
    """Two searches written independently reach as many states in as many levels."""
    statistics = found("short_log", {"MaxLog": "2"}, symmetry=False).statistics
    assert (statistics.distinct, statistics.depth) == count(Rules(max_log=2)) == (5550, 12)


@slow
def test_without_an_own_record_a_fetch_counts_before_it_is_answered() -> None:
    """The same states in both searches, where what counts does not depend on a record of the term."""
    given = {"MaxLog": "2", "MaxTerm": "3"}
    statistics = found("no_own_record", given, symmetry=False).statistics
    assert (statistics.distinct, statistics.depth) == count(Rules(max_log=2, max_term=3, own_record=False))


@slow
def test_a_longer_log_has_the_states_of_a_plain_search() -> None:
    """The same with a record more, which is what the model expects."""
    assert count(Rules()) == (105054, 16)


@pytest.mark.parametrize(("rules", "fails", "steps"), FAILS_TWICE)
def test_a_plain_search_finds_the_same_lengths(
    rules: Rules, fails: Callable[[State], bool], steps: int
) -> None:
    """Each rule alone, by a search that shares nothing with specchk."""
    assert steps_to(rules, fails) == steps


@pytest.mark.parametrize(("rule", "flaw", "law"), MUTANTS)
def test_a_flawed_rule_is_detected(rule: str, flaw: str, law: str) -> None:
    """The properties have power: a rule changed in one place violates one of them."""
    text = SPEC.read_text()
    assert text.count(rule) == 1
    program = instantiate(check(str(SPEC), text.replace(rule, flaw)), "two_terms").program
    verdict = engine.search(program, engine.NativeOptions()).verdict
    assert isinstance(verdict, Violated)
    assert law in {violation.name for violation in verdict.violations}


def test_every_model_is_checked_here() -> None:
    """A model that is added is a flaw with its length, or it holds."""
    rows = [case.values if hasattr(case, "values") else case for case in FLAWS]
    held = [name.values[0] if hasattr(name, "values") else name for name in HOLD]
    assert {*(str(row[0]) for row in rows), *held} == set(spec("controller_log").spec.models)
    assert not any(set(choose_model(spec("controller_log"), model, {}).bindings) & RULES for model in held)


def test_the_engine_that_gives_meaning_agrees() -> None:
    """The reference engine has the same states and witnesses in a model that is small enough for it."""
    program = instantiate(spec("controller_log"), "short_log", {"MaxLog": "2"}).program
    statistics = search(program).statistics
    assert (statistics.distinct, statistics.depth) == _counts(engine.search(program, engine.NativeOptions()))


def _counts(outcome: Outcome) -> tuple[int, int]:
    return outcome.statistics.distinct, outcome.statistics.depth


def test_every_worked_example_runs_as_written() -> None:
    """Each scenario takes its steps, is refused where stated, and its assertions hold."""
    for scenario in spec("controller_log").spec.scenarios.values():
        result = run_scenario(instantiate(spec("controller_log"), scenario.model.full), scenario)
        assert result.failure is None, f"{scenario.name}: {result.failure}"
