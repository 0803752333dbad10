"""The simulator has power: it finds every planted bug, by a broken promise, at a known seed."""

from __future__ import annotations

import re

import pytest
from planted import BUGS
from planting import planted

from replog.sim.faults.profiles import profile
from replog.sim.oracles import promises
from replog.sim.oracles.promises import ORACLES, ViolationError
from replog.sim.run import Simulation

MAX_EVENTS = 50_000
"""Several times what a run takes, so that one that never ends is found soon."""
NAMES = [bug.name for bug in BUGS]


def test_there_are_bugs_enough_and_each_has_its_name():
    """At least fifteen different bugs, each named once."""
    assert len(set(NAMES)) == len(NAMES) >= 15


@pytest.mark.parametrize("bug", BUGS, ids=NAMES)
def test_a_planted_bug_is_found_and_the_same_seed_holds_without_it(bug):
    """With the bug the promise of its entry is broken; without it the very same run keeps all of them."""
    with planted(bug) as rules:
        broken = Simulation(bug.seed, profile(bug.profile), rules=rules, max_events=MAX_EVENTS).run()
    assert broken.oracle == bug.oracle
    whole = Simulation(bug.seed, profile(bug.profile), rules=bug.whole).run()
    assert whole.text().count("all oracles hold") == 1


@pytest.mark.parametrize("oracle", ORACLES)
def test_every_oracle_has_been_seen_to_fail_within_fifty_seeds(oracle):
    """For each promise there is a bug in the list that breaks it, at a seed below 50."""
    assert [bug.name for bug in BUGS if bug.oracle == oracle and bug.seed < 50]


def test_the_table_of_promises_is_the_list_of_oracles():
    """Every oracle has its line in the module's docstring, in the order of the list; there is no other."""
    names = re.findall(r"^    ([a-z-]+) ", promises.__doc__, re.MULTILINE)
    assert tuple(names) == ORACLES


def test_a_promise_that_is_not_in_the_table_cannot_be_broken():
    """A misspelt oracle is a mistake of the simulator, found when it is raised."""
    with pytest.raises(AssertionError, match="hw-monotonous"):
        ViolationError("hw-monotonous", "")


def test_planting_leaves_nothing_behind():
    """After a bug was planted and removed, runs are unchanged."""
    before = Simulation(3, profile("all")).run()
    for bug in BUGS:
        with planted(bug):
            pass
    assert Simulation(3, profile("all")).run() == before


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=NAMES)
def test_a_search_from_seed_zero_finds_a_planted_bug(bug):
    """A bounded search, seed after seed, finds each bug no later than the seed in its entry."""
    with planted(bug) as rules:
        found = next(
            (
                s
                for s in range(bug.seed + 1)
                if Simulation(s, profile(bug.profile), rules=rules, max_events=MAX_EVENTS).run().is_failure
            ),
            None,
        )
    assert found is not None
