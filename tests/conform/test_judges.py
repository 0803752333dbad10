"""A lock has what judges: a changed binding or tracing is seen, and must notice the planted flaws again."""

from __future__ import annotations

from pathlib import Path

import pytest
from two_phase_copy import Copy

from laws.sources import ROOT
from specchk.conform.contract.load import load_binding
from specchk.conform.work.judges import changed_between, digests_of, judges_of

TEXT = '''
"""About the file."""
LIMIT = 3


class Bound(Base):
    """About the class."""

    unobserved = {}

    @action("read")
    def read(self, system, key):
        """About the function."""
        if key is None:
            return Refused("no key")
        return Accepted()


def helper(value):
    def inner():
        return value

    return inner
'''
REPLOG = ROOT / "conformance"
# The eight of the report of which four passed the lock, and two more: file, text, weaker text, name.
WEAKER = [
    ("replog_state.py", '        "hw": state.log.hw,', "", "of replog_state.py"),
    ("replog_rules.py", "BadSpec(", "(lambda *_: BadSpec)(", "replog_rules.py"),
    ("binding.py", "Refused(", "Impossible(", "of binding.py"),
    ("replog_rules.py", "GATE = (", "GATE = (*", "outside of functions of replog_rules.py"),
    ("replog_controlled.py", "        raise OutsideSpec(", "        return (", "of replog_controlled.py"),
    ("replog_controlled.py", "return Accepted()", "return None", "of replog_controlled.py"),
    ("replog_controlled.py", "in log.epochs.entries:", "in ():", "of replog_controlled.py"),
    ("tracing.py", '"hw"', '"epoch"', "of tracing.py"),
    ("../impl/replog/sim/recording/record_state.py", "hw", "leo", "record_state.py"),
    ("on_files.py", "return ", "return None and ", "of on_files.py"),
]


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("LIMIT = 3", "LIMIT = 3  # records"), ("\n\n\n", "\n\n"), ("LIMIT = 3", "LIMIT  =  (3)"),
        ('"""About the function."""', '"""Something else."""'), ('    """About the class."""\n\n', ""),
        ('"""About the file."""', ""), ('Refused("no key")', "Refused('no key')"),
    ],
)  # fmt: skip
def test_layout_comments_and_docstrings_do_not_count(was: str, now: str):
    assert was in TEXT
    assert digests_of(TEXT.replace(was, now)) == digests_of(TEXT)


@pytest.mark.parametrize(
    ("was", "now", "name"),
    [
        ("LIMIT = 3", "LIMIT = 4", "outside of functions of a.py"),
        ("unobserved = {}", 'unobserved = {"n": ""}', "Bound of a.py"),
        ("class Bound(Base)", "class Bound(Other)", "Bound of a.py"),
        ('@action("read")', '@action("seek")', "Bound.read of a.py"),
        ("key is None", "not key", "Bound.read of a.py"),
        ("Accepted()", "None", "Bound.read of a.py"),
        ("        return value", "        return None", "helper of a.py"),
        ("def helper", "def other", "helper of a.py, other of a.py"),
    ],
)
def test_a_change_is_named_by_its_function(was: str, now: str, name: str):
    assert was in TEXT
    before, after = {"a.py": digests_of(TEXT)}, {"a.py": digests_of(TEXT.replace(was, now))}
    assert ", ".join(changed_between(before, after)) == name


def test_what_judges_replog_is_not_replog():
    """The binding, its imports, the tracing and what records; nothing else of the implementation."""
    judges = judges_of(REPLOG / "binding.py", load_binding(REPLOG / "binding.py"))
    own = {
        "binding.py",
        "replog_cluster.py",
        "replog_state.py",
        "tracing.py",
        "cluster_tracing.py",
        "on_files.py",
    }
    assert own < judges.keys()
    assert all("/recording/" in name for name in judges if name.startswith(".."))


@pytest.mark.parametrize(("file", "was", "now", "name"), WEAKER, ids=lambda part: str(part)[:20])
def test_a_weakened_binding_of_replog_is_named(file: str, was: str, now: str, name: str):
    judges = judges_of(REPLOG / "binding.py", load_binding(REPLOG / "binding.py"))
    text = (REPLOG / file).read_text(encoding="utf-8")
    assert was in text
    weaker = {**judges, file: digests_of(text.replace(was, now, 1))}
    (changed,) = changed_between(judges, weaker)
    assert name in changed


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    """A gate of one small suite with its lock, and two planted flaws."""
    copy = Copy(tmp_path)
    copy.shorten()
    (tmp_path / "mutants").mkdir()
    (tmp_path / "mutants" / "all.toml").write_text(MUTANTS)
    (tmp_path / "mutants" / "members.py").write_text(MEMBERS)
    return copy


MEMBERS = """
from specchk.conform.contract.binding import At
from specchk.conform.mutation.members import SuiteMember

MEMBERS = (SuiteMember("two", At("two", {"MaxCrashes": "0"})),)
"""
MUTANTS = """
[[mutant]]
id = "half-of-the-votes"
flaw = "F1"
story = "Half of the votes are enough."
module = "two_phase"
old = "self.votes == self.participants"
new = "2 * len(self.votes) >= len(self.participants)"

[[mutant]]
id = "gives-up-in-doubt"
flaw = "F2"
story = "Who has voted gives up."
module = "two_phase"
old = "self.state == WORKING and self._enter(ABORTED)"
new = "self.state in (WORKING, PREPARED) and self._enter(ABORTED)"
"""


@pytest.mark.system
def test_a_changed_binding_is_below_the_lock_until_it_is_accepted(copy: Copy):
    """What it no longer notices is printed, and kept; the binding as it was is another change."""
    first = copy.run("specchk", "conform", "binding.py", "--update-lock")
    assert first.code == 0, first.text
    assert copy.conform("--lock").code == 0
    copy.edit("two_phase.py", "self.votes == self.participants", "self.participants == self.votes")
    assert copy.conform("--lock").code == 0
    copy.edit("two_phase.py", "self.participants == self.votes", "self.votes == self.participants")
    # It calls impossible what the implementation must refuse.
    asked = 'self.ask(world, name, "give_up")'
    copy.edit("binding.py", asked, f'Impossible("no") if name in world.voted else {asked}')
    red = copy.conform("--lock")
    assert red.code == 14
    assert red.text.startswith("below its lock: the binding changed: TwoPhaseBinding.give_up of binding.py\n")
    assert "--update-lock tries them first" in red.text
    accepted = copy.run("specchk", "conform", "binding.py", "--update-lock")
    assert accepted.code == 0, accepted.text
    assert "accepted: the binding changed: TwoPhaseBinding.give_up of binding.py\n" in accepted.text
    assert "the changed binding notices 1 of 2 planted flaws\n" in accepted.text
    assert "NO LONGER NOTICED: gives-up-in-doubt; see `specchk mutate" in accepted.text
    assert 'unnoticed = ["gives-up-in-doubt"]' in (copy.folder / "specchk.lock").read_text()
    assert copy.conform("--lock").code == 0


@pytest.mark.system
def test_modules_from_elsewhere_are_loaded_with_each_planted_flaw(copy: Copy):
    """A binding may import what names classes of the implementation from any folder."""
    (copy.folder / "beside").mkdir()
    kinds = "from two_phase import Participant\n\nKINDS = {Participant: None}\n"
    (copy.folder / "beside" / "kinds.py").write_text(kinds)
    found = (
        "import sys\nsys.path.insert(0, __file__.replace('binding.py', 'beside'))\nfrom kinds import KINDS\n"
    )
    copy.edit("binding.py", "from two_phase import UNDECIDED", f"{found}from two_phase import UNDECIDED")
    making = "if name == LEADER else "
    copy.edit("binding.py", making, f"{making}KINDS[Participant] or ")
    done = copy.run("specchk", "conform", "binding.py", "--update-lock")
    assert done.code == 0, done.text


def test_a_control_that_no_longer_fits_does_not_stop_the_gate(copy: Copy):
    """With another one the gate holds and says what to do; without any it shows nothing."""
    two = '"self.log.force()", "pass", "two"),\n'
    more = '        BadCode("votes twice", Participant.prepare, "self.state == WORKING", "True", "two"),\n'
    copy.edit("binding.py", two, two + more)
    (copy.folder / "mutants" / "all.toml").unlink()
    assert copy.conform("--update-lock").code == 0
    forced = "        self.log.write(state)\n        self.log.force()\n"
    copy.edit("two_phase.py", forced, "        self.written(state)\n")
    copy.edit(
        "two_phase.py",
        "    def _enter(",
        f"    def written(self, state: str) -> None:\n{forced}\n    def _enter(",
    )
    done = copy.conform("--lock", "--junit", "a.xml")
    assert done.code == 0, done.text
    assert (
        "code `prepared in memory only`: OUTDATED, so not tried; rewrite it: `self.log.force()`" in done.text
    )
    assert "controls: 2 of 3 planted errors detected" in done.text
    assert "outdated: `self.log.force()`" in (copy.folder / "a.xml").read_text()
    copy.edit("two_phase.py", "return self.state == WORKING and self._enter(PREPARED)", "return self.voted()")
    voted = "    def voted(self) -> bool:\n        return self.state == WORKING and self._enter(PREPARED)\n\n"
    copy.edit("two_phase.py", "    def _enter(", f"{voted}    def _enter(")
    done = copy.conform("--lock")
    assert done.code == 21
    assert "all 2 controls in the code are outdated: `prepared in memory only`:" in done.text
