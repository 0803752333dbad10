"""The simulator has teeth: it finds every planted bug, by a promise broken, at a known seed."""

from __future__ import annotations

import pytest
from planted import BUGS, planted

from replog.core.protocol import CURRENT
from replog.sim.profiles import profile
from replog.sim.run import Simulation

NAMES = [bug.name for bug in BUGS]


def test_there_are_bugs_enough_and_each_has_its_name():
    """At least fifteen different bugs, each named once."""
    assert len(set(NAMES)) == len(NAMES) >= 15


@pytest.mark.parametrize("bug", BUGS, ids=NAMES)
def test_a_planted_bug_is_found_and_the_same_seed_holds_without_it(bug):
    """With the bug a promise is broken; without it the very same run keeps all of them."""
    with planted(bug) as rules:
        broken = Simulation(bug.seed, profile(bug.profile), rules=rules).run()
    assert broken.is_failure
    assert broken.oracle != "no-exception"
    whole = Simulation(bug.seed, profile(bug.profile), rules=CURRENT).run()
    assert whole.text().count("all oracles hold") == 1


def test_planting_leaves_nothing_behind():
    """After a bug was planted and pulled out, runs are what they were."""
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
                if Simulation(s, profile(bug.profile), rules=rules).run().is_failure
            ),
            None,
        )
    assert found is not None
