"""The pytest plugin: one item for each case, the same everywhere, and none if it is not requested."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from two_phase_copy import Copy


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    copy = Copy(tmp_path)
    copy.edit("binding.py", 'At("two"), At("three")', 'At("two"), At("two", suite="walks")')
    return copy


def test_each_case_and_control_is_an_item(copy: Copy):
    """The ids are those of `--list`, in its order, with the last action; other suites are one item."""
    listed = re.findall(r"^  ([0-9a-f]{10}) .* to (\w+)", copy.conform("--list").text, re.MULTILINE)
    collected = copy.pytest("--collect-only").text.split("\n\n")[0].splitlines()
    assert collected == [
        *(f"binding.py::two::{name}-{last}" for name, last in listed),
        "binding.py::two (walks)::walks",
        "binding.py::control: nobody waits for votes",
        "binding.py::control: prepared in memory only",
    ]


@pytest.mark.slow
def test_workers_share_the_cases_and_report_their_properties(copy: Copy):
    """All pass under xdist, and JUnit has the spec and the steps of each."""
    done = copy.pytest("-n", "2", "--junitxml=cases.xml")
    assert done.code == 0, done.text
    root = ElementTree.parse(copy.folder / "cases.xml").getroot()
    cases = root.findall(".//testcase")
    assert len(cases) > 10
    steps = root.findall(".//property[@name='steps']")
    assert len(steps) == len(cases) - 2  # the controls


def test_a_failing_case_is_told_as_a_report(copy: Copy):
    """The divergence on a short path, without a traceback of the harness."""
    copy.edit("two_phase.py", "self.state == WORKING and self._enter(ABORTED)", "self._enter(ABORTED)")
    done = copy.pytest("-x")
    assert done.code == 1
    assert "diverges: the implementation took a step that the spec forbids" in done.text
    assert "!! state[p1]: the spec has" in done.text
    assert "Traceback" not in done.text
    assert "runner.py" not in done.text


def test_a_case_that_ends_its_process_fails(copy: Copy):
    """`os._exit(0)` ends neither pytest nor its report, with exit code 0."""
    before = "self.state == WORKING and self._enter(ABORTED)"
    copy.edit("two_phase.py", before, f"({before}) if self.state == WORKING else __import__('os')._exit(0)")
    done = copy.pytest("-x")
    assert done.code == 1
    assert "SystemExit: 0" in done.text


SPEC = """spec f
var x : 0..3 = 0
action up():
    require x < 2
    x' = x + 1
action crash():
    x' = 0
invariant low: x <= 3
model m:
    expect holds
"""
HALF_DONE = """
from specchk.conform.contract.binding import (
    Accepted, At, Binding, Refused, action, interruption, project,
)

class HalfBinding(Binding):
    spec, model = "f.spec", "m"
    gate = (At(suite="faults"),)
    def start(self):
        return {"x": 0}
    @action("up")
    def up(self, system):
        system["x"] += system["x"] < 2
        return Accepted()
    @action("crash")
    def crash(self, system):
        system["x"] = 0
        return Accepted()
    @interruption("crash")
    def cut(self, system, moment, step):
        if moment or system["x"] != 1:
            return False
        system["x"] = 3
        return True
    @project
    def state(self, system):
        return dict(system)
"""


def test_a_fault_inside_a_step_is_not_said_to_be_irreproducible(copy: Copy):
    """Its path is as short as possible; repeated without the fault it would not diverge."""
    (copy.folder / "f.spec").write_text(SPEC)
    (copy.folder / "binding.py").write_text(HALF_DONE)
    done = copy.pytest()
    assert done.code == 1
    assert "crash() struck inside" in done.text
    assert "did not reproduce" not in done.text


def test_a_binding_that_does_not_fit_is_an_error_of_collection(copy: Copy):
    """With the errors, as `specchk conform` reports them."""
    copy.edit("binding.py", '@action("hear")', '@action("heard")')
    done = copy.pytest()
    assert done.code == 2
    assert "the spec's action `hear` is not bound" in done.text


def test_the_plugin_costs_nothing_where_it_is_not_asked_for():
    """The part loaded by every pytest run imports only pytest."""
    script = "import sys, specchk.conform.plugin; print([m for m in sys.modules if m.startswith('specchk.')])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['specchk.conform', 'specchk.conform.plugin']"
