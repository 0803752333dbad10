"""The gate as run by a build, on two-phase commit: lock, controls, exit codes, files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace
from two_phase_copy import Copy

from specchk.conform.work import lock_file

MUTANT = """
[[mutant]]
id = "{}"
flaw = "F1"
story = "A story."
module = "two_phase_copy"
old = "a"
new = "b"
"""
LOST = {"id": "loses-a-vote", "flaw": "F1", "verdict": "survived", "kills": []}
SCORES = {
    "schema": "specchk.mutation/1", "kind": "curated", "killed": 3, "counted": 4,
    "mutants": [LOST, *({**LOST, "id": f"m{number}", "verdict": "killed"} for number in range(3))],
    "control_tests": 7,
}  # fmt: skip


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return Copy(tmp_path)


@pytest.fixture
def short(copy: Copy) -> Copy:
    """A copy whose gate has one small suite."""
    copy.shorten()
    return copy


def test_a_lock_is_written_once_and_holds(copy: Copy):
    """A gate that meets its lock ends with 0."""
    assert copy.conform("--update-lock").code == 0
    held = copy.conform("--lock")
    assert held.code == 0
    assert "lock: specchk.lock holds, 2 suites" in held.text


def test_a_missing_lock_is_an_error(short: Copy):
    """A gate with the option for a lock does not pass without one."""
    done = short.conform("--lock")
    assert done.code == 2
    assert "--update-lock" in done.text


def test_a_gate_below_its_lock_ends_with_14(copy: Copy):
    """With the suite and the numbers; so does another spec, with the action that changed."""
    copy.conform("--update-lock")
    path = copy.folder / lock_file.NAME
    contents = lock_file.read(path)
    was = contents.gate
    assert was is not None
    three = replace(was.suites["three"], covered=was.suites["three"].covered + 100)
    gate = replace(was, suites={**was.suites, "three": three})
    lock_file.write(path, replace(contents, gate=gate))
    copy.edit("two_phase.spec", "require p not in alive", "require not (p in alive)")
    done = copy.conform("--lock", "--json")
    assert done.code == 14
    found = json.loads(done.text)
    assert found["exit_code"] == 14
    below = {one["place"]: one["found"] for one in found["lock"]["below"]}
    assert set(below) == {"spec", "three: covered"}
    assert "changed: action restart" in below["spec"]


def test_another_implementation_is_told_and_passes(short: Copy):
    """A change that conforms needs no new lock."""
    short.conform("--update-lock")
    short.edit(
        "two_phase.py", "def __init__(self) -> None:\n", "def __init__(self) -> None:\n        # empty\n"
    )
    done = short.conform("--lock")
    assert done.code == 0
    assert "implementation changed since the lock" in done.text


def test_the_gate_finds_a_planted_bug(copy: Copy):
    """13, and a JUnit file with the report as the failure of one case; test_two_phase plants others."""
    copy.edit(
        "two_phase.py", "self.votes == self.participants", "2 * len(self.votes) >= len(self.participants)"
    )
    done = copy.conform("--junit", "cases.xml")
    assert done.code == 13
    root = ElementTree.parse(copy.folder / "cases.xml").getroot()
    failures = root.findall(".//failure")
    assert failures
    assert all(failure.text and "!! diverges" in failure.text for failure in failures)


def test_controls_that_find_nothing_make_the_gate_vacuous(short: Copy):
    """A gate that cannot detect a planted mistake is blind, and writes no lock."""
    short.edit("binding.py", '"self.log.force()", "pass"', '"self.log.force()", "self.log.force() or None"')
    done = short.conform("--update-lock")
    assert done.code == 21
    assert done.text.startswith("vacuous: no divergence was found with the control `prepared in memory only`")
    assert not (short.folder / "specchk.lock").exists()


def test_a_lock_asks_for_one_control_of_each_kind(short: Copy):
    """Without a wrong line of the implementation the gate's detection is unproven."""
    text = (short.folder / "binding.py").read_text()
    (short.folder / "binding.py").write_text(re.sub(r"        BadCode\(.*\),\n", "", text))
    done = short.conform("--update-lock")
    assert done.code == 21
    assert "lack an error in the implementation" in done.text


def test_a_gate_whose_only_control_is_out_of_date_is_vacuous(copy: Copy):
    """A text that is no longer in its function would plant nothing."""
    copy.edit("binding.py", '"self.log.force()", "pass"', '"self.log.flush()", "pass"')
    done = copy.conform()
    assert done.code == 21
    assert "`self.log.flush()` does not occur exactly once in `Participant._enter`" in done.text


def test_the_files_of_a_green_gate(copy: Copy):
    """JUnit has every case and control; the page has a cell for every class, the lock and the scores."""
    (copy.folder / "scores.json").write_text(json.dumps(SCORES))
    done = copy.conform("--update-lock", "--junit", "a.xml", "--html", "a.html", "--mutants", "scores.json")
    assert done.code == 0
    root = ElementTree.parse(copy.folder / "a.xml").getroot()
    suites = {suite.get("name"): suite for suite in root}
    assert list(suites) == ["two (classes)", "three (classes)", "gate"]
    assert [case.get("name") for case in suites["gate"].findall("testcase")][-1] == "lock"
    assert not root.findall(".//failure")
    text = (copy.folder / lock_file.NAME).read_text()
    assert "[gate.mutants]\ncurated = { killed = 3, all = 4, " in text
    page = (copy.folder / "a.html").read_text()
    classes = sum(map(int, re.findall(r"classes = (\d+)", text)))
    assert page.count('<span class="covered"') == classes + 1  # and one in the legend
    assert "<h2>Mutants</h2>" in page
    assert '<tr class="never"><td>curated</td><td>loses-a-vote</td>' in page
    assert "prepared in memory only" in page


def test_a_score_of_other_mutants_than_there_are_is_below_the_lock(short: Copy):
    """An added mutant was never tried, a deleted one cannot be tried again."""
    (short.folder / "scores.json").write_text(json.dumps(SCORES))
    assert short.conform("--update-lock", "--mutants", "scores.json").code == 0
    folder = short.folder / "mutants"
    assert short.conform("--lock").code == 14
    folder.mkdir()
    scored = [one["id"] for one in SCORES["mutants"]]
    other = [*scored[1:], "m9"]
    for names, code, found in ((scored, 0, ""), (scored[1:], 14, "3"), (other, 14, "4 other")):
        (folder / "all.toml").write_text("".join(map(MUTANT.format, names)))
        done = short.conform("--lock")
        assert done.code == code
        line = f"mutants: curated: the lock has 3 of 4, this run {found} mutants, run `mutate`"
        assert (line in done.text) == (code == 14)
    (folder / "all.toml").write_text("[[mutant]]\n")
    assert short.conform("--lock").code == 2


def test_a_file_without_mutation_scores_is_an_error(copy: Copy):
    """Before anything is run."""
    (copy.folder / "scores.json").write_text('{"schema": "specchk.conform/1"}')
    for name in ("scores.json", "nowhere.json", "two_phase.spec"):
        assert copy.conform("--mutants", name).code == 2


def test_options_that_do_not_go_together_are_refused(copy: Copy):
    """A lock applies to the whole gate."""
    for options in (
        ("--lock", "--tier", "smoke"),
        ("--update-lock", "--model", "two"),
    ):
        assert copy.conform(*options).code == 2, options
