"""Public bug reports of other checkers, and published specs: each model gives the answer that is right.

The first comment of each spec in `public/` has the ticket, or the published module with its counts of states,
transitions and levels.  TLC: tlaplus/tlaplus#201, #630, #690, #742, #819, #871, #1037, #1168, #1302, #1385,
PR 1440; hw-cbmc#2007; tla-rs#62; fizzbee#212; Spin#38; jspin#2; stateright#3; rumur#51; specl#27, #60;
pyk#471; quint#710, #1890, #1981; Kafka: KAFKA-2143, KAFKA-15489; Bouyer, STACS 2003 (zones).
"""

from __future__ import annotations

from functools import cache

import pytest
from _pytest.mark.structures import ParameterSet
from msgspec.structs import replace

from specchk.compile.instantiate import instantiate
from specchk.ir.program import Program
from specchk.lang.frontend import CheckedSpec, check
from specchk.native import engine as native
from specchk.search import reference
from specchk.search.budget import Budget
from specchk.search.engine import Options, Unsupported
from specchk.search.expect import unmet, wants_counts
from specchk.search.verdict import Outcome, Violated, violations_of
from specchk.symbolic.induction.bmc import bounded
from specchk.symbolic.induction.prove import ProofOptions, prove
from specchk.symbolic.joins.engine import JoinOptions
from specchk.symbolic.joins.engine import search as zones
from specs.spec_runs import SPECS, declared

PUBLIC = SPECS.parent / "tests" / "specs" / "public"
SLOW = {"fastpaxos", "sailfish", "kip848-published"}
NAMES = sorted(path.stem for path in PUBLIC.glob("*.spec"))


def _param(name: str, model: str) -> ParameterSet:
    id_ = f"{name}-{model}"
    return pytest.param(name, model, id=id_, marks=[pytest.mark.slow] if SLOW & {name, id_} else [])


MODELS = [
    _param(name, model) for name in NAMES for model in declared("model", f"../tests/specs/public/{name}")
]


@cache
def spec(name: str) -> CheckedSpec:
    return check(str(PUBLIC / f"{name}.spec"))


def program(name: str, model: str = "m") -> Program:
    return instantiate(spec(name), model).program


@pytest.mark.parametrize(("name", "model"), MODELS)
def test_every_public_report_has_its_right_answer(name: str, model: str) -> None:
    """Verdict, length of the counterexample and counts are those of the report, or of the published spec."""
    instance = instantiate(spec(name), model)
    expects = instance.model.expects
    assert expects
    symmetry = not wants_counts(expects)
    try:
        outcome = native.search(instance.program, native.NativeOptions(symmetry=symmetry))
    except Unsupported:
        outcome = reference.search(instance.program, Options(symmetry=symmetry))
    assert unmet(outcome, expects) == []


def without_horizons(name: str) -> Outcome:
    return zones(program(name), JoinOptions(Budget(max_states=400)))


def test_a_violation_beyond_the_horizon_is_seen_without_horizons() -> None:
    """It takes 40 pushes, a reset and no horizon of 12."""
    (violation,) = violations_of(without_horizons("far").verdict)
    assert (violation.kind, violation.name) == ("invariant", "low")
    assert violation.trace is not None
    assert len(violation.trace.steps) == 41


@pytest.mark.parametrize("name", ["diagonal", "lockstep", "lockstep_unit"])
def test_differences_that_grow_together_are_no_violation(name: str) -> None:
    """No bound of one difference shows that two are equal: `holds` or no answer, never `violated`."""
    assert not isinstance(without_horizons(name).verdict, Violated)


def test_a_state_from_which_induction_fails_is_no_violation() -> None:
    """`x != 11` holds, though x may be 9 in a state that is not reachable."""
    assert not isinstance(prove(program("kinduction"), ProofOptions()).verdict, Violated)


@pytest.mark.parametrize(("depth", "violated"), [(5, False), (6, True)])
def test_a_search_to_a_depth_includes_its_last_step(depth: int, violated: bool) -> None:
    """The counterexample has six steps."""
    given = program("off_by_one")
    outcome = bounded(replace(given, deadlock_ok=None), depth, Budget())
    assert isinstance(outcome.verdict, Violated) is violated
