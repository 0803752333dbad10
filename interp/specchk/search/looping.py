"""Infinite behaviours: replayed by the reference stepper, and checked against the definition of fairness.

This module does not depend on how a lasso was found.  A lasso that is not a fair behaviour, or that meets the
obligation it is reported to owe, is a bug of the search that found it (`ReplayFailed`).
"""

from __future__ import annotations

from collections.abc import Sequence

from specchk.ir.program import Form
from specchk.meaning.behaviours.fairness import FairSteps
from specchk.meaning.values import State
from specchk.search.liveness.owed import Owed
from specchk.search.replay import ReplayFailed, rebuild
from specchk.search.verdict import FairPoint, Kept, Step, Trace


def replayed(fair: FairSteps, path: Sequence[State], loop: Sequence[tuple[State, int]] | None) -> Trace:
    """The behaviour along a path and around a loop of (state, conditions met by the step to it).

    `loop` is None for a prefix of a behaviour, and empty for one that rests in its last state.
    """
    program = fair.program
    prefix = rebuild(program, fair.stepper, path, None)
    if loop is None:
        return prefix
    steps = list(prefix.steps)
    before = prefix.last
    for after, mask in loop:
        steps.append(_step(fair, before, after, mask))
        before = after
    if before != prefix.last:
        raise ReplayFailed("the loop does not lead back to where it begins")
    return Trace(prefix.initial, tuple(steps), loop=len(prefix.steps))


def _step(fair: FairSteps, before: State, after: State, mask: int) -> Step:
    """A step between two states that meets these conditions."""
    for action, args, reached in fair.stepper.successors(before):
        if reached == after and fair.mask(action, args) & mask == mask:
            return Step.of(fair.program, action, args, after)
    raise ReplayFailed("no step with the conditions of the loop leads from one of its states to the next")


def kept_fairness(fair: FairSteps, trace: Trace) -> tuple[FairPoint, ...]:
    """The reasons why a looping trace is fair, condition by condition."""
    assert trace.loop is not None
    states = trace.states
    inside = range(trace.loop, len(states))  # with the first state again at the end, unless it is a rest
    enabled = {at: fair.outgoing(states[at]).enabled for at in inside}
    taken = {at: _mask_of(fair, trace.steps[at - 1], states[at - 1]) for at in inside if at > trace.loop}
    points = []
    for bit, condition in enumerate(fair.conditions):
        step = next((at for at, mask in taken.items() if mask >> bit & 1), None)
        idle = next((at for at in inside if not enabled[at] >> bit & 1), None)
        never = all(not mask >> bit & 1 for mask in enabled.values())
        if step is not None:
            points.append(FairPoint(condition.text, Kept.TAKEN, step))
        elif condition.strong and never:
            points.append(FairPoint(condition.text, Kept.NEVER_ENABLED, None))
        elif not condition.strong and idle is not None:
            points.append(FairPoint(condition.text, Kept.DISABLED, idle))
        else:
            raise ReplayFailed(f"the loop is not fair to {condition.text}")
    return tuple(points)


def _mask_of(fair: FairSteps, step: Step, before: State) -> int:
    """The conditions that a step of a trace meets; none if the step changes nothing."""
    if step.state == before:
        return 0
    for action, args, after in fair.stepper.successors(before):
        if after == step.state and Step.of(fair.program, action, args, after) == step:
            return fair.mask(action, args)
    raise ReplayFailed("a step of the loop is not a step of the program")


def owes(owed: Owed, trace: Trace) -> str:
    """A sentence on the obligation that is not met; raises `ReplayFailed` if the behaviour meets it."""
    clause, states = owed.clause, trace.states
    goal = " ".join(clause.goal.span.text.split())
    assert trace.loop is not None
    if clause.form is Form.EVENTUALLY_ALWAYS:
        at = next((at for at in range(trace.loop, len(states)) if not owed.reaches(states[at])), None)
        if at is None:
            raise ReplayFailed("the goal is true in the whole loop")
        return f"`{goal}` is false in state {at}, again and again"
    begins = len(states)
    while begins > 0 and not owed.reaches(states[begins - 1]):
        begins -= 1
    if begins > (0 if clause.form is Form.EVENTUALLY else trace.loop):
        raise ReplayFailed("the goal is reached")
    at = next((at for at in range(begins, len(states)) if owed.triggers(states[at])), None)
    if at is None:
        raise ReplayFailed("nothing is owed")
    never = f"`{goal}` is false from state {at} on"
    if clause.trigger is None:
        return never
    return f"`{' '.join(clause.trigger.span.text.split())}` is true in state {at}, and {never}"
