"""All errors of a binding that does not fit its spec are reported before anything runs."""

from __future__ import annotations

from types import MappingProxyType

import pytest
from bank import SPEC, Bank, BankBinding, bank

from specchk.compile.instantiate import instantiate
from specchk.conform.contract.binding import (
    Accepted,
    Answer,
    Binding,
    BindingError,
    Impossible,
    action,
    never,
    project,
)
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.suites import run_product
from specchk.lang.frontend import check


def told(binding: type[Binding[Bank]]) -> str:
    with pytest.raises(BindingError) as caught:
        Replayer(binding(bank().program)).begin()
    return str(caught.value)


def test_a_binding_that_fits_is_taken():
    """No mistakes, and a first place in the spec's initial state."""
    place = Replayer(BankBinding(bank().program)).begin()
    assert place.state == ((2, 2), 0, 0)


def test_actions_that_a_model_leaves_out_may_be_bound():
    """One binding serves models that keep some of the spec's actions: the others are not used."""
    text = SPEC + "\nmodel days_only extends small:\n    actions sleep\n    expect holds\n"
    program = instantiate(check("bank.spec", text), "days_only").program
    assert [one.name for one in program.actions] == ["sleep"]
    result = run_product(Replayer(BankBinding(program)))
    assert (result.divergence, result.complete) == (None, True)


def test_all_mistakes_are_told_at_once():
    """Missing, misspelled and double names, and no projection: each with a hint."""

    class Wrong(Binding[Bank]):
        @action("transfr")
        def transfer(self, bank: Bank) -> Answer:
            return Accepted()

        @action("toss")
        def toss(self, bank: Bank) -> Answer:
            return Accepted()

        @action("toss")
        def toss_again(self, bank: Bank) -> Answer:
            return Accepted()

    text = told(Wrong)
    assert "`transfer` is not bound" in text
    assert "did you mean `transfer`?" in text
    assert "`toss` is bound 2 times" in text
    assert "`sleep` is not bound" in text
    assert "no projection" in text


def test_a_method_without_the_parameters_of_its_action_is_a_mistake():
    """It was reported as a failure of the implementation, at the first step (exit code 13)."""

    class Wrong(BankBinding):
        @action("transfer", ways=("now", "later"))
        def transfer(self, bank: Bank, source: str, target: str) -> Answer:
            return Accepted()

        @action("toss")
        def toss(self, *given: object) -> Answer:
            return Accepted()

    text = told(Wrong)
    assert text.count("does not fit") == 1
    assert "`transfer` does not fit `transfer`: too many positional arguments" in text
    assert "write `def transfer(self, system, " in text
    assert ", way)`" in text


def test_a_variable_that_the_projection_omits_is_a_mistake():
    """A harness that overlooks a variable does not run (mutant: the projection omits a variable)."""

    class Wrong(BankBinding):
        @project
        def state(self, bank: Bank) -> dict[str, object]:
            return {"balance": dict(bank.balance), "days": bank.days}

    assert "does not return `coin`" in told(Wrong)


def test_a_variable_that_is_unobserved_needs_a_reason_and_a_name():
    """Unobserved variables are listed with a reason; a name that is not a variable's is a mistake."""

    class Wrong(BankBinding):
        unobserved = MappingProxyType({"coin": " ", "cion": "small"})

    text = told(Wrong)
    assert "no reason is given why `coin`" in text
    assert "did you mean `coin`?" in text


def test_a_binding_that_observes_nothing_is_a_mistake():
    """Comparing nothing is no comparison."""

    class Wrong(BankBinding):
        unobserved = MappingProxyType(dict.fromkeys(("balance", "coin", "days"), "private"))

    assert "no variable is observed" in told(Wrong)


def test_an_action_that_is_never_taken_is_impossible_for_the_reason_given():
    """Its handler is bound like any other; where the spec allows the action, that is a divergence."""

    class Sleepless(BankBinding):
        sleep = never("sleep", "nobody sleeps")

    binding = Sleepless(bank().program)
    assert binding.sleep(Bank()) == Impossible("nobody sleeps")
    divergence = run_product(Replayer(binding)).divergence
    assert divergence is not None
    assert (divergence.kind, divergence.reason) == ("refused", "nobody sleeps")


def test_an_answer_of_another_kind_is_a_mistake():
    """A handler that returns nothing has not reported whether the step was accepted."""

    class Wrong(BankBinding):
        @action("sleep")
        def sleep(self, bank: Bank) -> Answer:
            return None  # type: ignore[return-value]

    replayer = Replayer(Wrong(bank().program))
    place = replayer.begin()
    enabled, _ = replayer.spec.options(place.state)
    instance, successors = next(one for one in enabled if one[0].label.action == "sleep")
    with pytest.raises(BindingError, match="returned None"):
        replayer.take(place, instance, successors)
