"""A member of the gate that dies, hangs or fails by itself kills no mutant; recordings are members, too."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from bank import SPEC
from bank_tracing import moved, recorded
from till_folder import build, mutate

from specchk.conform.members import Bench, Kill, Reporter
from specchk.conform.recorded import Recorded
from specchk.lang.frontend import check

# -- members that are wrong themselves

MEMBERS = """
import os
from threading import Event
from specchk.conform.members import Outside

def dies(reporter):
    reporter.tell("first", "")
    os._exit(3)

def loops(reporter):
    reporter.ask("first", lambda: [None for _ in iter(int, 1)] and "")

def hangs(reporter):
    Event().wait()

def fails(reporter):
    reporter.tell("first", "is wrong")
    reporter.tell("second", "is wrong")

def passes(reporter):
    reporter.tell("first", "")

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
UNCHANGED = "below the mark: the implementation as it is"
WORDS = {
    "dies": f"{UNCHANGED} did not come through dies (exit code 3)",
    "loops": f"{UNCHANGED} fails loops first: no end within 100000 loops and calls",
    "fails": f"{UNCHANGED} fails fails first: is wrong",
}


@pytest.fixture(scope="module")
def till(tmp_path_factory) -> str:
    return str(build(tmp_path_factory.mktemp("till"), MEMBERS, MUTANT) / "till_binding.py")


@pytest.mark.parametrize("name", WORDS)
def test_a_member_that_does_not_pass_unchanged_ends_the_campaign(till, name):
    """With what it said; no mutant is run, none is killed."""
    code, text = mutate(till, "--members", f"passes,{name}", "--test-work", "100000", "--no-cache")
    assert (code, text.startswith(WORDS[name])) == (14, True), text
    assert "0 of 0 killed" in text


def test_a_member_that_hangs_is_stopped_and_decides_nothing(till):
    """What waits for ever is no loop; a deadline ends it, and says so with an exit code of its own."""
    hangs = ("--members", "hangs", "--max-seconds", "0.2", "--no-cache")
    code, text = mutate(till, *hangs)
    assert (
        code,
        text.startswith("inconclusive: the implementation as it is did not come through hangs"),
    ) == (
        20,
        True,
    ), text
    code, text = mutate(till, *hangs, "--no-control")
    assert (code, text.startswith("inconclusive: 1 not decided: sleepless (stopped after ")) == (20, True), (
        text
    )


def test_a_member_that_dies_kills_nothing(till):
    """Without the control, too: its mutant is undecided, and there is no score."""
    code, text = mutate(till, "--members", "dies", "--no-cache", "--no-control")
    assert code == 14
    assert text.startswith(
        "below the mark: 1 not decided: sleepless (lost: exit code 3) (curated mutants: 0 of"
    )


# -- recordings


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
        "seed 0:2: the recording ends without its trailer, so it was cut off",
    ),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_recording_is_a_test_that_its_spec_decides(name, tmp_path: Path, monkeypatch):
    """It passes if all of its events are explained, and if there are any."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "bank.spec").write_text(SPEC)
    (tmp_path / "written_tracing.py").write_text(
        "from bank_tracing import BankTracing\n\nclass Written(BankTracing):\n    pass\n"
    )
    kills: list[Kill] = []
    reporter = Reporter(0, {}, kills.append, member="recordings")
    bench = Bench(tmp_path, "", tmp_path / "bank.spec", check(str(tmp_path / "bank.spec")))
    found, wanted = RUNS[name]
    member = Recorded("recordings", "written_tracing.py", lambda seed: found, range(1))
    assert member.hold(bench, (), reporter)
    assert [(kill.test, kill.reason) for kill in kills] == ([("seed 0", wanted)] if wanted else [])
    monkeypatch.delitem(sys.modules, "written_tracing")
