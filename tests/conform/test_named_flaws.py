"""Flaws that once passed the gate and its lock: a suite reports each alone, with rule and field.

They were planted together, and nothing failed.  Since then the specs have the rules that they break.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from click.testing import CliRunner

from laws.sources import ROOT
from specchk.cli.commands.conform import command
from specchk.conform.contract.load import load_binding
from specchk.conform.covers.cases import label_of
from specchk.conform.mutation.mutants import load
from specchk.conform.mutation.patches import Patch, forget, install
from specchk.conform.work.forks import Say, run_all

CONFORMANCE = ROOT / "conformance"
MUTANTS = CONFORMANCE / "mutants"
DIVERGES = 13


@dataclass(frozen=True)
class Flaw:
    """A patch of replog, a suite of a gate, and the names required in its report: step or guard, field."""

    name: str
    patches: tuple[Patch, ...]
    folder: str
    suite: str
    rule: str
    field: str


def curated(file: str, name: str) -> tuple[Patch, ...]:
    (found,) = (one for one in load(MUTANTS, file) if one.id == name)
    return found.patches


FLAWS = (
    Flaw(
        "the ELR keeps unclean members", curated("6_elr.toml", "unclean-stays-eligible"), ".",
        "elected_from_elr", "restart(b1)", "eligible_leaders: the spec has {}, the implementation {b1}",
    ),
    Flaw(
        "HW waits for no one outside of the ISR",
        curated("1_watermark.toml", "caught-up-not-waited-for"), ".",
        "false_suspicion MaxOffset=1", "become_leader(b1, 0)",
        "hw[b1]: the spec has 0, the implementation 1",
    ),
    Flaw(
        "leaders propose who is fenced", curated("3_isr.toml", "leader-proposes-fenced"), ".",
        "false_suspicion MaxOffset=1", "the spec forbids it: f in joining(l)",
        "late[b1]: the spec has {}, the implementation {b2}",
    ),
    Flaw(
        "groups take commits of any generation",
        (Patch("replog.core.broker.groups", "if generation != group.generation:", "if False:"),), "delivery",
        "former_owner", "receive_late_commit()", "committed: the spec has 0, the implementation 1",
    ),
    Flaw(
        "placement never shifts followers",
        (Patch("replog.core.controller.placement", "            shift += 1", "            pass"),),
        "placement", "five_brokers", "place()", "replicas[5][1]: the spec has 2, the implementation 1",
    ),
    Flaw(
        "churn is never propagated",
        (Patch("replog.core.broker.propagation", "is_quiet or is_late", "is_quiet"),), "isr_timing",
        "propagation_minute", "tick()", "change_pending: the spec has false, the implementation true",
    ),
    Flaw(
        "the window of duplicates is one batch",
        (Patch("replog.core.log.producer", "[-WINDOW:]", "[-1:]"),), "delivery",
        "idempotent_producer", "handle_request()",
        "status[1]: the spec has appended, the implementation refused",
    ),
    Flaw(
        "a new leader lists an old end", curated("1_watermark.toml", "latest-not-hidden"), ".",
        "read_by_consumers", "list_latest(b2, 0)",
        "the spec forbids it: listed(b) == some(latest)  (if is_leader(b) and (hw[b]",
    ),
    Flaw(
        "followers are read up to their end", curated("1_watermark.toml", "follower-read-up-to-its-end"), ".",
        "read_by_consumers", "read(b2, 0, 1)", "the spec forbids it: visible(b, from) == some(to)",
    ),
    Flaw(
        "followers serve no reader", curated("1_watermark.toml", "followers-do-not-serve"), ".",
        "read_by_consumers", "read(b1, 1, 1)", "NOT_LEADER_OR_FOLLOWER, with the offsets []",
    ),
)  # fmt: skip


def options(flaw: Flaw) -> list[str]:
    """The binding and the suite, which is one of its gate."""
    path = CONFORMANCE / flaw.folder / "binding.py"
    binding = load_binding(path)
    of_gate = {label_of(at.model or binding.model, tuple(at.bounds.items())): at for at in binding.gate}
    at = of_gate[flaw.suite]
    bounds = [word for name, value in at.bounds.items() for word in ("--set", f"{name}={value}")]
    return [str(path), "--model", at.model or binding.model, "--suite", at.suite, *bounds]


def conform(flaw: Flaw) -> tuple[int, str]:
    """Run the suite in a process in which replog has the flaw: exit code and report."""
    words = options(flaw)

    def task(say: Say) -> None:
        forget(("replog",), (CONFORMANCE, CONFORMANCE / flaw.folder))
        patcher = install(flaw.patches)
        found = CliRunner().invoke(command, words)
        assert patcher.used == {patch.module for patch in flaw.patches}
        say((found.exit_code, found.output))

    (ended,) = run_all([task], 1)
    assert ended.how == "done", ended.why
    code, report = ended.said[0]
    return code, report


# Curated mutants, which a campaign kills; test_replog has other flaws of what consumers are answered.
SLOW = ("the ELR keeps", "HW waits", "a new leader lists", "followers are read", "followers serve")


@pytest.mark.parametrize("flaw", [
    pytest.param(
        flaw, id=flaw.name.replace(" ", "-"),
        marks=[pytest.mark.slow] if flaw.name.startswith(SLOW) else [],
    )
    for flaw in FLAWS
])  # fmt: skip
def test_the_gate_alone_reports_the_rule_and_the_field(flaw):
    """In one suite, which diverges; its last lines name the step or guard, and the wrong value."""
    code, report = conform(flaw)
    verdict = "\n".join(line for line in report.splitlines() if line.startswith("!!"))
    assert code == DIVERGES, report
    assert flaw.rule in verdict, verdict
    assert flaw.field in verdict, verdict
