"""Unsound shortcuts that a faster check of certificates might take: each accepts a wrong one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import z3
from test_certificates import problems
from zoned import program_of

from specchk.symbolic.certificates import checker
from specchk.symbolic.certificates.format import CertifiedPart, Constraint
from specchk.symbolic.certificates.states import WHOLE, PartGroup
from specchk.symbolic.differences import obligations
from specchk.symbolic.differences.obligations import Arrival, DifferenceDecider
from specchk.symbolic.differences.regions import DifferenceRegion
from specchk.symbolic.differences.terms import Formulas
from specchk.symbolic.induction.encode.program import State
from specchk.symbolic.induction.encode.recall import RecallingSystem
from specchk.symbolic.induction.encode.steps import ActionInstance

PAIR = """\
spec pair
type Offset = nat upto 3
var a : Offset = 0
var b : Offset = 0
var level : bool = false
action grow():
    a' = a + 1
action follow():
    require b < a
    b' = b + 1
action compare():
    level' = (a <= b)
deadlock ok
invariant behind: b <= a
model one:
    expect holds
"""


def part(level: bool, *rows: tuple[int, int, int]) -> CertifiedPart:
    """Offsets from 0 on, of which the differences of some are bounded."""
    constraints: list[Constraint] = [(((1, -1),), 0), (((2, -1),), 0)]
    constraints += [(((u, 1), (v, -1)), most) for u, v, most in rows]
    return CertifiedPart((None, None, level), tuple(constraints))


BEHIND = [part(level, (2, 1, 0)) for level in (False, True)]
ANY = [part(level) for level in (False, True)]
NEVER_BEHIND = [part(level, (1, 2, 0), (2, 1, 0)) for level in (False, True)]
# Without what follows from a difference of 1, at least from 1 on.
BEGIN = (*part(False).constraints, (((1, 1),), 0), (((2, 1),), 0))
NOT_LEVEL = [
    *[part(level, (2, 1, -1)) for level in (False, True)],
    *[CertifiedPart((None, None, level), BEGIN) for level in (False, True)],
]


def without_last(instances: Callable[..., list[ActionInstance]]) -> Callable[..., list[ActionInstance]]:
    """Planted: the last instance with an effect is left out."""

    def fewer(system: RecallingSystem, state: State, tag: str = "t.") -> list[ActionInstance]:
        every = instances(system, state, tag)
        last = max((n for n, one in enumerate(every) if one.outcomes), default=None)
        return [one for n, one in enumerate(every) if n != last]

    return fewer


def is_listed(own: DifferenceDecider, source: PartGroup, arrival: Arrival) -> bool:
    """Planted: the control part after a step exists, whatever its offsets are."""
    state = list(source.state)
    for (slot, position), value in arrival.entries:
        old = state[slot]
        state[slot] = value if position == WHOLE else (*old[:position], value, *old[position + 1 :])
    return tuple(state) in own.states.by_state


def two_below(made: Callable[..., Any]) -> Callable[..., Any]:
    """Whoever is below a number is one more below it."""

    def formula(own: Formulas, term: Any, is_true: bool) -> Any:
        is_below = term.decl().kind() == z3.Z3_OP_LT
        return made(own, term.arg(0) + 1 < term.arg(1) if is_below else term, is_true)

    return formula


SHORTCUTS: dict[str, tuple[list[CertifiedPart], object, str, object]] = {
    "a control part that is listed has the state": (NEVER_BEHIND, DifferenceDecider, "_covers", is_listed),
    "differences exclude all": (NEVER_BEHIND, Formulas, "exclude", lambda *_: True),
    "of some parts the first one is checked": (
        [*BEHIND, *ANY], Formulas, "exclude",
        lambda of, regions, formulas, exclude=Formulas.exclude: exclude(of, regions[:1], formulas)),
    "regions with equal rows are equal": (
        [*BEHIND, *ANY], DifferenceRegion, "projected",
        lambda region, names: tuple([region.at.get(name, (0, 0))[0] for name in names])),
    "a number below another is two below": (
        NOT_LEVEL, Formulas, "_made", two_below(Formulas._made)),
    "of the cases of a state the first one is checked": (
        BEHIND[:1], obligations, "joined", lambda parts, joined=obligations.joined: joined(parts)[:1]),
    "an action is left out": (
        BEHIND[:1], RecallingSystem, "instances", without_last(RecallingSystem.instances)),
    "initial states are left out": ([], checker, "initial_states", lambda _: []),
    "invariants are left out": (ANY, RecallingSystem, "kept", lambda *_: True),
}  # fmt: skip


def test_the_set_of_all_reachable_states_is_proved(tmp_path):
    """The others, of which each lacks a state or has one too many, are refused."""
    program = program_of(PAIR, tmp_path)
    assert problems(program, BEHIND) == []
    for parts, *_ in SHORTCUTS.values():
        assert problems(program, parts)


@pytest.mark.parametrize("shortcut", SHORTCUTS)
def test_an_unsound_shortcut_accepts_what_is_refused_here(shortcut, tmp_path, monkeypatch):
    """So the refusals here have the right reason."""
    parts, *patch = SHORTCUTS[shortcut]
    monkeypatch.setattr(*patch)
    assert problems(program_of(PAIR, tmp_path), parts) == []
