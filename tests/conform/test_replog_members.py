"""The members of replog's campaigns are all parts of `make gate`, run as it runs them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from specchk.conform.mutation.members import SuiteMember, load
from specchk.conform.mutation.other_gates import AcceptedRuns, OtherGate
from specchk.conform.mutation.recorded import Recorded

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def members():
    before, path = set(sys.modules), list(sys.path)
    sys.path.insert(0, str(ROOT / "conformance"))
    module = load(ROOT / "conformance" / "mutants" / "members.py")
    yield module
    sys.path[:] = path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def of(kind, members):
    return [member for member in members.MEMBERS if isinstance(member, kind)]


def test_every_part_of_the_gate_is_a_member(members):
    """The parts in the Makefile, by the binding or file that each runs."""
    small = re.search(r"^SMALL\s*:= (.*)$", MAKEFILE, re.MULTILINE)
    parts = re.search(r"^ALL\s*:= (.*)$", MAKEFILE, re.MULTILINE)
    assert small is not None
    assert parts is not None
    assert parts[1].split() == ["replication", "$(SMALL)", "files", "recordings", "behaviour"]
    files = {member.file for member in of(OtherGate, members)}
    assert files == {*(f"{name}/binding.py" for name in small[1].split()), "on_files.py", "binding.py"}
    assert f'conformance/{of(AcceptedRuns, members)[0].file})" --lock' in MAKEFILE


def test_every_suite_of_the_main_binding_is_a_member(members):
    """Those of classes with a test for each case, the others as the gate runs them."""
    gate = sys.modules["replog_rules"].GATE
    (beside,) = [member for member in of(OtherGate, members) if member.file == "binding.py"]
    classes = [member.at for member in of(SuiteMember, members) if member.at.suite == "classes"]
    assert {repr(at) for at in (*classes, *beside.suites)} == {repr(at) for at in gate}


def test_recordings_and_faults_are_those_of_the_gate(members):
    """The same seeds, model and constants."""
    recorded = next(member for member in of(Recorded, members) if member.name == "recordings")
    first, last = recorded.seeds[0], recorded.seeds[-1]
    assert f"replog sim --seeds {first}..{last} --record" in MAKEFILE
    (faults,) = next(member for member in of(OtherGate, members) if member.file == "on_files.py").suites
    sets = " ".join(f"--set {name}={value}" for name, value in faults.bounds.items())
    command = " ".join(MAKEFILE.replace("\\\n", " ").split())
    assert f"on_files.py --suite {faults.suite} --model {faults.model} {sets}" in command
