"""The tracer and the stepper agree on random specs."""

from __future__ import annotations

from pathlib import Path

import pytest

from agreement.both import of_seed
from specchk.meaning.initial import initial_states
from specchk.meaning.step import Stepper
from specchk.meaning.tracing import Tracer
from specchk.meaning.undefined import Faulty

MOST = 40


@pytest.mark.parametrize("seed", range(60))
def test_the_tracer_agrees_on_random_specs(seed: int, tmp_path: Path):
    """The same successors in the same order, in every state in which everything is defined."""
    program = of_seed(seed, tmp_path)
    if program is None:
        return
    stepper, tracer = Stepper(program), Tracer(program)
    states = list(initial_states(program))[:MOST]
    for state in states:
        try:
            found = stepper.successors(state)
        except Faulty:
            continue
        assert [
            (one.action, one.args, way.after) for one in tracer.look(state) for way in one.reached
        ] == found
        states += [after for _, _, after in found if len(states) < MOST and after not in states]
