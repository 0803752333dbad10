"""The choices that replog never makes, explored again with the present replog.

A changed replog does not put the gate below its lock, or every refactoring would be an alarm; and exploring
takes longer than the gate has.  So it is here that a list is noticed which is no longer true.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from specchk.conform.contract.load import load_binding
from specchk.conform.gate.chosen import explored
from specchk.conform.gate.lock import of_spec
from specchk.conform.gate.tiers import BUDGETS, parts_of, run_parts
from specchk.conform.work.lock_file import NAME, Choices, read
from specchk.lang.frontend import check

CONFORMANCE = Path(__file__).parents[2] / "conformance"
REFRESH = "specchk conform conformance/binding.py --tier gate --update-choices"


@pytest.fixture(scope="module")
def known() -> Choices:
    choices = read(CONFORMANCE / NAME).choices
    assert choices is not None
    return choices


@pytest.fixture(scope="module")
def again(known: Choices) -> Choices:
    """The same suites, explored with today's replog."""
    cls = load_binding(CONFORMANCE / "binding.py")
    checked = check(str(CONFORMANCE / cls.spec))
    every = parts_of(cls, checked, [at for at in cls.gate if at.suite == "classes"])
    parts = [part for part in every if part.label in known.suites]
    assert len(parts) == len(known.suites), REFRESH
    results = run_parts(parts, BUDGETS["gate"])
    about = Choices(of_spec(checked)[0], known.implementation, known.suites)
    return explored(parts, results, BUDGETS["gate"], about)


@pytest.mark.slow
def test_replog_makes_the_choices_that_are_listed(known: Choices, again: Choices):
    """The same classes are never taken, and the others on the same paths."""
    assert again == known, REFRESH


def test_every_list_has_a_reason(known: Choices):
    """By a person: why replog never does what the spec allows."""
    assert [label for label, listed in known.suites.items() if not listed.reason] == []
