"""Refinements in a search: initial states, reasons why a step is not allowed, and abstract fairness.

Steps are checked where step invariants are.  A behaviour that violates fairness is checked again, by its
own states and steps: one that meets the condition, or does not owe it, is a bug of the search that found it
(`ReplayFailed`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, pairwise, product
from typing import Any

from msgspec.structs import replace

from specchk.ir.program import Liveness, Program, Refinement
from specchk.ir.types import Set
from specchk.meaning.behaviours.fairness import FairSteps
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.explain import Blame, false_guards
from specchk.meaning.initial import value_of
from specchk.meaning.properties import Refining
from specchk.meaning.undefined import Faulty, Undefined
from specchk.meaning.values import State, show, universe
from specchk.search.liveness.pulled import taken_by
from specchk.search.looping import kept_fairness
from specchk.search.replay import ReplayFailed
from specchk.search.verdict import AbstractStep, Obstacle, Trace, Violation

MAX_TRIED = 1 << 12  # instances of an action of which the nearest is shown


def claim(prop: Liveness | Refinement) -> str:
    """A property of whole behaviours in a few words."""
    return f"fairness of {prop.name}" if isinstance(prop, Refinement) else f"liveness {prop.name}"


def wrong_beginnings(program: Program, states: Sequence[State]) -> Iterator[Violation]:
    """For each refinement, the first state whose image is not an initial state of the refined program."""
    for refinement in program.refinements:
        refining = Refining(refinement, len(program.variables))
        for state in states:
            try:
                if refining.begins(state):
                    continue
            except Undefined as undefined:
                yield Violation("undefined", refinement.name, Trace(state, ()), Blame.of(undefined))
                break
            blame = _Contrast(refinement, len(program.variables)).beginning(state)
            yield Violation("refinement", refinement.name, Trace(state, ()), blame)
            break


def with_abstract_step(program: Program, violation: Violation) -> Violation:
    """A violated refinement with its last step, in terms of the refined program."""
    refinement = next((one for one in program.refinements if one.name == violation.name), None)
    trace = violation.trace
    # With a loop, fairness is violated, which has its own explanation (`RefinedFairness`).
    if refinement is None or violation.kind != "refinement" or trace is None or trace.loop is not None:
        return violation
    states = trace.states
    before = states[-2] if len(states) > 1 else None
    return replace(violation, abstract=_Contrast(refinement, len(program.variables)).step(before, states[-1]))


class _Contrast:
    """Explains the steps that one refinement does not allow, by comparison with the refined program."""

    def __init__(self, refinement: Refinement, variables: int) -> None:
        self.refinement = refinement
        self.refining = Refining(refinement, variables)
        self.program = refinement.abstract
        self._quiet = Evaluator(len(self.program.variables))

    def beginning(self, state: State) -> Blame:
        """The reason why the image of a state is not an initial state."""
        blame = Blame(self.refinement.span, "`init` is false of the image of this state", ())
        variables = zip(self.program.variables, self.program.starts, self.refining.image(state), strict=True)
        for slot, (variable, start, value) in enumerate(variables):
            given = start.value or start.choices
            allowed = value_of(given) if given is not None else ()
            if start.value is not None and value != allowed:
                words = f"begins with {show(allowed, variable.type)}"
            elif start.choices is not None and isinstance(allowed, tuple) and value not in allowed:
                words = f"begins with one of {show(allowed, Set(variable.type))}"
            else:
                continue
            name = f"`{variable.name}` of `{self.program.spec}`"
            text = f"{name} is {show(value, variable.type)} here, and {words}"
            return Blame(self.refinement.images[slot].span, text, ())
        return blame

    def step(self, before: State | None, after: State) -> AbstractStep | None:
        """A step that is not allowed, or an initial state, in terms of the refined program."""
        try:
            to = self.refining.image(after)
            if before is None:
                return AbstractStep(self.program, None, to, ())
            image = self.refining.image(before)
        except Undefined:
            return None
        nearest = [self._nearest(index, image, to) for index in range(len(self.program.actions))]
        obstacles = sorted(nearest, key=lambda obstacle: (bool(obstacle.guards), len(obstacle.differs)))
        return AbstractStep(self.program, image, to, tuple(obstacles))

    def _nearest(self, index: int, before: State, after: State) -> Obstacle:
        """The instance of an action nearest to the step: enabled, or else with the fewest false guards."""
        action = self.program.actions[index]
        domains = [sorted(universe(param.type)) for param in action.params]
        best: tuple[tuple[bool, int], Obstacle] | None = None
        # Bounded, since this only helps the reader: an action of many parameters would take longer to
        # explain than the search took to find its violation.
        for args in islice(product(*domains), MAX_TRIED):
            shown = ", ".join(show(arg, param.type) for arg, param in zip(args, action.params, strict=True))
            for guards, differs in self._tried(index, args, before, after):
                # A step that is enabled and differs is nearer than any that is not enabled.
                rank = bool(guards), len(guards) + len(differs)
                if best is None or rank < best[0]:
                    best = rank, Obstacle(f"{action.name}({shown})", guards, differs)
        none = Obstacle(action.name, (Blame(action.span, "the action has no instance", ()),), ())
        return best[1] if best is not None else none

    def _tried(
        self, index: int, args: Sequence[Any], before: State, after: State
    ) -> Iterator[tuple[tuple[Blame, ...], tuple[tuple[str, str, str], ...]]]:
        try:
            successors = self.refining.stepper.of_action(before, index, args)
        except Faulty as fault:
            yield (Blame.of(fault.undefined),), ()
            return
        for _, _, reached in successors:
            yield (), self._differs(reached, after)
        if not successors:
            yield tuple(false_guards(self._quiet, self.program.actions[index], before, args)), ()

    def _differs(self, reached: State, after: State) -> tuple[tuple[str, str, str], ...]:
        triples = zip(self.program.variables, reached, after, strict=True)
        return tuple((v.name, show(a, v.type), show(b, v.type)) for v, a, b in triples if a != b)


class RefinedFairness:
    """One refinement of a fair program; `fair` has its steps, `abstract` those of the refined program."""

    def __init__(self, refinement: Refinement, fair: FairSteps) -> None:
        self.refinement = refinement
        self.fair = fair
        # A behaviour of ours violates what is certainly enabled there, not what may be.
        self.abstract = FairSteps(refinement.abstract, in_doubt=False)
        self._refining = Refining(refinement, len(fair.program.variables))

    def image(self, state: State) -> State:
        """The image of a state; raises `Undefined`, also if a step from the image is undefined."""
        image = self._refining.image(state)
        fault = self._refining.fault(image)
        if fault is not None:
            raise fault
        return image

    def violation(self, bit: int, trace: Trace) -> Violation:
        """The violation of a fair condition by a behaviour, with the reasons why the behaviour is fair."""
        condition = self.abstract.conditions[bit]
        assert trace.loop is not None
        repeated = [self.image(state) for state in trace.states[trace.loop :]]
        enabled = [taken_by(self.abstract, state)[1] >> bit & 1 for state in repeated]
        if any(taken_by(self.abstract, a)[0].get(b, 0) >> bit & 1 for a, b in pairwise(repeated)):
            raise ReplayFailed(f"the loop takes {condition.text}")
        if not (any(enabled) if condition.strong else all(enabled)):
            raise ReplayFailed(f"the loop owes nothing to {condition.text}")
        at = trace.loop + enabled.index(1)
        where = f"in state {at}, again and again" if condition.strong else f"from state {at} on"
        name = self.refinement.abstract.spec
        note = f"`{name}` is {condition.text}: enabled {where}, and no step of the loop takes it"
        fairness = self.refinement.abstract.fairness[condition.declared]
        blame = Blame(fairness.span, condition.text, ())
        points = kept_fairness(self.fair, trace)
        return Violation("refinement", self.refinement.name, trace, blame, fairness=points, notes=(note,))
