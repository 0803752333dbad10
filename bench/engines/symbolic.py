"""Measure the symbolic engine: fixpoints without a horizon, and what pruning and coverage save.

`python bench/engines/symbolic.py` prints the tables of bench/README.md in minutes; with `--large` three
brokers, too, which takes two cores many minutes.  `--ledger` prints only how each flaw of the ledger is
found: the length of the counterexample beside the one that the spec expects of the enumerating engines;
`--sums` only specs outside of difference logic, and far thresholds; `--joins` hulls beside the exact search,
in turns.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from pathlib import Path

from specchk.compile.instantiate import instantiate
from specchk.ir.program import Program
from specchk.lang.frontend import check
from specchk.meaning import paths
from specchk.meaning.moves import Moves
from specchk.search.engine import Search, explore
from specchk.search.verdict import Violated, name_of
from specchk.symbolic.joins.engine import JOIN_AFTER, JoinOptions
from specchk.symbolic.joins.engine import search as joined
from specchk.symbolic.zones.engine import ZoneEngine, ZoneOptions
from specchk.symbolic.zones.zones import Shapes

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / part) for part in ("", "symbolic")]

import sums  # noqa: E402
from zoned import program_of, state_of  # noqa: E402
from zoned import search_zones as search  # noqa: E402

SPECS = ROOT / "spec"
Case = tuple[str, str | None, dict[str, str]]
FIXPOINTS: list[Case] = [("two_round_fetch", None, {}), ("replication", "two_brokers", {"MaxCrashes": "0"}),
                         ("replication", "three_epochs", {})]  # fmt: skip
JOINED: list[Case] = [("replication", "two_brokers", {}), ("replication", "three_brokers", {})]
LARGE: list[Case] = [("replication", "three_brokers", {})]
SMALL: list[Case] = [("two_round_fetch", None, {}), ("replication", "b14_committed_isr_only", {}),
         ("replication", "two_brokers", {"MaxCrashes": "0", "MaxEpoch": "0"})]  # fmt: skip


class Blind(paths.ForkPath):
    """A path that never lets what it knows decide: every comparison is a fork."""

    def at_most(self, i: int, j: int, bound: int) -> bool:
        if self.choose(2) == 0:
            self._assume(i, j, bound)
            return True
        self._assume(j, i, -bound - 1)
        return False

    def equal(self, i: int, j: int, difference: int) -> bool:
        return self.at_most(i, j, difference) and self.at_most(j, i, -difference)


def program(spec: str, model: str | None, constants: dict[str, str]) -> Program:
    return instantiate(check(str(SPECS / f"{spec}.spec")), model, constants).program


def row(label: str, found: Program, options: ZoneOptions) -> None:
    outcome = search(found, options)
    numbers, symbolic = outcome.statistics, outcome.statistics.symbolic
    assert symbolic is not None
    share = 100 * symbolic.answered / max(symbolic.questions, 1)
    print(f"| {label} | {name_of(outcome.verdict)} | {numbers.distinct} | {numbers.generated} | "
          f"{symbolic.questions} | {share:.1f} % | {symbolic.forks} | {numbers.seconds:.1f} |",
          flush=True)  # fmt: skip


def runs(found: Program, path: paths.ForkPath) -> int:
    """How often instances of actions are run to expand all zones of a program, with this kind of path."""
    options = ZoneOptions(workers=1)
    engine = ZoneEngine(Search(found, options), options)
    explore(engine)
    assert engine.workers.alone is not None
    shapes, moves = Shapes(found), Moves(found, path)
    for zone in engine.workers.alone.covered.zones():
        state = state_of(shapes, zone, path)
        for _ in moves.moves(state, zone.bounds, moves.instances):
            pass
    return len(engine.nodes) * len(moves.instances) + path.forks


def ledger() -> None:
    """How each flaw of replication.spec is found; not `remote_leo_kept`, which takes 7 minutes.

    Processor seconds of one process, with hulls beside the exact search and without, in turns.
    """
    checked = check(str(SPECS / "replication.spec"))
    print(
        "| model | steps | expected | zones | s alone | with hulls | ratio |\n|---|---|---|---|---|---|---|"
    )
    for name in checked.spec.models:
        if not re.match(r"b\d", name):
            continue
        found = instantiate(checked, name, {})
        expected = max(expect.number or 0 for expect in found.model.expects if expect.kind == "violates")
        took = []
        for after in (None, JOIN_AFTER):
            began = time.process_time()
            outcome = joined(found.program, JoinOptions(workers=1, join_after=after))
            took.append(time.process_time() - began)
        assert isinstance(outcome.verdict, Violated), name
        trace = outcome.verdict.violations[0].trace
        counts = f"{len(trace.steps) if trace else None} | {expected} | {outcome.statistics.distinct}"
        print(f"| {name} | {counts} | {took[0]:.2f} | {took[1]:.2f} | {took[1] / took[0]:.2f} |", flush=True)


def with_sums() -> None:
    """Twelve specs with sums, and four with thresholds of several sizes, each with its broken twin."""
    texts = {name: body for name, (body, _, _) in sums.SPECS.items()}
    for name, body in sums.THRESHOLDS.items():
        texts |= {f"{name} of {far}": body.format(far=far) for far in (10, 1_000, 1_000_000)}
    for name, body in sums.BROKEN.items():
        texts |= {f"broken {name} of {far}": body.format(far=far) for far in (10, 1_000, 10**6, 10**12)}
    print("| spec | verdict | symbolic states | comparisons | checks by Z3 | pruned | restarts | s |")
    print("|---|---|---|---|---|---|---|---|")
    for name, body in texts.items():
        with tempfile.TemporaryDirectory() as folder:
            found = program_of(sums.spec("sums", body, 4), Path(folder))
        outcome = search(found, ZoneOptions(workers=1))
        numbers, counts = outcome.statistics, outcome.statistics.symbolic
        assert counts is not None
        solver = f"{counts.solver_checks} | {counts.solver_pruned} | {counts.refinements}"
        verdict = f"{name_of(outcome.verdict)} | {numbers.distinct} | {counts.questions}"
        print(f"| {name} | {verdict} | {solver} | {numbers.seconds:.2f} |", flush=True)


def with_joins(*, large: bool) -> None:
    """Processor seconds to a proof, one process: hulls beside the exact search, and that alone."""
    print("| model | search | verdict | symbolic states | joined states | splits | steps | s of processor |")
    print("|---|---|---|---|---|---|---|---|")
    for spec, model, constants in [*FIXPOINTS[1:], *(JOINED if large else [])]:
        found = program(spec, model, constants)
        is_long = (spec, model, constants) in JOINED
        for after in (JOIN_AFTER,) if is_long else (JOIN_AFTER, None):
            began = time.process_time()
            outcome = joined(found, JoinOptions(workers=1, join_after=after))
            seconds = time.process_time() - began
            numbers, counts = outcome.statistics, outcome.statistics.symbolic
            assert counts is not None
            label = f"{model} {constants or ''}".strip()
            name = "exact" if after is None else "hulls"
            states = f"{numbers.distinct - counts.hulls} | {counts.hulls} | {counts.splits}"
            print(f"| {label} | {name} | {name_of(outcome.verdict)} | {states} | {numbers.generated} | "
                  f"{seconds:.1f} |", flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ledger", action="store_true", help="how each flaw of replication.spec is found")
    parser.add_argument("--large", action="store_true", help="models of some minutes, too")
    parser.add_argument("--sums", action="store_true", help="specs with sums, and far thresholds")
    parser.add_argument("--joins", action="store_true", help="hulls beside the exact search, and without")
    asked = parser.parse_args()
    if asked.joins:
        with_joins(large=asked.large)
        return
    if asked.ledger or asked.sums:
        (ledger if asked.ledger else with_sums)()
        return
    print("| model | verdict | symbolic states | successors | comparisons | decided | forks | s |")
    print("|---|---|---|---|---|---|---|---|")
    for spec, model, constants in [*FIXPOINTS, *(LARGE if asked.large else [])]:
        row(f"{model or spec} {constants or ''}".strip(), program(spec, model, constants), ZoneOptions())
    for spec, model, constants in SMALL:
        found = program(spec, model, constants)
        label = f"{model or spec} {constants or ''}".strip()
        row(f"{label}, alone", found, ZoneOptions(workers=1))
        row(f"{label}, no coverage", found, ZoneOptions(workers=1, covering=False))
    print("\n| model | runs of instances | without pruning |\n|---|---|---|")
    for spec, model, constants in SMALL[:2]:
        found = program(spec, model, constants)
        print(f"| {model or spec} | {runs(found, paths.ForkPath())} | {runs(found, Blind())} |")


if __name__ == "__main__":
    main()
