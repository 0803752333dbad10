"""Every engine on every model of spec/: one answer.

The reference engine is the oracle.  Models of more than a few thousand states are left to
`specchk test spec/`, which holds the native engine to counts that other programs found.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from specchk.compile.instantiate import instantiate
from specchk.ir.program import Program
from specchk.lang.frontend import CheckedSpec, check
from specchk.meaning.values import State
from specchk.native import engine as native
from specchk.native.machine.layout import layout_of
from specchk.native.machine.rooms import first_room, with_room
from specchk.search.engine import Options
from specchk.search.reference import search
from specchk.search.symmetry import Symmetry
from specchk.search.verdict import Holds, HoldsWithin, Inconclusive, Outcome, Violated
from specs.spec_runs import declared

SPECS = Path(__file__).parents[2] / "spec"
FILES = sorted(str(path.relative_to(SPECS)) for path in SPECS.rglob("*.spec") if "large" not in path.stem)
MOST_STATES = 6_000
# one or two of each kind run always, the others are sampled
ALWAYS = {
    "two_round_fetch.spec small",
    "delivery.spec b13",
    "examples/two_phase_commit.spec five",  # more renamings than are unrolled, of sets of a union
    "delivery.spec exactly_once",
    "kafka/kip320.spec size_2_1_1_2",
    "kafka/truncate_to_hw.spec loss",
    "kafka/ledger.spec b16",
    "kafka/async_isr.spec size_2_2_3",
    "kafka/async_isr_ledger.spec b19_three_replicas",
}
# For walk-throughs and recordings, or searched by tests/specs: no two searches of them end in minutes.
TOO_LARGE = {
    "kafka_recorded.spec": {"logs"},
    "raft/etcd_raft.spec": {"two_terms", "counts_older_entries", "four_terms", "recordings"},
    "raft/etcd_raft_changes.spec": {"changes"},
    "raft/etcd_raft_membership.spec": {"large", "three_terms", "elected_at_once"},
}


@cache
def checked(file: str) -> CheckedSpec:
    return check(str(SPECS / file))


def models() -> list[object]:
    names = [
        (file, model)
        for file in FILES
        for model in declared("model", file.removesuffix(".spec"))
        if model not in TOO_LARGE.get(file, ())
    ]
    return [
        pytest.param(file, model, id=f"{file} {model}",
                     marks=[] if f"{file} {model}" in ALWAYS else [pytest.mark.slow])
        for file, model in names
    ]  # fmt: skip


def answer(outcome: Outcome) -> tuple[object, ...]:
    """The results on which two engines must agree, in addition to the counts."""
    match outcome.verdict:
        case Violated():
            return tuple(
                (v.kind, v.name, len(v.trace.steps) if v.trace is not None else None)
                for v in outcome.verdict.violations
            )
        case Holds():
            return ("holds",)
        case HoldsWithin():
            return ("holds within", *outcome.verdict.bound)
        case Inconclusive():
            return ("inconclusive",)


def taken(outcome: Outcome) -> list[int]:
    """The counts of actions and branches; of properties too, unless one was dropped as violated."""
    given_up = isinstance(outcome.verdict, Violated)
    points = zip(outcome.program.points, outcome.coverage, strict=True)
    return [count for point, count in points if not (given_up and point.kind not in ("action", "branch"))]


def of_workers(workers: int, *, symmetry: bool) -> native.NativeOptions:
    """Two workers with code optimised before the search, one with code that is not at first."""
    optimise_after = 0 if workers == 2 else native.LONG
    return native.NativeOptions(symmetry=symmetry, workers=workers, optimise_after=optimise_after)


def with_packed_order(program: Program) -> Outcome:
    """The reference search that keeps the same state of each orbit as the native engine.

    The least by packed words (`native.kernel.canonical`), which for sets is not the order of values.  A
    quantifier stops at another item in another state of an orbit, and with it the counts of branches inside.
    """
    pack = layout_of(with_room(program, first_room(program))).pack

    def canonical(self: Symmetry, state: State) -> State:
        return min(state, *self.images(state), key=pack)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Symmetry, "canonical", canonical)
        return search(program, Options(symmetry=True))


def assert_same(program: Program, *, symmetry: bool) -> None:
    expected = search(program, Options(symmetry=symmetry))
    counts = taken(expected)
    for workers in (1, 2):
        found = native.search(program, of_workers(workers, symmetry=symmetry))
        assert answer(found) == answer(expected)
        for count in ("levels", "distinct", "generated", "depth", "horizon_cuts", "symmetry"):
            assert getattr(found.statistics, count) == getattr(expected.statistics, count), count
        if symmetry and taken(found) != counts:
            counts = taken(with_packed_order(program))
        assert taken(found) == counts
        assert {name for name, _ in found.witnesses} == {name for name, _ in expected.witnesses}


@pytest.mark.parametrize(("file", "model"), models())
def test_engines_agree_on_every_model(file: str, model: str) -> None:
    """Verdict, violations, lengths, per-level counts, coverage, witnesses: the same on 1 and 2 threads."""
    program = instantiate(checked(file), model).program
    size = native.search(program, native.NativeOptions(symmetry=False, workers=1)).statistics.distinct
    for symmetry in (False, True):
        if size <= MOST_STATES:
            assert_same(program, symmetry=symmetry)
        else:  # too large for the reference engine here: the native one with itself, on 1 and 2 threads
            one = native.search(program, of_workers(1, symmetry=symmetry))
            two = native.search(program, of_workers(2, symmetry=symmetry))
            assert answer(one) == answer(two)
            assert one.statistics.levels == two.statistics.levels
            assert one.coverage == two.coverage
