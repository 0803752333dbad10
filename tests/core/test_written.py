"""Values read from texts: the inverse of `show`, also above a horizon."""

from __future__ import annotations

from contextlib import suppress
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from agreement.both import program_of
from agreement.further_specs import further_spec
from specchk.compile.instantiate import instantiate
from specchk.explore.view import Viewer
from specchk.explore.written import value_of
from specchk.ir.program import Program
from specchk.ir.types import Type
from specchk.lang.frontend import check
from specchk.meaning.initial import initial_states
from specchk.meaning.step import Stepper
from specchk.meaning.undefined import BeyondHorizon, Faulty, Undefined
from specchk.meaning.values import Value, show
from specchk.search.verdict import Step

SEEDS = 40
POST = """\
spec post
sort Node
type Offset = nat upto 3
type Letter = Sent(from: Node, to: Node, at: Offset?) | Lost
var last : Offset = 0
action send(n: Node, m: Letter):
    require m is Sent
    last' = last + 1
view n in Node:
    log: last
    arrow send(n, m): (match m { Sent s: s.from, Lost: n }) -> (match m { Sent s: s.to, Lost: n })
model m:
    Node = {ann, bob}
"""


def values(program: Program) -> list[tuple[Type, Value]]:
    """Values of constants, of variables in some states, and of arguments of steps, with their types."""
    found = [(constant.type, constant.value) for constant in program.constants]
    with suppress(Undefined, BeyondHorizon, Faulty):
        for state in islice(initial_states(program), 3):
            found += zip([variable.type for variable in program.variables], state, strict=True)
            for action, args, after in Stepper(program).successors(state)[:20]:
                found += zip([param.type for param in program.actions[action].params], args, strict=True)
                found += zip([variable.type for variable in program.variables], after, strict=True)
    return found


def test_a_value_is_read_from_its_text(tmp_path: Path) -> None:
    """Of every kind of type, as random specs have them."""
    programs = [program_of(further_spec(Random(seed)), tmp_path) for seed in range(SEEDS)]
    found = {pair for program in programs if program is not None for pair in values(program)}
    assert len({type(kind) for kind, _ in found}) == 11
    assert [pair for pair in found if value_of(show(*pair[::-1]), pair[0]) != pair[1]] == []


@pytest.mark.parametrize("at", ["none", "some(2)", "some(10001)"])
def test_an_arrow_follows_an_argument_above_a_horizon(at: str) -> None:
    """The symbolic engine's steps have such numbers."""
    viewer = Viewer(instantiate(check("post.spec", POST)))
    step = Step("send", ("ann", f"Sent(at: {at}, from: bob, to: ann)"), (1,))
    assert viewer.arrow((0,), step) == (1, 0)
