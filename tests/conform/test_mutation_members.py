"""A member of the gate that dies, hangs or fails by itself kills no mutant; recordings are members, too."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from bank import SPEC
from bank_tracing import moved, recorded
from msgspec.structs import replace
from till_folder import build, mutate

from laws.sources import ROOT
from specchk.conform.contract.binding import At
from specchk.conform.mutation.members import Bench, Kill, Outside, Reporter, SuiteMember, listed
from specchk.conform.mutation.mutants import Mutant
from specchk.conform.mutation.mutate import MutationCampaign, Settings, shown_first
from specchk.conform.mutation.outcomes import Baseline
from specchk.conform.mutation.patches import Patch
from specchk.conform.mutation.recorded import Recorded
from specchk.conform.recordings.validate import Explained, Validator
from specchk.lang.frontend import check

MEMBERS = """
import os
from threading import Event
from specchk.conform.mutation.members import Outside

def dies(reporter):
    reporter.note("first", "")
    os._exit(3)

def loops(reporter):
    reporter.check("first", lambda: [None for _ in iter(int, 1)] and "")

def hangs(reporter):
    Event().wait()

def fails(reporter):
    reporter.note("first", "is wrong")
    reporter.note("second", "is wrong")

def passes(reporter):
    reporter.note("first", "")

MEMBERS = tuple(Outside(one.__name__, one, ("till",)) for one in (passes, dies, loops, hangs, fails))
"""
MUTANT = """
[[mutant]]
id = "sleepless"
flaw = "none"
story = "A story."
module = "till.drawer"
old = "self.days += 1"
new = "self.days += 0"
"""
UNCHANGED = "below the mark: the unchanged implementation"
WORDS = {
    "dies": f"{UNCHANGED} did not finish dies (exit code 3)",
    "loops": f"{UNCHANGED} fails loops first: it did not end within 100000 loops and calls",
    "fails": f"{UNCHANGED} fails fails first: is wrong",
}


@pytest.fixture(scope="module")
def till(tmp_path_factory) -> str:
    return str(build(tmp_path_factory.mktemp("till"), MEMBERS, MUTANT) / "till_binding.py")


@pytest.mark.system
@pytest.mark.parametrize("name", WORDS)
def test_a_member_that_does_not_pass_unchanged_ends_the_campaign(till, name):
    """With its output; no mutant is run, none is killed."""
    code, text = mutate(till, "--members", f"passes,{name}", "--test-work", "100000", "--no-cache")
    assert (code, text.startswith(WORDS[name])) == (14, True), text
    assert "0 of 0 killed" in text


@pytest.mark.system
def test_a_member_that_hangs_is_stopped_and_decides_nothing(till):
    """A wait that lasts forever is not a loop; a deadline ends it, with its own exit code."""
    hangs = ("--members", "hangs", "--max-seconds", "0.2", "--no-cache")
    code, text = mutate(till, *hangs)
    assert (
        code,
        text.startswith("inconclusive: the unchanged implementation did not finish hangs"),
    ) == (
        20,
        True,
    ), text
    code, text = mutate(till, *hangs, "--no-control")
    assert (code, text.startswith("inconclusive: 1 not decided: sleepless (stopped after ")) == (20, True), (
        text
    )


@pytest.mark.system
def test_a_member_that_dies_kills_nothing(till):
    """Without the control, too: its mutant is undecided, and there is no score."""
    code, text = mutate(till, "--members", "dies", "--no-cache", "--no-control")
    assert code == 14
    assert text.startswith(
        "below the mark: 1 not decided: sleepless (lost: exit code 3) (curated mutants: 0 of"
    )


@pytest.mark.system
def test_a_pattern_that_selects_no_member_is_rejected(till):
    """Without members every mutant would survive; each of several patterns selects some."""
    code, text = mutate(till, "--members", "passes,no such*", "--no-cache")
    assert (code, text.startswith("error: no member is named `no such*`; there are: passes, ")) == (
        30,
        True,
    ), text


READ = {
    "the implementation": "till/drawer.py",
    "the binding": "till_binding.py",
    "a module that the binding imports": "shelf/helper.py",
    "the spec": "bank.spec",
    "the members": "mutants/members.py",
    "what members watch": "data/scenario.txt",
}
WATCHING = (
    MEMBERS
    + """
from pathlib import Path
WATCHED = (Path(__file__).parents[1] / "data" / "scenario.txt",)
"""
)


@pytest.fixture
def campaign(tmp_path: Path, monkeypatch):
    """A campaign on the toy, whose binding imports a module without mutants."""
    home = build(tmp_path, WATCHING, MUTANT)
    for name in ("data/scenario.txt", "shelf/helper.py", "shelf/__init__.py"):
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text("")
    bound = home / "till_binding.py"
    bound.write_text(f"import shelf.helper\n{bound.read_text()}")
    monkeypatch.setattr(sys, "path", [str(home), *sys.path])
    before = set(sys.modules)
    bench = Bench(home, bound.name, home / "bank.spec", check(str(home / "bank.spec")))
    bench.binding()
    yield MutationCampaign(bench, home / "mutants", {"till"}, Settings())
    for name in set(sys.modules) - before:
        if name.split(".")[0] in ("till", "till_binding", "members", "shelf"):
            del sys.modules[name]


@pytest.mark.parametrize("what", READ)
def test_an_outcome_is_of_all_that_it_depends_on(campaign, what):
    """After any change, earlier outcomes are no longer valid; after reverting it, they are."""
    path = campaign.bench.folder / READ[what]
    before, text = campaign._world(), path.read_text()
    path.write_text(f"{text}\n")
    assert campaign._world() != before
    path.write_text(text)
    assert campaign._world() == before


def test_what_is_asked_of_a_mutant_is_part_of_its_outcome_s_name(campaign):
    """Its patches, the members, and the permitted work of a test: another request has another outcome."""
    mutant = Mutant("m", "none", "A flaw.", (Patch("till.drawer", "return 1", "return 2"),))
    ground = Baseline((), (), 1, {"passes": {"till.drawer": frozenset(range(99))}}, {"passes": 10})
    asked = [campaign._asked(mutant)]
    campaign.members = campaign.members[:1]
    asked.append(campaign._asked(mutant))
    for work in (10, 10**9):
        campaign.ground = replace(ground, work={"passes": work})
        asked.append(campaign._asked(mutant))
    asked.append(campaign._asked(replace(mutant, patches=(replace(mutant.patches[0], new="return 3"),))))
    assert len({campaign._key("world", one) for one in asked}) == len(asked)


def test_the_tests_that_hold_replog_are_watched_with_what_they_read():
    """A changed scenario would otherwise be compared with the outcomes of the old one."""
    folder = ROOT / "tests" / "replog"
    found = set(listed(ROOT / "conformance" / "mutants", "WATCHED"))
    read = [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    read += (ROOT / "impl" / "replog" / "stories").iterdir()
    assert len([path for path in read if path.suffix != ".py"]) > 10
    assert {*read, ROOT / "tests" / "conftest.py", ROOT / "pyproject.toml"} <= found


def lines(*events: dict) -> Sequence[str]:
    found = recorded(*events)
    return [json.dumps(one) for one in (found.header, *found.events, {"end": True, "events": len(events)})]


RUNS = {
    "all of it is explained": (lines(moved("a1", "a2", a1=1)), ""),
    "a wrong balance": (
        lines(moved("a1", "a2"), moved("a1", "a2", a1=1)),
        "event 2 (moved) is not explained",
    ),
    "nothing": (lines(), "0 of 0 events were explained"),
    "an end that is lost": (
        lines(moved("a1"))[:-1],
        "seed 0:2: the recording ends without its trailer, so it was truncated",
    ),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_recording_is_a_test_that_its_spec_decides(name, tmp_path: Path, monkeypatch):
    """It passes if all of its events are explained, and if there are any."""
    found, wanted = RUNS[name]
    kills = tried_on(found, tmp_path, monkeypatch)
    assert [(kill.test, kill.reason) for kill in kills] == ([("seed 0", wanted)] if wanted else [])
    assert not any(kill.is_endless for kill in kills)


def tried_on(found: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Kill]:
    """The failures of a member with one recording of these lines."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    (folder / "bank.spec").write_text(SPEC)
    (folder / "written_tracing.py").write_text(
        "from bank_tracing import BankTracing\n\nclass Written(BankTracing):\n    pass\n"
    )
    kills: list[Kill] = []
    reporter = Reporter(0, {}, kills.append, member="recordings")
    bench = Bench(folder, "", folder / "bank.spec", check(str(folder / "bank.spec")))
    member = Recorded("recordings", "written_tracing.py", lambda seed: found, range(1))
    assert member.hold(bench, (), reporter)
    monkeypatch.delitem(sys.modules, "written_tracing")
    return kills


def test_a_recording_that_is_too_much_to_explain_is_endless_work(tmp_path: Path, monkeypatch):
    """The spec has not refused it: it is counted apart from kills, like a test that does not end."""
    monkeypatch.setattr(Validator, "explain", lambda *_: Explained(gave_up="event 1 (moved): too many"))
    kills = tried_on(lines(moved("a1")), tmp_path, monkeypatch)
    assert [(kill.reason, kill.is_endless) for kill in kills] == [("event 1 (moved): too many", True)]


@pytest.mark.parametrize(
    ("model", "order"),
    [
        ("large", ["recordings", "classes large", "simulation", "walks large", "classes small"]),
        ("", ["recordings", "classes small", "simulation", "classes large", "walks large"]),
    ],
)
def test_suites_over_the_model_that_shows_a_mutant_come_first(model, order):
    """Members other than suites keep their place, and so do all suites if no model is named."""
    outside = {name: Outside(name, print, ()) for name in ("recordings", "simulation")}
    small, large = SuiteMember("classes small", At("small")), SuiteMember("classes large", At("large"))
    walks = SuiteMember("walks large", At("large", suite="walks"))
    members = [outside["recordings"], small, outside["simulation"], large, walks]
    assert [member.name for member in shown_first(members, model)] == order
