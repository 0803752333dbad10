"""replog under earlier rules conforms to the models of replication.spec with them, flaws included.

The gate is for today's rules; `past_rules.py` is a binding of its own.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from laws.sources import ROOT
from past_rules import PastRulesBinding, protocol_of
from replog.core.protocol import Protocol, preset
from specchk.cli.commands.conform import command
from specchk.compile.instantiate import instantiate
from specchk.conform.contract.binding import BindingError
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.suites import SuiteWalks, run_walks
from specchk.ir.program import Program
from specchk.lang.frontend import check

FILE = ROOT / "conformance" / "past_rules.py"
SPEC = str(ROOT / "spec" / "replication.spec")


def program_of(model: str, bounds: dict[str, str] | None = None) -> Program:
    return instantiate(check(SPEC), model, bounds or {}).program


def constants_of(model: str, bounds: dict[str, str] | None = None) -> dict[str, object]:
    return PastRulesBinding(program_of(model, bounds)).constants


@pytest.mark.parametrize("model", ["b1_truncate_to_hw", "b3_fast_failover", "b16_unclean_election"])
def test_a_flaw_of_the_spec_is_replog_s_with_the_same_rule(model):
    """Random walks of a model with an earlier rule: each step leads to the spec's state."""
    result = run_walks(Replayer(PastRulesBinding(program_of(model))), SuiteWalks(3, 10, 30))
    assert result.divergence is None
    assert not result.vacuous


def test_replog_of_another_time_diverges():
    """With today's truncation replog queries its leader where 0.10 truncated at once."""
    binding = PastRulesBinding(program_of("b1_truncate_to_hw"))
    binding.constants = {**binding.constants, "truncation": "on_fetch"}
    assert run_walks(Replayer(binding), SuiteWalks(3, 20, 30)).divergence is not None


def test_todays_rules_are_replog_s_defaults():
    """And those of a cluster that was upgraded are the preset of that name."""
    assert protocol_of(constants_of("two_brokers")) == Protocol()
    assert protocol_of(constants_of("two_brokers", {"elr": "false"})) == preset("kafka-4.1-upgraded")
    # Four of its rules are of reassignment, log starts and coordinators, which this spec does not have.
    others = {
        "removed_leave_elr": True, "override_replaces": True, "join_needs_start": True,
        "completes_as_leader": True,
    }  # fmt: skip
    as_is = replace(preset("kafka-4.1-as-is"), **others)
    assert protocol_of(constants_of("remote_leo_kept")) == as_is


@pytest.mark.parametrize(
    ("model", "rule"),
    [
        ("b8_foreign_acknowledgement", "fence_fetch"),
        ("b12_hw_before_truncation", "hw_on_diverge"), ("b19_no_compare_and_set", "check_partition_epoch"),
        ("b20_latest_falls", "hides_new_hw"), ("b24_leader_checks_alone", "check_fenced"),
        ("b29_deposed_leader_is_read", "restart_after_fence"), ("b31_never_truncates", "never truncates"),
    ],
)  # fmt: skip
def test_a_rule_that_replog_does_not_have_like_this_is_refused(model, rule):
    """It would diverge, and the spec would not be at fault."""
    with pytest.raises(BindingError, match=rule):
        PastRulesBinding(program_of(model))


@pytest.mark.slow
def test_every_bound_flaw_conforms_and_planted_errors_are_detected():
    """The default tier: every suite to its end, every control with a divergence."""
    found = CliRunner().invoke(command, [str(FILE), "--json"])
    assert found.exit_code == 0, found.output
    report = json.loads(found.stdout)
    assert len(report["suites"]) == len(PastRulesBinding.gate)
    assert [control["name"] for control in report["controls"]] == [
        control.name for control in PastRulesBinding.controls
    ]
