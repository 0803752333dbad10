"""Each kind of difference from the spec is found, by product and by walks, and is shown with its path."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import pytest
from bank import Bank, BankBinding, bank
from broken import BROKEN, LosesMoney, SharesOnRestore

from specchk.conform.contract.binding import (
    Accepted,
    Answer,
    At,
    BindingError,
    Impossible,
    Mistake,
    OutsideSpec,
    action,
    project,
    restore,
    snapshot,
    unchanged,
)
from specchk.conform.gate.tiers import Part
from specchk.conform.replay.replay import UNCHECKED, Replayer
from specchk.conform.replay.spec_side import SpecSide
from specchk.conform.replay.suites import SuiteResult, SuiteWalks, run_product, run_walks
from specchk.conform.report.suite import as_json, render
from specchk.ir.program import Program
from specchk.search.graph import state_graph


def product(binding: type[BankBinding]) -> SuiteResult:
    return run_product(Replayer(binding(bank().program)))


def test_a_faithful_implementation_conforms():
    """Every state and every edge of the spec's graph, and a refusal for every disabled instance."""
    result = product(BankBinding)
    graph = state_graph(bank().program, 1000)
    assert (result.divergence, result.complete, result.vacuous) == (None, True, "")
    assert result.states == len(graph.states)
    assert result.steps == len(graph.edges)


def test_beyond_a_horizon_nothing_is_tried():
    """`sleep` is always possible; that the spec stops counting does not forbid it."""
    result = product(BankBinding)
    assert result.tally.refused.get("sleep", 0) == 0
    assert result.tally.taken["sleep"] > 0


@pytest.mark.parametrize(("binding", "kind", "depth"), BROKEN, ids=lambda x: getattr(x, "__name__", None))
def test_a_broken_implementation_is_found_by_a_shortest_path(binding, kind, depth):
    """The product finds each break at the first level of the graph at which it shows."""
    result = product(binding)
    assert result.divergence is not None
    assert (result.divergence.kind, len(result.divergence.trace.steps)) == (kind, depth)
    assert not result.complete


@pytest.mark.parametrize(("binding", "kind", "depth"), BROKEN, ids=lambda x: getattr(x, "__name__", None))
def test_a_broken_implementation_is_found_by_walks(binding, kind, depth):
    """A few walks find each, too, by some path."""
    result = run_walks(Replayer(binding(bank().program)), SuiteWalks(1, 20, 20))
    assert result.divergence is not None
    assert result.divergence.kind == kind


class OverdrawnError(Exception):
    """An implementation's own exception, not one of Python's."""


@pytest.mark.parametrize("error", [OverdrawnError("planted"), SystemExit(0)], ids=["own", "exit"])
@pytest.mark.parametrize("method", ["start", "transfer", "state", "_keep", "_back"])
def test_whatever_an_implementation_raises_is_a_finding(method, error, monkeypatch):
    """Its classes derive from `Exception`, as every library's do; none, and no `sys.exit`, ends specchk."""

    def fails(*_: Any) -> Any:
        raise error

    marked = getattr(BankBinding, method)
    fails.__dict__.update(vars(marked))
    monkeypatch.setattr(BankBinding, method, fails)
    found = product(BankBinding).divergence
    assert found is not None
    assert f"{type(error).__name__}: {error}, in `fails` (test_replay.py:" in found.reason


def test_a_mistake_of_the_binding_is_not_the_implementations(monkeypatch):
    """Exceptions of specchk's own contract pass: they are reported as such."""
    mistaken = BindingError((Mistake("planted", "mend it"),))

    def fails(*_: Any) -> Any:
        raise mistaken

    fails.__dict__.update(vars(BankBinding.transfer))
    monkeypatch.setattr(BankBinding, "transfer", fails)
    with pytest.raises(BindingError, match="planted"):
        product(BankBinding)


def test_a_restore_that_shares_is_noticed():
    """Steps that change a snapshot are reported as some divergence, never as success."""
    assert product(SharesOnRestore).divergence is not None


def test_a_comparison_that_is_always_true_is_vacuous(monkeypatch):
    """Harness mutant: the comparer agrees with everything."""
    monkeypatch.setattr(Replayer, "same", lambda self, state, found: True)
    monkeypatch.setattr(Replayer, "_only_one", staticmethod(lambda matching, blame: None))
    result = product(BankBinding)
    assert "was not detected" in result.vacuous


def test_skipped_probes_are_vacuous(monkeypatch):
    """Harness mutant: no forbidden step is tried."""
    monkeypatch.setattr(Replayer, "probe", lambda self, place, instance: None)
    assert "was tried" in product(BankBinding).vacuous


def test_an_empty_suite_is_vacuous(monkeypatch):
    """Harness mutant: the spec appears to have no steps."""
    monkeypatch.setattr(SpecSide, "_options", lambda self, state: ([], []))
    assert product(BankBinding).vacuous == "no step was taken"
    assert (
        run_walks(Replayer(BankBinding(bank().program)), SuiteWalks(0, 3, 3)).vacuous == "no step was taken"
    )


def test_steps_that_are_not_compared_are_vacuous(monkeypatch):
    """Harness mutant: the state after a step is taken from the spec."""

    def from_the_spec(self, system, blame):
        wanted = blame().expected
        return wanted[0] if wanted else self._read(self._project(system))

    monkeypatch.setattr(Replayer, "_state", from_the_spec)
    monkeypatch.setattr(Replayer, "_only_one", staticmethod(lambda matching, blame: None))
    result = product(BankBinding)
    assert result.vacuous == "not every step was followed by a comparison"


def test_an_impossible_step_masks_no_mistake():
    """Each forbidden step has its own system: changes by an impossible step do not persist."""

    class Strict(BankBinding):
        @action("transfer")
        def transfer(self, bank: Bank, source: str, target: str) -> Answer:
            if source == target:
                bank.is_strict = True
                return Impossible("there is no such form")
            if bank.balance[source] == 0 and not hasattr(bank, "is_strict"):
                return Accepted()
            return super().transfer(bank, source, target)

    divergence = product(Strict).divergence
    assert divergence is not None
    assert divergence.kind == "accepted"


@pytest.mark.parametrize("other", [True, 1.0])
def test_an_equal_value_of_another_type_is_no_value_of_the_spec(other):
    """A refused step that turns a number into another kind of 1 has changed the state."""

    class Turns(BankBinding):
        @action("toss", ways=("heads", "tails"))
        def toss(self, bank: Bank, way: str) -> Answer:
            if bank.coin != "unseen" and bank.days == 1:
                bank.days = other
            return super().toss(bank, way)

    divergence = product(Turns).divergence
    assert divergence is not None
    assert (divergence.kind, str(divergence.step)) == ("outside", "toss()")


class Sees(BankBinding):
    """Compares banks after a refused step; `looked` has the answers."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.looked: list[bool] = []

    @unchanged
    def as_kept(self, kept: Any) -> Callable[[Bank], bool]:
        return lambda bank: self.look(bank, kept)

    def look(self, bank: Bank, before: Bank) -> bool:
        self.looked.append(bank == before)
        return self.looked[-1]


def test_a_binding_may_compare_a_system_with_what_was_kept():
    """Unchanged systems are not projected, except for some; the counts are those of projections."""
    binding = Sees(bank().program)
    result = run_product(Replayer(binding))
    assert result.divergence is None
    assert result.tally == product(BankBinding).tally
    assert binding.looked.count(True) >= result.probes * UNCHECKED // (UNCHECKED + 1)


def test_a_change_is_found_whatever_the_binding_says_of_it():
    """One that sees it, one that cannot compare it, and one that never does: some systems are projected."""

    class Fails(Sees):
        def look(self, bank: Bank, before: Bank) -> bool:
            raise OutsideSpec("no word for it")

    class Lies(Sees):
        def look(self, bank: Bank, before: Bank) -> bool:
            # Of a coin that was tossed, which no accepted step changes: that would show it.
            return bank == before or (bank.coin != before.coin and before.coin != "unseen")

    for base in (Sees, Fails, Lies):

        class Broken(base):  # type: ignore[valid-type, misc]
            @action("toss", ways=("heads", "tails"))
            def toss(self, bank: Bank, way: str) -> Answer:
                answer: Answer = super().toss(bank, way)
                bank.coin = way
                return answer

        divergence = product(Broken).divergence
        assert divergence is not None
        assert (divergence.kind, str(divergence.step)) == ("changed", "toss()")


def test_a_comparison_is_not_inherited_by_what_keeps_otherwise():
    """It is made for the snapshots of its own class; one of a derived class is for that class's."""

    class Packs(Sees):
        @snapshot
        def keep(self, bank: Bank) -> Any:
            return dict(bank.balance), bank.coin, bank.days

        @restore
        def back(self, kept: Any) -> Bank:
            return Bank(dict(kept[0]), *kept[1:])

    class PacksAndSees(Packs):
        @unchanged
        def as_kept(self, kept: Any) -> Callable[[Bank], bool]:
            return lambda bank: self.look(bank, self.back(kept))

    for cls, looks in ((Sees, True), (Packs, False), (PacksAndSees, True)):
        binding = cls(bank().program)
        assert run_product(Replayer(binding)).divergence is None
        assert bool(binding.looked) == looks


def test_a_binding_that_sees_no_change_is_a_mistake():
    """Every accepted step shows whether it does; a change of a snapshot is a divergence first."""

    class Blind(Sees):
        def look(self, bank: Bank, before: Bank) -> bool:
            return True

    class BlindAndShared(SharesOnRestore, Blind):
        @unchanged
        def as_kept(self, kept: Bank) -> Callable[[Bank], bool]:
            return lambda _: True

    with pytest.raises(BindingError, match="its @unchanged finds what `transfer"):
        product(Blind)
    divergence = product(BlindAndShared).divergence
    assert divergence is not None
    assert divergence.kind == "restored"


def test_the_same_seed_walks_the_same():
    """Walks are a function of their seed."""
    first, again = (run_walks(Replayer(BankBinding(bank().program)), SuiteWalks(7, 5, 9)) for _ in range(2))
    assert (first.tally, first.states) == (again.tally, again.states)


def test_a_divergence_is_told_so_that_a_stranger_understands():
    """The verdict, the path in lanes, the step, and the differing places, spec and implementation."""
    instance = bank()
    binding = LosesMoney(instance.program)
    result = run_product(Replayer(binding))
    text = render(Part(At(), instance, binding), result)
    assert text.startswith("diverges: the implementation took the step to a state")
    assert "  1  transfer(a1, a2)" in text
    assert "step 2: transfer(a1, a2)" in text
    assert "balance[a2]: the spec has 4, the implementation 3" in text
    found = as_json(Part(At(), instance, binding), result, 13)["divergence"]
    assert isinstance(found, dict)
    assert found["differences"] == [{"place": "balance[a2]", "spec": "4", "implementation": "3"}]
    assert found["path"] == ["transfer(a1, a2)"]


def test_what_was_not_looked_at_is_in_every_report():
    """Unobserved variables with their reasons, choices never made, actions never taken."""

    class Lucky(BankBinding):
        unobserved = MappingProxyType({"days": "nobody counts"})

        @action("toss", ways=("heads",))
        def toss(self, bank: Bank, way: str) -> Answer:
            return super().toss(bank, way)

        @project
        def state(self, bank: Bank) -> dict[str, Any]:
            return {"balance": dict(bank.balance), "coin": bank.coin}

    instance = bank()
    binding = Lucky(instance.program)
    text = render(Part(At(), instance, binding), run_product(Replayer(binding)))
    assert "unobserved: days (nobody counts)" in text
    assert "successors that the implementation never chose: toss" in text
