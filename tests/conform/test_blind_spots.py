"""Five blind spots of a former gate of replog are each in the report on its suites.

`OLD` is that gate, of 22 November 2026: 76 realistic flaws showed what it could not see, and the reports on
models and suites name the reasons without any flaw.  The models that were added for them are checked, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from test_hidden import HIDDEN, RING, RingBinding, classes_alone, program

from laws.sources import ROOT
from replog_rules import GATE
from specchk.cli.deciding import decided_conditions
from specchk.compile.instantiate import instantiate
from specchk.conform.contract.binding import At
from specchk.conform.covers.cases import label_of
from specchk.conform.covers.cover import build_suite
from specchk.conform.gate.choices import of_model
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.runner import run_suite
from specchk.explore.conditions import Decided
from specchk.ir.program import Program
from specchk.lang.frontend import check
from specchk.report.conditions import render_conditions

OLD = (
    At("page_cache_lost"),
    At("two_brokers", {"MaxOffset": "1"}),
    At("one_record_at_a_time"),
    At("three_epochs"),
    At("three_brokers"),
    At("false_suspicion", {"MaxOffset": "1"}),
    At("slow_follower", {"MaxOffset": "1"}),
    At("two_must_have_it", {"MaxOffset": "1"}),
    At("two_brokers", {"MaxCrashes": "0", "acks": "one"}),
    At("read_by_consumers"),
    At("slow_follower", suite="walks"),
)
# Of the gate of today the models that were made for what the old one could not see.
MENDING = (
    "slow_follower MaxOffset=0 MaxFences=1 MaxShrinks=2",
    "two_crashes",
    "elected_from_elr",
    "cut_and_lost",
    "power_loss_and_crash",
    "acknowledged_then_cut",
)
SPEC = ROOT / "spec" / "replication.spec"
WIDE = 10_000  # characters: no line of a report is wrapped
PENDING = ("p.epoch == epoch[l]", "p.version == version[l]")


def searched(gate: Sequence[At]) -> list[Decided]:
    """The models of a gate, each once."""
    checked = check(str(SPEC))
    programs: dict[str, Program] = {}
    for at in gate:
        one = instantiate(checked, at.model, at.bounds).program
        programs.setdefault(of_model(one), one)
    return [decided_conditions(one, quiet=True) for one in programs.values()]


@pytest.fixture(scope="module")
def old() -> list[Decided]:
    return searched(OLD)


@pytest.fixture(scope="module")
def today() -> list[Decided]:
    gate = [at for at in GATE if label_of(at.model, tuple(at.bounds.items())) in MENDING]
    assert len(gate) == len(MENDING)
    return searched(gate)


def report(models: Sequence[Decided]) -> list[str]:
    """The report of `specchk conditions` on some models, without places."""
    lines = render_conditions(models, None, WIDE).split("\n")
    return [line.strip().partition(" at /")[0] for line in lines]


def section(models: Sequence[Decided], owner: str) -> list[str]:
    """The lines of the report about an action."""
    lines = report(models)
    if owner not in lines:
        return []
    first = lines.index(owner) + 1
    return lines[first : lines.index("", first) if "" in lines[first:] else None]


def takes(models: Sequence[Decided], action: str) -> list[Decided]:
    """The models in which an action is taken."""
    return [model for model in models if action not in model.never_taken and has(model.program, action)]


def is_blind(models: Sequence[Decided], action: str, spot: str) -> bool:
    """Whether the report has a line about an action that is taken."""
    assert takes(models, action)
    return spot in section(models, action)


def has(program: Program, action: str) -> bool:
    return any(one.name == action for one in program.actions)


def brokers(model: Decided) -> int:
    (sort,) = model.program.sorts
    return len(sort.members)


@pytest.mark.slow
def test_a_proposal_beside_a_pending_one_is_never_tried(old, today):
    """MaxShrinks was 1, so that no second one was ever refused only because of the first one."""
    spots = [f"never alone forbids the step: `{part}`" for part in PENDING]
    assert all(is_blind(old, "shrink_isr", spot) for spot in spots)
    assert not any(is_blind(today, "shrink_isr", spot) for spot in spots)


@pytest.mark.slow
def test_no_model_reaches_a_partition_without_leader(old, today):
    """No broker was elected on return, and no follower fetched without a leader."""
    spots = {
        "fence_broker": "never alone takes the branch: `able == {}`",
        "unfence_broker": "never alone takes the branch: `leads`",
        "send_fetch": "never alone forbids the step: `meta[epoch[b]].leader != none`",
    }
    for action, spot in spots.items():
        assert is_blind(old, action, spot)
        assert not is_blind(today, action, spot)


@pytest.mark.slow
def test_three_brokers_never_crash_fence_or_shrink(old, today):
    """The only model of three had none of these steps; today's have a crash, the others are still missing."""
    (three,) = [model for model in old if brokers(model) == 3]
    (line,) = [line for line in report([three]) if line.startswith("never taken: ")]
    missing = {"crash", "fence_broker", "shrink_isr"}
    assert missing <= set(line.removeprefix("never taken: ").split(", "))
    now = [model for model in today if brokers(model) == 3]
    assert {action for action in missing if takes(now, action)} == {"crash"}


@pytest.mark.slow
def test_the_only_model_with_power_loss_has_no_truncation(old, today):
    """No fetch ever diverged there, so no flushed record was cut."""
    (lossy,) = takes(old, "power_loss")
    assert lossy.program.model == "page_cache_lost"
    spot = "never alone avoids the branch: `counts`"
    assert is_blind([lossy], "serve_fetch", spot)
    assert not is_blind(old, "serve_fetch", spot)  # others truncate, without a power loss
    now = takes(takes(today, "power_loss"), "serve_fetch")
    assert [model.program.model for model in now if not is_blind([model], "serve_fetch", spot)] == [
        "cut_and_lost"
    ]


@pytest.mark.parametrize("broken", HIDDEN)
def test_classes_alone_are_in_the_report_of_a_suite_without_suffixes(broken: Any):
    """Such a suite passes for each bug in hidden state; its report names the cover."""
    of = program(RING, "small", Size="9")
    before, now = (
        run_suite(Replayer(cls(of)), suite)
        for cls, suite in ((broken, classes_alone(of)), (RingBinding, build_suite(of)))
    )
    assert (before.divergence, now.divergence) == (None, None)
    assert str(before.coverage).endswith(", classes alone")
    assert str(now.coverage).endswith(" suffixes")
