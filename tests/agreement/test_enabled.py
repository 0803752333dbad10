"""`enabled(act)` agrees with the stepper: the same for all engines, wherever it is used."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from linear_specs import linear_spec
from spec_texts import small_spec

from agreement.both import check_agreement, program_of
from agreement.enabled_specs import actions_of, with_enabled
from agreement.every_engine import compare
from agreement.open_specs import open_spec
from agreement.random_specs import random_spec, spec_with_maps
from agreement.test_helpers import with_helpers
from specchk.compile.instantiate import Instance, instantiate
from specchk.ir.program import Program
from specchk.lang.frontend import check
from specchk.lang.text.diagnostics import SpecError
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.step import Stepper
from specchk.meaning.undefined import Faulty, Undefined
from specchk.meaning.values import State
from specchk.search import reference
from specchk.search.budget import Budget
from specchk.search.engine import Options, Search, explore
from specchk.search.verdict import Holds, HoldsWithin, Outcome, Violated

SHARED = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large)
SEEDS = st.integers(0, 10**9)
MAKE = (random_spec, spec_with_maps, small_spec, open_spec, linear_spec)


def instance_of(text: str) -> Instance | None:
    """The instance of a spec's text, or None if it is rejected."""
    try:
        return instantiate(check("enabled.spec", text))
    except SpecError:
        return None


def states_of(program: Program) -> list[State]:
    """The states of a search that is short."""
    options = Options(Budget(max_states=60), symmetry=False, keep_going=True)
    search = reference.ReferenceEngine(Search(program, options))
    explore(search)
    return list(search.parents)[:60]


def is_enabled(instance: Instance, text: str, state: State) -> bool | None:
    """The value of an expression in a state; None if it is undefined there."""
    expr, count = instance.expression(text)
    try:
        return bool(Evaluator(len(state)).compile(expr)([*state, *state, *([0] * (count + 1))]))
    except Undefined:
        return None


def check_meaning(seed: int) -> int:
    """Compare `enabled` with the stepper in the states of a random spec; return the number of answers."""
    random = Random(seed)
    text = random.choice(MAKE)(random)
    instance = instance_of(with_helpers(text) if random.random() < 0.3 else text)
    if instance is None:
        return 0
    stepper, answers = Stepper(instance.program), 0
    for state in states_of(instance.program):
        for index, action in enumerate(instance.program.actions):
            stepper.horizon_cuts, faulty = 0, False
            try:
                taken = any(index == one for one, _, _ in stepper.successors(state))
            except Faulty:
                taken, faulty = any(index == one for one, _, _ in stepper.emitted), True
            found = is_enabled(instance, f"enabled({action.name})", state)
            if found is None:
                assert faulty  # a condition that is undefined is undefined in the step
            elif taken:
                assert found
            elif not faulty and not stepper.horizon_cuts:
                assert not found
            answers += found is not None
    return answers


@settings(max_examples=25, suppress_health_check=SHARED)
@given(seed=SEEDS)
def test_an_action_is_enabled_where_the_stepper_takes_it(seed: int) -> None:
    """In each state of a random spec, except for faults and horizons."""
    check_meaning(seed)


@pytest.mark.slow
@settings(max_examples=400, suppress_health_check=SHARED)
@given(seed=SEEDS)
def test_an_action_is_enabled_where_the_stepper_takes_it_in_many_specs(seed: int) -> None:
    """The same for many specs."""
    check_meaning(seed)


def test_most_comparisons_have_an_answer() -> None:
    """The test above does not pass because nothing is compared."""
    assert sum(check_meaning(seed) > 3 for seed in range(20)) > 8


def random_enabled(seed: int) -> str:
    """The text of a random spec that uses `enabled`."""
    random = Random(seed)
    return with_enabled(random, random.choice(MAKE)(random))


@settings(max_examples=12, suppress_health_check=SHARED)
@given(seed=SEEDS, symmetry=st.booleans(), keep_going=st.booleans())
def test_engines_agree_on_specs_that_use_enabled(
    seed: int, symmetry: bool, keep_going: bool, tmp_path: Path
) -> None:
    """In guards, invariants, witnesses, step invariants and `deadlock ok`."""
    check_agreement(random_enabled(seed), tmp_path, symmetry=symmetry, keep_going=keep_going)


@pytest.mark.slow
@settings(max_examples=150, suppress_health_check=SHARED)
@given(seed=SEEDS, symmetry=st.booleans(), keep_going=st.booleans())
def test_engines_agree_on_many_specs_that_use_enabled(
    seed: int, symmetry: bool, keep_going: bool, tmp_path: Path
) -> None:
    """The same for many specs."""
    check_agreement(random_enabled(seed), tmp_path, symmetry=symmetry, keep_going=keep_going)


@settings(max_examples=4, suppress_health_check=SHARED)
@given(seed=SEEDS, symmetry=st.booleans(), keep_going=st.booleans())
def test_open_engines_agree_on_specs_that_use_enabled(
    seed: int, symmetry: bool, keep_going: bool, tmp_path: Path
) -> None:
    """Zones, hulls, --depth and --prove, which may refuse."""
    random = Random(seed)
    text = with_enabled(random, random.choice((open_spec, linear_spec))(random))
    found = compare(text, tmp_path, symmetry=symmetry, keep_going=keep_going)
    assert found is None or not found.wrong


def test_most_specs_with_enabled_are_accepted(tmp_path: Path) -> None:
    """The inserted uses are well typed if the specs are."""
    made = 0
    for seed in range(30):
        random = Random(seed)
        text = with_enabled(random, random.choice(MAKE)(random))
        assert "enabled(" in text
        assert actions_of(text)
        made += program_of(text, tmp_path) is not None
    assert made > 20


LOCK = """spec lock
sort Client
type Ticket = nat upto 2
var holder : Client? = none
var next : Ticket = 0
var got : seq[0..1] upto 2 = []
helper action free():
    require holder == none
action take(c: Client, n: 0..1):
    free()
    any m in 0..n:
        require m == 1
        holder' = some(c)
action count(n: Ticket):
    require n == next
    next' = n + 1
action give():
    let c = holder else skip
    either:
        require next == 0
        holder' = none
    or:
        when next == 1:
            require false
        got' in {[card({c})]}
action read():
    require head(got) == 1
    got' = []
{lines}
model m:
    Client = 2
    {model}
"""


def outcome_of(*lines: str, model: str = "") -> Outcome:
    text = LOCK.replace("{lines}", "\n".join(lines)).replace("{model}", model or "expect holds")
    return reference.search(instantiate(check("lock.spec", text)).program, Options(keep_going=False))


@pytest.mark.parametrize(
    "claim",
    [
        "enabled(take) iff holder == none",
        "forall c in Client: enabled(take(c, _)) iff holder == none",
        "not enabled(take(_, 0)) and (enabled(take(_, 1)) iff holder == none)",
        "not enabled(take(_, 2)) and not enabled(take(_, next - 1 - 1))",
        "enabled(count)",  # also where a horizon cuts the step off
        "enabled(count(next)) and not enabled(count(next + 1))",
        "enabled(give) iff holder != none and next != 1",
        "(let holder2 = holder: enabled(give) iff holder2 != none and next != 1)",
    ],
)
def test_what_enabled_means(claim: str) -> None:
    """Parameters, choices, options, branches, helper actions, a horizon; and arguments out of range."""
    found = outcome_of(f"constraint c: {claim}", f"invariant i: {claim}", model="actions take, count, give")
    assert isinstance(found.verdict, HoldsWithin)
    assert found.statistics.distinct > 6


def test_what_the_step_assigns_is_not_evaluated() -> None:
    """Its faults are the step's; those of the conditions are those of `enabled`."""
    found = outcome_of("deadlock ok", "action bad():\n    next' = 1 // 0", "reachable r: enabled(bad)",
                       model="actions take, bad")  # fmt: skip
    assert isinstance(found.verdict, Violated)
    assert [name for name, _ in found.witnesses] == ["r"]
    found = outcome_of("invariant i: enabled(read) or true", model="actions take, read")
    assert isinstance(found.verdict, Violated)
    assert (found.verdict.violations[0].kind, found.verdict.violations[0].name) == ("undefined", "i")


def test_an_action_that_the_model_omits_is_never_enabled() -> None:
    """No step of the model is one of the action; its conditions are not evaluated."""
    found = outcome_of("invariant i: not enabled(read)", "deadlock ok", model="actions take")
    assert isinstance(found.verdict, Holds | HoldsWithin)


def test_a_priority_is_a_guard() -> None:
    """A low action waits while a high one is enabled."""
    low = "action low():\n    require not enabled(take) and not enabled(give)\n    next' = 2"
    found = outcome_of(low, "invariant i: next != 2", model="actions take, low")
    assert isinstance(found.verdict, Violated)
    found = outcome_of(low, "invariant i: next != 2", "deadlock ok", model="actions take, give, low")
    assert isinstance(found.verdict, HoldsWithin | Holds)


def test_enabled_after_a_step() -> None:
    """`enabled(act)'` is of the state after the step."""
    claim = "enabled(take) != enabled(take)' or holder' == holder"
    model = "actions take, count, give"
    found = outcome_of(f"step invariant s: {claim}", "deadlock ok", model=model)
    assert isinstance(found.verdict, HoldsWithin)
    found = outcome_of("step invariant s: not enabled(give) or enabled(give)'", "deadlock ok", model=model)
    assert isinstance(found.verdict, Violated)


def test_a_value_that_a_step_assigns_may_ask_whether_it_is_enabled() -> None:
    """The value does not decide whether the step is enabled: only a condition that uses it is a circle."""
    lines = "action note():\n    require next == 0\n    {} enabled(note) and enabled(after) {}"
    after = "action after():\n    require enabled(note)\n    next' = 2"
    value = lines.format("next' = if", "then 1 else 0")
    found = outcome_of(
        value, after, "invariant i: next != 0 iff not enabled(after)", model="actions note, after"
    )
    assert [one.kind for one in getattr(found.verdict, "violations", ())] == ["deadlock"]
    assert found.statistics.distinct == 3
    with pytest.raises(SpecError) as refused:
        outcome_of(lines.format("require", ""), after)
    assert {one.code for one in refused.value.diagnostics} == {"S206"}
