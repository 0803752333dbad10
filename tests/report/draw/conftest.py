"""Random behaviours of all spec files, and their pictures."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

from specchk.compile.instantiate import Instance, instantiate
from specchk.lang.frontend import CheckedSpec, check
from specchk.meaning.initial import initial_states
from specchk.meaning.step import Stepper
from specchk.meaning.undefined import Faulty
from specchk.meaning.values import show
from specchk.search.verdict import Step, Trace

ROOT = Path(__file__).parents[3]
SPECS = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "spec").rglob("*.spec"))


@cache
def checked(spec: str) -> CheckedSpec:
    """A spec file, checked once for all pictures of its models."""
    return check(str(ROOT / spec))


@cache
def models(spec: str) -> tuple[str, ...]:
    """The models of a spec file; a base file has none."""
    return tuple(checked(spec).spec.models)


@cache
def instance(spec: str, model: str) -> Instance:
    return instantiate(checked(spec), model)


def walk(found: Instance, seed: int, steps: int) -> Trace:
    """A random behaviour."""
    chance, stepper = random.Random(seed), Stepper(found.program)
    state = chance.choice(initial_states(found.program))
    trace = Trace(state, ())
    for _ in range(steps):
        try:
            successors = stepper.successors(trace.last)
        except Faulty:
            break
        if not successors:
            break
        index, args, after = chance.choice(successors)
        action = found.program.actions[index]
        shown = tuple(show(arg, param.type) for arg, param in zip(args, action.params, strict=True))
        trace = Trace(state, (*trace.steps, Step(action.name, shown, after)))
    return trace
