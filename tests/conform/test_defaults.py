"""The shipped rules are the bound ones: gate, recordings and demo run `Protocol()`, without switches."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

from binding import ReplogBinding
from laws.sources import ROOT
from on_files import FilesBinding
from replog.core.protocol import CURRENT, Protocol, preset
from replog.demo.command import command
from replog.sim.cluster.options import WorldOptions
from replog.sim.recording.record_run import RecordedRun
from replog_rules import EXHAUSTIVE, GATE, SMOKE, TODAY
from specchk.compile.instantiate import instantiate
from specchk.ir.program import Program
from specchk.lang.frontend import check

RULES = {field.name for field in fields(Protocol)}
# Rules of the past are those of the model; that today's are the defaults is a test of `test_past_rules.py`.
HELD = (
    *sorted(path for path in (ROOT / "conformance").glob("*.py") if path.name != "past_rules.py"),
    *sorted((ROOT / "impl/replog/sim/recording").glob("*.py")),
)
SETTINGS = {"acks", "min_isr", "one_record", "consumers"}


@cache
def program() -> Program:
    return instantiate(check(str(ROOT / "spec" / "replication.spec")), "two_brokers", {}).program


def switches(text: str) -> Iterator[tuple[int, str]]:
    """The rules of the protocol that a module names as keywords, by line."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            yield from ((node.lineno, word.arg) for word in node.keywords if word.arg in RULES)


@pytest.mark.parametrize("path", HELD, ids=[path.name for path in HELD])
def test_nothing_that_is_held_to_the_spec_switches_a_rule(path: Path) -> None:
    """A rule set by a binding or a recorder could change in the shipped version without a report."""
    assert list(switches(path.read_text(encoding="utf-8"))) == []


def test_a_switched_rule_would_be_found() -> None:
    """By `replace`, or by a protocol made with another rule than the default."""
    text = "a = 1\nb = replace(CURRENT, keeps_remote_leo=True)\nc = Protocol(elr=True)\n"
    assert list(switches(text)) == [(2, "keeps_remote_leo"), (3, "elr")]


@pytest.mark.parametrize("kind", [ReplogBinding, FilesBinding])
def test_the_bindings_run_the_defaults(kind: type[ReplogBinding]) -> None:
    """Each broker and the controller of a new cluster."""
    cluster = kind(program()).start()
    rules = [cluster.controller.state.protocol]
    rules += [node.process.state.protocol for node in cluster.nodes.seen if node.process is not None]
    assert rules == [Protocol()] * 3


def test_recordings_the_simulator_and_the_demo_run_the_defaults() -> None:
    """The same value, under its name in the command line's list."""
    world = RecordedRun(0).world
    rules = {node.broker.state.protocol for node in world.nodes.values() if node.broker is not None}
    assert {*rules, world.controller.state.protocol, WorldOptions().protocol, CURRENT} == {Protocol()}
    default = next(option.default for option in command.params if option.name == "protocol")
    assert preset(default) == Protocol()
    assert default in CliRunner().invoke(command, ["--help"]).output


def test_the_models_of_the_gate_have_the_rules_that_are_the_specs_defaults() -> None:
    """The rules required of a model are the spec's defaults, and no suite sets them."""
    constants = {one.name: one for one in program().constants}
    assert set(TODAY) < set(constants)
    for at in (*SMOKE, *GATE, *EXHAUSTIVE):
        assert not set(at.bounds) & set(TODAY), at
        assert all(name.startswith("Max") or name in SETTINGS for name in at.bounds), at
