"""spec/kafka/kraft.spec, the port of Vanlightly's modules, against TLC's figures for these modules.

TLC ran the published modules on one worker, with all that may matter later in its VIEW: beside the published
one the counters (`aux_vars`), and of the handled messages the requests for an ISR, the only ones that a guard
reads.  The published VIEW hides them; what it counts is counted here by leaving those variables' bits out of
all states, and by the models that ignore the variables.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest

from specchk.compile.instantiate import instantiate
from specchk.ir.program import Program
from specchk.native.engine import NativeEngine, NativeOptions, search
from specchk.native.machine.layout import mask
from specchk.search.engine import Engine, Options
from specchk.search.expect import unmet, wants_counts
from specchk.search.reference import search as reference_search
from specchk.search.verdict import Outcome
from specs.spec_runs import models_of, spec

slow = pytest.mark.slow
HIDDEN = {
    "last_life", "last_broker_epoch", "clean_stops", "unclean_stops", "fences", "shrinks", "floor_offset",
    "alter_handled",
}  # fmt: skip
LIMITS = ("CleanShutdownLimit", "UncleanShutdownLimit", "FenceBrokerLimit", "LeaderShrinkIsrLimit")
SIZES = [  # with ELR, values, limits: distinct states and depth of TLC with two brokers
    (True, 1, (0, 0, 0, 0), 14, 8),
    (True, 1, (0, 0, 1, 0), 1_385, 22),
    (False, 1, (0, 0, 1, 0), 1_439, 24),
    pytest.param(True, 2, (0, 0, 1, 0), 9_842, 29, marks=slow),
    pytest.param(False, 2, (0, 0, 1, 0), 11_004, 31, marks=slow),
    (True, 1, (0, 0, 0, 1), 253, 16),
    (False, 1, (0, 0, 0, 1), 271, 16),
    pytest.param(True, 1, (1, 0, 0, 0), 10_593, 29, marks=slow),
    (False, 1, (1, 0, 0, 0), 970, 24),
    pytest.param(True, 1, (0, 1, 0, 0), 9_262, 31, marks=slow),
    (False, 1, (0, 1, 0, 0), 977, 25),
]
# TLC's with three brokers, one of them outside of the ISR at first
OUTSIDE = [(True, 1_469, 25), (False, 1_469, 25)]


@pytest.mark.parametrize(("with_elr", "values", "limits", "distinct", "depth"), SIZES)
def test_counts_are_tlcs(
    with_elr: bool, values: int, limits: tuple[int, ...], distinct: int, depth: int
) -> None:
    """At any size both modules have the states and the levels that TLC finds."""
    sizes = {"Value": str(values), "elr": str(with_elr).lower()}
    assert size_of(sizes | dict(zip(LIMITS, map(str, limits), strict=True))) == (distinct, depth)


@pytest.mark.parametrize(("with_elr", "distinct", "depth"), OUTSIDE)
def test_counts_with_a_broker_outside_of_the_isr_are_tlcs(with_elr: bool, distinct: int, depth: int) -> None:
    """It starts fenced, with the metadata of an earlier partition epoch."""
    sizes = dict.fromkeys(LIMITS, "0") | {"Broker": "3", "OutOfIsr": "{b3}", "elr": str(with_elr).lower()}
    assert size_of(sizes) == (distinct, depth)


def size_of(sizes: dict[str, str]) -> tuple[int, int]:
    program = instantiate(spec("kafka/kraft"), "published", sizes).program
    statistics = reference_search(program, Options(symmetry=False, keep_going=True)).statistics
    return statistics.distinct, statistics.depth


@slow
@pytest.mark.parametrize(("name", "model"), models_of(["kafka/kraft"], {}))
def test_every_model_is_as_it_expects(name: str, model: str) -> None:
    """Verdicts, TLC's counts, and the lengths of the ledger's counterexamples (TLC's as well)."""
    instance = instantiate(spec(name), model)
    expects = instance.model.expects
    assert unmet(search(instance.program, NativeOptions(symmetry=not wants_counts(expects))), expects) == []


@slow
@pytest.mark.parametrize(("model", "states"), [("published", 282_201), ("without_elr", 33_794)])
def test_the_published_view_has_the_states_that_tlc_counts(model: str, states: int) -> None:
    """TLC counts as many with the modules' own VIEW, for KIP-966 and for 3.5."""
    assert seen_without(instantiate(spec("kafka/kraft"), model).program, HIDDEN) == states


def seen_without(program: Program, hidden: set[str]) -> int:
    """The number of states that differ in variables other than the hidden ones."""
    assert hidden < {variable.name for variable in program.variables}
    shown: set[int] = set()

    def note(engine: Engine[Any], _: Outcome) -> None:
        assert isinstance(engine, NativeEngine)
        store = engine.store
        kept = sum(mask(p.width) << p.offset for p in store.layout.places if p.name not in hidden)
        for first, count in chain.from_iterable(engine.levels):
            for number in range(first, first + count):
                state = store.states.view(number * store.state_bytes, store.state_bytes)
                shown.add(int.from_bytes(state, "little") & kept)

    search(program, NativeOptions(symmetry=False, on_end=note))
    return len(shown)
