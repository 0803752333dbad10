"""Steps of named instances are those of the stepper, in any order; ways are read once."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from random import Random

import pytest
from bank import bank

from specchk.compile.instantiate import Instance, instantiate
from specchk.conform.contract.tracing import Call, Repeated
from specchk.conform.recordings.events.reading import CalledInstances, RepeatedInstances
from specchk.conform.recordings.events.steps import NamedSteps
from specchk.lang.frontend import check
from specchk.meaning.initial import initial_states
from specchk.meaning.step import Stepper
from specchk.meaning.undefined import Faulty
from specchk.meaning.values import State

# Undefined and beyond a horizon, before and after a write; several ways, two places of one variable.
WRITES = """\
spec writes
type Count = nat upto 2
var count : Count = 0
var items : seq[0..2] upto 3 = [0, 1, 2]
action put(at: 0..3, value: 0..3):
    count' = count + 1
    either:
        items'[at] = value
    or:
        require value > 0
        items'[0] = 0
        items'[at] = value
action clear():
    count' = 0
model m:
    expect holds
"""


def states_by(stepper: Stepper, state: State, number: int, args: tuple[int, ...]) -> list[State]:
    try:
        return [after for _, _, after in stepper.of_instance(state, number, args)]
    except Faulty:
        return []


def writes() -> Instance:
    return instantiate(check("writes.spec", WRITES))


@pytest.mark.parametrize("made", [bank, writes])
def test_named_steps_are_those_of_the_stepper(made: Callable[[], Instance]):
    """After steps that are undefined, or cut by horizons, the next ones are as they are alone."""
    program = made().program
    stepper, named = Stepper(program), NamedSteps(program)
    calls = [(number, args) for number, domains in enumerate(stepper._domains) for args in product(*domains)]
    states = list(initial_states(program))
    for state in states:
        for number, args in calls:
            states += [new for new in states_by(stepper, state, number, args) if new not in states]
    random = Random(7)
    faulty = 0
    for _ in range(400):
        before = random.choices(states, k=2)
        number = random.randrange(len(stepper._domains))
        instances = [args for of, args in random.choices(calls, k=9) if of == number]
        expected = []
        for state in before:
            for args in instances:
                after = states_by(stepper, state, number, args)
                faulty += not after
                expected += after
        assert named.after(before, number, instances) == expected
    assert faulty
    assert not named.counts or set(named.counts) == {0}


def test_ways_that_last_are_read_once():
    """The same ways, and the same call alone, give the same object."""
    called = CalledInstances(bank().program)
    fixed = ((Call("transfer", ("a1", "a2")),), (Repeated(Call("toss"), 0, 2),))
    expected = (((0, [(0, 1)]),), (RepeatedInstances((1, [()]), 0, 2),)), True
    assert called.of_ways(fixed) == called.of_ways(fixed) == expected
    assert called.of_ways(fixed) is called.of_ways(fixed)
    assert called.changing == 0
    alone = Call("sleep")
    assert called.of_ways(((alone,),)) is called.of_ways(((alone,),))
    assert called.of_ways(((alone,),)) == ((((2, [()]),),), False)


def test_whether_ways_may_be_no_step():
    """No step at all, or calls that may be none of them."""
    called = CalledInstances(bank().program)
    toss, none, some = Call("toss"), Repeated(Call("toss"), 0, 1), Repeated(Call("toss"), 1, 2)
    for ways, expected in (
        (((),), True), (((toss,),), False), (((none,),), True), (((some,),), False),
        (((toss,), ()), True), (((none, some),), False), (((none, none),), True),
    ):  # fmt: skip
        assert called.of_ways(ways)[1] is expected
