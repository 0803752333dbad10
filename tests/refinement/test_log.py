"""replication.spec refines log.spec, and the flaws of the ledger that a client sees do not."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from specchk.compile.instantiate import instantiate
from specchk.lang.frontend import CheckedSpec, check
from specchk.native import engine as native
from specchk.search import reference
from specchk.search.verdict import Holds, HoldsWithin, Outcome, Violated

ROOT = Path(__file__).parents[2]
SPECS = ROOT / "spec"
TABLE = re.compile(r"^\| `replication:(\w+)` \| (?:`(\w+ = \d+)`|-) \| (\d+|no) \|", re.MULTILINE)
ROWS = TABLE.findall((ROOT / "docs" / "kafka-reference.md").read_text(encoding="utf-8"))


@cache
def replication(folder: Path) -> CheckedSpec:
    """replication.spec with its own models, and the refinement of replication_log.spec."""
    text = (SPECS / "replication_log.spec").read_text(encoding="utf-8")
    claim = text[text.index("\nrefines") : text.index("\nmodel")]
    for name in ("log", "replication"):
        whole = (SPECS / f"{name}.spec").read_text(encoding="utf-8")
        (folder / f"{name}.spec").write_text(
            whole + (claim if name == "replication" else ""), encoding="utf-8"
        )
    return check(str(folder / "replication.spec"))


@pytest.fixture(scope="module")
def specs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ledger")


def seen_by_clients(folder: Path, model: str, given: str) -> Outcome:
    name, _, value = given.partition(" = ")
    program = instantiate(replication(folder), model, {name: value} if name else {}, ["clients"]).program
    return native.search(program, native.NativeOptions(workers=1))


def test_every_flaw_of_replication_is_in_the_table(specs: Path) -> None:
    """By the name of its model; and no row names a removed model."""
    models = replication(specs).spec.models
    ledger = [name for name in models if re.match(r"b\d|s\d|remote_leo", name)]
    assert sorted(row[0] for row in ROWS) == sorted(ledger)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "given", "steps"), ROWS, ids=[row[0] for row in ROWS])
def test_clients_see_what_the_table_says(model: str, given: str, steps: str, specs: Path) -> None:
    """The shortest run in which a promise is broken, or none within the bounds."""
    verdict = seen_by_clients(specs, model, given).verdict
    if steps == "no":
        assert isinstance(verdict, Holds | HoldsWithin)
        return
    assert isinstance(verdict, Violated)
    (violation,) = verdict.violations
    assert (violation.kind, violation.name) == ("refinement", "clients")
    assert violation.trace is not None
    assert len(violation.trace.steps) == int(steps)


@pytest.mark.parametrize(("name", "states", "depth"), [("consensus", 2, 2), ("voting", 77, 11)])
def test_consensus_and_voting_have_the_published_states(name: str, states: int, depth: int) -> None:
    """MCVoting of tlaplus/Examples checks this refinement, with symmetry; MCConsensus has none, and 4."""
    outcome = reference.search(instantiate(check(str(SPECS / "examples" / f"{name}.spec"))).program)
    assert isinstance(outcome.verdict, Holds)
    assert (outcome.statistics.distinct, outcome.statistics.depth) == (states, depth)


@pytest.mark.slow
def test_clients_see_nothing_of_replication() -> None:
    """At the default bounds; proved for any length by replication_log_proof.spec."""
    outcome = native.search(instantiate(check(str(SPECS / "replication_log.spec"))).program)
    assert outcome.verdict == HoldsWithin(("MaxOffset=2",))
