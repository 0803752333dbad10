"""Reads of a control part: the places of maps that an instance reads, and no others."""

from __future__ import annotations

from itertools import product

import pytest
from zoned import program_of

from specchk.meaning.moves import Moves
from specchk.meaning.paths import ForkPath
from specchk.symbolic.recording.reads import PartNumbers
from specchk.symbolic.zones.zones import Shapes

SPEC = """\
spec reads
sort Node
type Offset = nat upto 3
type Epoch = {keys}
var up : Node -> bool = {{ n: true for n in Node }}
var at : Node -> Epoch = {{ n: {low} for n in Node }}
var sent : Epoch -> bool = {{ e: true for e in Epoch }}
var end : Offset = 0
action own(n: Node, e: Epoch):
    require up[n] and sent[e]
    end' = end + 1
action next(n: Node):
    require sent[at[n]] and up[n]
    up'[n] = false
action all(n: Node):
    require up[n] and (forall m in Node: up[m])
    end' = 0
deadlock ok
model one:
    Node = 2
"""


def picks(keys, low, folder):
    """What each instance of the spec reads of states of all values, by action and arguments."""
    program = program_of(SPEC.format(keys=keys, low=low), folder)
    numbers, shapes = PartNumbers(program), Shapes(program)
    bools, epochs = list(product((0, 1), repeat=2)), list(product((low, low + 1), repeat=2))
    values = list(product(bools, epochs, bools))
    states = [(state, numbers.of(shapes.split((*state, 0))[0])) for state in values]
    for index, args in Moves(program, ForkPath()).instances:
        action = program.actions[index]
        pick = numbers.instance(action, args)
        yield action.name, args, [(state, pick(known)) for state, known in states]


@pytest.mark.parametrize(("keys", "low"), [("0..1", 0), ("1..2", 1)])
def test_states_that_differ_in_what_is_read_have_other_numbers(keys, low, tmp_path):
    """States that differ in other places of a map only have the same, where its keys are positions."""
    for name, args, read in picks(keys, low, tmp_path):
        for (up, at, sent), numbers in read:
            for (up2, at2, sent2), numbers2 in read:
                is_own = up[args[0]] == up2[args[0]]
                if name == "own":
                    is_equal = is_own and (sent[args[1]] == sent2[args[1]] if low == 0 else sent == sent2)
                elif name == "next":
                    is_equal = is_own and sent == sent2 and at[args[0]] == at2[args[0]]
                else:
                    is_equal = up == up2
                assert (numbers == numbers2) == is_equal, (name, args)
